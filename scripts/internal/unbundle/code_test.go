package unbundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestABundleOfAStrangerIsRefused has a bundle with a planted etcd, and a list with the correct checksum of this
// bundle: a stranger in the network replaces both. The reader has the code of the teacher's bundle.
func TestABundleOfAStrangerIsRefused(t *testing.T) {
	teacher := pack(t, good)
	planted := pack(t, append(good[:len(good):len(good)], file{name: inside + "bin/etcd", text: "planted"}))
	code := codeOf(t, put(t, teacher, checksum(teacher)))
	stranger := put(t, planted, checksum(planted))
	for typed, want := range map[string]string{
		code:                           "is not the code of this bundle, and nothing was unpacked",
		code[:4]:                       "is not the code of this bundle",
		codeOf(t, stranger)[:23] + "x": "is not the code of this bundle",
		"":                             "no code was compared for this bundle, and its programs run as your user",
		"-":                            "is not the code of this bundle",
	} {
		root := newRoot(t)
		before := list(t, filepath.Dir(root))
		_, err := Open(t.Context(), root, stranger, typed)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CODE=%s: it says %v, wanted %s", typed, err, want)
		}
		if err != nil && strings.Contains(err.Error(), codeOf(t, stranger)) {
			t.Errorf("CODE=%s: the right code is in the message, to be copied: %v", typed, err)
		}
		if after := list(t, filepath.Dir(root)); after != before {
			t.Errorf("CODE=%s: it left\n%s\nbefore there was\n%s", typed, after, before)
		}
	}
}

func TestTheCodeIsAcceptedAsItIsReadOut(t *testing.T) {
	data := pack(t, good)
	bundle := put(t, data, checksum(data))
	code := codeOf(t, bundle)
	for _, typed := range []string{code, strings.ToUpper(code), strings.ReplaceAll(code, "-", " "),
		strings.ReplaceAll(code, "-", "")} {
		if _, err := Open(t.Context(), newRoot(t), bundle, typed); err != nil {
			t.Errorf("CODE=%s: %v", typed, err)
		}
	}
	if _, err := Open(t.Context(), newRoot(t), "", code); err == nil || !strings.Contains(err.Error(), "cannot be checked") {
		t.Errorf("after it was unpacked by hand: %v", err)
	}
}

func codeOf(t *testing.T, bundle string) string {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(filepath.Dir(bundle), SumsFile))
	testkit.Must(t, err)
	return Code(sums)
}
