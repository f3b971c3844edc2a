package loop

import (
	"net/http"
	"slices"
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
// the runs do not differ, the last act is chosen, or the last one before the record at which the check failed; at is 0
// for a run that passed. Only for a failed run, a write that changed nothing makes a difference.
func Compare(run, other []Record, at int) Comparison {
	mine, theirs := afterActs(run), afterActs(other)
	last := 0
	for n := range min(len(mine), len(theirs)) {
		extra, missing := firstOnlyIn(mine[n], theirs[n], Record.essence), firstOnlyIn(theirs[n], mine[n], Record.essenceOfDone)
		if missing.Is == Event && extra.N > 0 {
			missing = Record{} // a failed run ends before such an event
		}
		if extra.N+missing.N > 0 {
			return Comparison{actOf(mine[n]), mine[n], theirs[n], extra.N, missing.N}
		}
		if len(mine[n]) > 0 && (at == 0 || mine[n][0].N <= at) {
			last = n
		}
	}
	same := Record{}
	if at > 0 {
		same = firstOnlyIn(mine[last], theirs[last], Record.essenceOfSame)
	}
	return Comparison{Act: actOf(mine[last]), Run: mine[last], Other: theirs[last], Extra: same.N}
}

// isAct reports whether a record is of a user, or of the lab in the place of a user.
func (r Record) isAct() bool { return r.Is == Note || r.By.Name == User }

// afterActs divides a run: each part begins with an act, except the first part. Equal acts on several objects begin one
// part, because a program may react to the first object after the act on the second one.
func afterActs(records []Record) [][]Record {
	parts, last := [][]Record{nil}, Record{}
	for _, r := range records {
		if r.Is != Note && (r.IsHousekeeping() || r.Is == Request && !r.Changes()) {
			continue
		}
		if r.isAct() {
			isSame := r.Is == Request && r.Verb == last.Verb && r.FullResource() == last.FullResource() && r.Name != last.Name
			if last = r; !isSame {
				parts = append(parts, nil)
			}
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

// firstOnlyIn returns the first record of one part that the other part lacks.
func firstOnlyIn(one, other []Record, essence func(Record) string) Record {
	count, theirs := map[string]int{}, map[string]int{}
	for _, r := range other {
		theirs[essence(r)]++
	}
	all := map[string]int{}
	for _, r := range one {
		all[essence(r)]++
	}
	for _, r := range one {
		e := essence(r)
		count[e]++
		isLoop := all[e] >= tooMany && all[e] > 3*theirs[e] && count[e] > theirs[e]
		if e != "" && (theirs[e] == 0 || isLoop) && !isRepeated(r, one) {
			return r
		}
	}
	return Record{}
}

// isRefused reports whether the API server refused a write.
func (r Record) isRefused() bool { return r.Changes() && r.Code >= http.StatusBadRequest }

// isRepeated reports whether a refused write was repeated with success.
func isRepeated(refused Record, records []Record) bool {
	return refused.isRefused() && slices.ContainsFunc(records, func(r Record) bool {
		return r.N > refused.N && r.Changes() && !r.isAct() && r.Verb == refused.Verb && r.Name == refused.Name &&
			r.FullResource() == refused.FullResource() && r.Code/100 == 2
	})
}

// essence returns what two runs have in common when they do the same, or nothing for a record that says little: an
// object that appears or changes has many causes, a conflict is repeated, and other writes changed nothing.
func (r Record) essence() string {
	words := []string{r.Kind, r.Name, r.Type}
	switch {
	case r.isAct(), r.Is == Event && r.Type != "DELETED", r.Code == http.StatusConflict, r.Effect == "same":
		return ""
	case r.Is == Request:
		words = []string{"changes", r.FullResource(), r.Name}
		if r.Code == http.StatusCreated {
			words[0] = "creates"
		} else if r.Verb == "delete" || r.Verb == "deletecollection" {
			words[0] = r.Verb
		}
		if r.isRefused() {
			words = append(words, "refused")
		}
	}
	return strings.Join(append(words, r.OwnersOfNew()...), " ")
}

// essenceOfDone is essence without refused writes.
func (r Record) essenceOfDone() string {
	if r.isRefused() {
		return ""
	}
	return r.essence()
}

// essenceOfSame returns the object of a write that changed nothing.
func (r Record) essenceOfSame() string {
	if r.isAct() || r.Effect != "same" {
		return ""
	}
	return r.FullResource() + " " + r.Name
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
