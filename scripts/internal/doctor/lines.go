package doctor

import (
	"context"
	"fmt"
	"strings"
)

// checkLines looks for a checkout of Git for Windows, whose core.autocrlf adds a carriage return to each line. The
// Makefile looks for them in scripts/workshop, without which this check does not start.
func checkLines(ctx context.Context, m Machine) Finding {
	files, err := m.run(ctx, "git", "-C", m.Repository, "ls-files", "--eol")
	if err != nil {
		return notApplicable("not a clone, so git has converted nothing")
	}
	converted := 0
	for line := range strings.Lines(files) { // index, working tree, attributes, path
		if words := strings.Fields(line); len(words) > 1 && words[0] == "i/lf" && words[1] != "w/lf" && words[1] != "w/" {
			converted++
		}
	}
	if converted == 0 {
		return okay("no file has been converted by git")
	}
	return Finding{Status: Failure, What: fmt.Sprintf("%d files have CRLF at the ends of lines.", converted),
		Why: "Git for Windows converts them when core.autocrlf is true. bash takes the carriage return for a part of a " +
			"word: `bash\\r: No such file or directory`.",
		Fix: "Commit or stash your changes, which this would remove (work/ stays), then:\n" +
			"git config core.autocrlf false && git rm -rq --cached . && git reset -q --hard"}
}
