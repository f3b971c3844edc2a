package page

import (
	"regexp"

	"github.com/aymanbagabas/go-udiff"
)

var hunk = regexp.MustCompile(`(?m)^@@ .* @@$`)

// Diff returns the difference of two texts as `diff -u` prints it, without line numbers: go-udiff 0.4.1 counts wrong after
// two changes that are near each other.
func Diff(fromName, toName, from, to string) string {
	return hunk.ReplaceAllString(udiff.Unified(fromName, toName, from, to), "@@")
}
