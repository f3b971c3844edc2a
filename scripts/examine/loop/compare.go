package loop

import (
	"net/http"
	"strings"
)

// A Comparison has two runs of a check, from the act of a user on after which they differ first. It has no reads.
type Comparison struct {
	// Act is the act in words.
	Act string
	// Run and Other are the records from the act on.
	Run, Other []Record
	// Extra is the number of the first record of Run that Other lacks, Missing that of the first record of Other that Run
	// lacks; 0 when there is none.
	Extra, Missing int
}

// Compare compares two runs of a check. The acts of the user are the same in both, so it compares what followed each act.
// Programs run in parallel: the order of records, and how often one is there, differ between two runs of one program. When
// the runs do not differ, the last act is chosen, or the last one before the record at which the check failed.
func Compare(run, other []Record, at int) Comparison {
	mine, theirs := afterActs(run), afterActs(other)
	last := 0
	for n := range min(len(mine), len(theirs)) {
		extra, missing := firstOnlyIn(mine[n], theirs[n]), firstOnlyIn(theirs[n], mine[n])
		if extra+missing > 0 {
			return Comparison{actOf(mine[n]), mine[n], theirs[n], extra, missing}
		}
		if len(mine[n]) > 0 && (at == 0 || mine[n][0].N <= at) {
			last = n
		}
	}
	return Comparison{Act: actOf(mine[last]), Run: mine[last], Other: theirs[last]}
}

// isAct reports whether a record is of a user, or of the lab in the place of a user.
func (r Record) isAct() bool { return r.Is == Note || r.By.Name == User }

// afterActs divides a run: each part begins with an act, except the first part.
func afterActs(records []Record) [][]Record {
	parts := [][]Record{nil}
	for _, r := range records {
		if r.Is != Note && (r.IsHousekeeping() || r.Is == Request && !r.Changes()) {
			continue
		}
		if r.isAct() {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], r)
	}
	return parts
}

func actOf(part []Record) string {
	if len(part) == 0 || !part[0].isAct() {
		return ""
	}
	return part[0].Text()
}

// tooMany is the least number of equal records that shows a loop without end, when the other run has a third of them.
const tooMany = 10

// firstOnlyIn returns the number of the first record of one part that the other part lacks, or 0.
func firstOnlyIn(one, other []Record) int {
	count, theirs := map[string]int{}, map[string]int{}
	for _, r := range other {
		theirs[r.essence()]++
	}
	all := map[string]int{}
	for _, r := range one {
		all[r.essence()]++
	}
	for _, r := range one {
		e := r.essence()
		count[e]++
		isLoop := all[e] >= tooMany && all[e] > 3*theirs[e] && count[e] > theirs[e]
		if e != "" && (theirs[e] == 0 || isLoop) {
			return r.N
		}
	}
	return 0
}

// essence returns what two runs have in common when they do the same, or nothing for a record that says little: a
// MODIFIED event has many causes, and a refused write is repeated.
func (r Record) essence() string {
	words := []string{r.Kind, r.Name, r.Type}
	switch {
	case r.Is == Note, r.By.Name == User, r.Type == "MODIFIED", r.Code == http.StatusConflict:
		return ""
	case r.Is == Request:
		words = []string{"changes", r.FullResource(), r.Name, r.Effect}
		if r.Code == http.StatusCreated {
			words[0] = "creates"
		} else if r.Verb == "delete" || r.Verb == "deletecollection" {
			words[0] = r.Verb
		}
		if r.Code >= http.StatusBadRequest {
			words = append(words, "refused")
		}
	}
	return strings.Join(append(words, r.OwnersOfNew()...), " ")
}

// OwnersOfNew returns the owners of an object that a request created, in words, as far as the record knows them.
func (r Record) OwnersOfNew() (owners []string) {
	if r.Code != http.StatusCreated || r.Effect != "moved" {
		return nil
	}
	for _, fact := range r.Facts {
		if fact == NoOwner || strings.HasPrefix(fact, "owner: ") {
			owners = append(owners, fact)
		}
	}
	return owners
}
