package unbundle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
)

// CodeDigits is how many hexadecimal digits a code has: 80 bits of the SHA-256 of the checksums. An attacker cannot
// make another bundle with the same code. Tools of every system print the code: sha256sum SHA256SUMS | cut -c1-20.
const CodeDigits = 20

// NoCode takes the place of a code when the reader wants a bundle without a teacher's guarantee.
const NoCode = "none"

// Code returns the code that a teacher shows and reads out, made from the content of SumsFile. A checksum beside a
// bundle protects against damage. A stranger who replaces the bundle replaces the checksum, too, but not the code on
// the teacher's screen.
func Code(sums []byte) string {
	digits := fmt.Sprintf("%x", sha256.Sum256(sums))[:CodeDigits]
	var groups []string
	for i := 0; i < CodeDigits; i += 4 {
		groups = append(groups, digits[i:i+4])
	}
	return strings.Join(groups, "-")
}

// vouched compares a typed code with that of the checksums. No message contains the right code: a reader who copies the
// code from a message would compare the bundle with itself.
func vouched(typed string, sums []byte) error {
	plain := strings.NewReplacer("-", "", " ", "")
	switch {
	case typed == NoCode:
		return nil
	case typed == "":
		return errors.New("no code was compared for this bundle, and its programs run as your user: " +
			"add CODE=, the code on the screen of the teacher who made it (CODE=none installs it without)")
	case !strings.EqualFold(plain.Replace(typed), plain.Replace(Code(sums))):
		return fmt.Errorf("CODE=%s is not the code of this bundle, and nothing was unpacked: compare it with the teacher's "+
			"screen; if it is the same, this is another bundle than the teacher's: get that one", typed)
	}
	return nil
}

var errUnpacked = errors.New("CODE= cannot be checked after a bundle was unpacked by hand: compare it before, with " +
	"sha256sum " + SumsFile + " | cut -c1-20, and then run make from-bundle without CODE and FILE")
