package window

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/yuin/goldmark/util"

	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/translation"
)

var blockTemplate = template.Must(template.New("").Parse(`<section class="block {{.Kind}}" aria-label="{{.Label}}"` +
	`{{if .Run}} data-block="{{.Number}}" data-terminal="{{.Terminal}}"{{end}}>` +
	`<header><span class="kind">{{.Label}}</span>{{if .Note}}<span class="note">{{.Note}}</span>{{end}}` +
	`{{if .Copy}}<button class="copy" type="button">{{.T "Copy"}}</button>{{end}}` +
	`{{if .Run}}<button class="run" type="button">{{.T "Run"}}</button>{{end}}</header>` +
	`<pre tabindex="0"><code>{{.Code}}</code></pre>{{if .Run}}<div class="verdict" role="status"></div>{{end}}</section>
`))

// isRunnable reports whether a block has the button Run. A skipped block of several commands can be a menu, so a reader
// copies the commands that the reader needs.
func isRunnable(b *page.Block) bool {
	commands := strings.Split(strings.TrimSpace(strings.ReplaceAll(b.Text, "\\\n", "")), "\n")
	return b.Lang == "sh" && (b.Skip == "" || len(commands) == 1)
}

// drawBlock writes a block with its label.
func drawBlock(w util.BufWriter, number int, b *page.Block, in spoken) {
	view := struct {
		spoken
		Kind, Label, Note, Terminal string
		Number                      int
		Copy, Run                   bool
		Code                        template.HTML
	}{spoken: in, Kind: "included", Label: cmp.Or(b.File, b.Lang), Number: number,
		Code: template.HTML(colored(b.Lang, strings.TrimRight(b.Text, "\n")))}
	switch b.Lang {
	case "mermaid":
		fmt.Fprintf(w, `<figure class="picture"><pre>%s</pre></figure>`, template.HTMLEscapeString(b.Text))
		return
	case "console":
		view.Kind, view.Label = "console", in.said.Sayf("Expected output")
		if b.Contains {
			view.Label = in.said.Sayf("Expected among the output")
		}
	case "sh":
		view.Kind, view.Label, view.Terminal = "command", in.said.Sayf("Command"), cmp.Or(b.Background, "page")
		view.Copy, view.Run = true, isRunnable(b)
		view.Note = in.said.Say(noteOf(b))
	}
	_ = blockTemplate.Execute(w, view)
}

// noteOf explains the words of a block.
func noteOf(b *page.Block) string {
	switch {
	case b.Skip != "" && !isRunnable(b):
		return fmt.Sprintf(translation.Mark("copy the lines that you need; not run by tests: %s"), b.Skip)
	case b.Skip != "":
		return fmt.Sprintf(translation.Mark("not run by tests: %s"), b.Skip)
	case b.Background != "":
		return fmt.Sprintf(translation.Mark("runs in the terminal “%s”"), b.Background)
	case b.Stop != "":
		return fmt.Sprintf(translation.Mark("ends what runs in “%s”"), b.Stop)
	case b.Fails:
		return translation.Mark("fails, as it should")
	case b.Within > 0:
		return fmt.Sprintf(translation.Mark("is repeated for up to %s"), b.Within)
	}
	return ""
}

var formatter = chromahtml.New(chromahtml.WithClasses(true), chromahtml.PreventSurroundingPre(true))

// colored returns source as HTML whose words have classes. The language is given by its name, or by a file's name.
func colored(language, source string) string {
	if language == "console" {
		return template.HTMLEscapeString(source)
	}
	lexer := cmp.Or(lexers.Get(language), lexers.Match(language), lexers.Fallback)
	var html bytes.Buffer
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, source)
	if err == nil {
		err = formatter.Format(&html, styles.Fallback, tokens)
	}
	if err != nil {
		return template.HTMLEscapeString(source)
	}
	return html.String()
}

// pictureFrame is the frame that draws pictures.
func (s *Server) pictureFrame(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", picturePolicy)
	http.ServeFileFS(w, r, s.assets, "picture.html")
}
