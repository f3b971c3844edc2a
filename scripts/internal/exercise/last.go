package exercise

import (
	"encoding/json"
	"path/filepath"
)

// A lastCheck has the report of the last check, and the digest of the checked files.
type lastCheck struct {
	Digest string
	Report Report
}

func (w Workspace) lastPath() string { return filepath.Join(w.Work, ".last.json") }

// Remember keeps a report of files, by their digest. A program that does not compile has no further details to show.
func (w Workspace) Remember(digest string, r Report) error {
	if r.Compile != nil {
		digest = ""
	}
	data, err := json.Marshal(lastCheck{digest, r})
	if err != nil {
		return err
	}
	return write(w.lastPath(), data)
}

// Last returns the report of the last check, when it was about these files.
func (w Workspace) Last(digest string) (Report, bool) {
	data, err := readFile(w.lastPath(), "work/.last.json")
	if err != nil {
		return Report{}, false
	}
	var last lastCheck
	err = json.Unmarshal(data, &last)
	return last.Report, err == nil && digest != "" && last.Digest == digest
}
