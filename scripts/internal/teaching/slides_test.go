package teaching

import (
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// A slide begins at each heading of the second level.
type slide struct {
	// Number counts from 1.
	Number int
	Title  string
	// Exercise is the exercise that the slide sets, solves or, as a Picture, explains; Task means that the slide sets it.
	Exercise      string
	Task, Picture bool
	// Noted means that the slide has notes for the speaker, in a block quote.
	Noted bool
	// Words counts the words of its text, without notes and code.
	Words  int
	Blocks []*page.Block
}

// readSlides returns the slides of the checkout.
func readSlides(t *testing.T) (all []slide) {
	t.Helper()
	p, err := page.Parse(filepath.Join(root, SlidesFile))
	testkit.Must(t, err)
	for at, part := range p.Parts {
		switch {
		case at == 0: // the title of the page
		case part.Heading:
			s := slide{Number: len(all) + 1, Title: part.Prose}
			if found := ofExercise.FindStringSubmatch(part.Prose); found != nil {
				s.Task, s.Picture, s.Exercise = found[1] == "Task", found[1] == "Picture", found[2]
			}
			all = append(all, s)
		case len(all) == 0: // the text before the first slide
		case part.Block != nil:
			all[len(all)-1].Blocks = append(all[len(all)-1].Blocks, part.Block)
		case part.Quoted:
			all[len(all)-1].Noted = true
		default:
			all[len(all)-1].Words += len(strings.Fields(part.Prose))
		}
	}
	return all
}
