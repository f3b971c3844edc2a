package exercise

import (
	"encoding/json"
	"path/filepath"
)

// A lastCheck has the judgement of the last check, and the digest of the checked files.
type lastCheck struct {
	Digest    string
	Judgement Judgement `json:"Report"` // its name in a learner's file
}

func (w Workspace) lastPath() string { return filepath.Join(w.Work, ".last.json") }

// Remember keeps a judgement of files, by their digest. A program that does not compile has no further details to show.
func (w Workspace) Remember(digest string, r Judgement) error {
	if r.Compile != nil {
		digest = ""
	}
	data, err := json.Marshal(lastCheck{digest, r})
	if err != nil {
		return err
	}
	return write(w.lastPath(), data)
}

// Last returns the judgement of the last check, when it was about these files.
func (w Workspace) Last(digest string) (Judgement, bool) {
	data, err := readFile(w.lastPath(), "work/.last.json")
	if err != nil {
		return Judgement{}, false
	}
	var last lastCheck
	err = json.Unmarshal(data, &last)
	return last.Judgement, err == nil && digest != "" && last.Digest == digest
}
