package window

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

func TestFilesOfOthersAreThoseThatWereRecorded(t *testing.T) {
	vendor, err := fs.Sub(web, "web/vendor")
	testkit.Must(t, err)
	sums, err := fs.ReadFile(vendor, "SHA256SUMS")
	testkit.Must(t, err)
	recorded := map[string]string{}
	for line := range bytes.Lines(sums) {
		sum, name, _ := bytes.Cut(bytes.TrimSpace(line), []byte("  "))
		recorded[string(name)] = string(sum)
	}
	for _, folder := range []string{"xterm", "mermaid", "codemirror"} {
		files, err := fs.ReadDir(vendor, folder)
		testkit.Must(t, err)
		for _, file := range files {
			name := folder + "/" + file.Name()
			data, err := fs.ReadFile(vendor, name)
			testkit.Must(t, err)
			sum := sha256.Sum256(data)
			if recorded[name] != hex.EncodeToString(sum[:]) {
				t.Errorf("%s is not the file that SHA256SUMS records", name)
			}
			delete(recorded, name)
		}
	}
	for name := range recorded {
		t.Errorf("%s is recorded and is not there", name)
	}
}
