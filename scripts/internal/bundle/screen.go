package bundle

import (
	"fmt"
	"strings"

	"example.com/operator-workshop/scripts/internal/unbundle"
)

// screen is the text that the teacher sees. The web page has no code: an attacker who changes a bundle on its way could
// change the code, too.
const screen = `Attendees open %[1]s in a browser, and copy the line for their machine. It asks for the code:

  %[2]s

Show it, or read it out: it is not on the web page, which a stranger in the network can change. The same lines with
the code, for machines that you prepare:

%[3]s`

const noBundle = `There is no bundle in %s: only the progress of the room is collected. Once make bundle has made one, it
is given out here.

`

const progressScreen = `%[3]sAttendees who want to send you their progress add this to make check, or to make open, with a name of their choice:

  ROOM=%[1]s NAME=…

Its page is for you; anybody with this address sees it:

  %[2]s

Ctrl-C ends it, and forgets all progress.
`

// lines returns the commands that attendees paste, one for each platform; code sets the variable code. An interrupted
// download continues when the command is run again; the checksum shows whether it is complete. Nothing is unpacked or
// run with a wrong code.
func lines(sums, base, code string) string {
	var text strings.Builder
	for entry := range strings.Lines(sums) {
		words := strings.Fields(entry)
		if len(words) != 2 {
			continue
		}
		sha256 := "sha256sum"
		if strings.Contains(words[1], "-darwin-") {
			sha256 = "shasum -a 256"
		}
		file := words[1]
		machine := machines[strings.TrimSuffix(strings.TrimPrefix(file, unbundle.Name), ".tar.gz")]
		fmt.Fprintf(&text, line, machine, code, base, unbundle.SumsFile, file, sha256, unbundle.CodeDigits, unbundle.Top)
	}
	fmt.Fprintf(&text, help, unbundle.Top, base)
	return text.String()
}

// machines describes platforms to an attendee who does not know the platform of her machine.
var machines = map[string]string{
	"linux-amd64":  "Linux, or Windows with WSL2 (linux-amd64):",
	"linux-arm64":  "Linux on an ARM processor (linux-arm64):",
	"darwin-arm64": "A Mac with an M chip (darwin-arm64):",
	"darwin-amd64": "An older Mac, with an Intel processor (darwin-amd64):",
}

// line is a shell command: it compares the code with that of the checksums, and the checksums with the bundle.
const line = `%[1]s

%[2]s; curl -fO %[3]s/%[4]s; curl -fC - -O %[3]s/%[5]s; ` +
	`if [ "$(%[6]s %[4]s | cut -c1-%[7]d)" = "$(echo "$code" | tr -d ' -' | tr A-F a-f)" ]; ` +
	`then grep %[5]s %[4]s | %[6]s -c && tar -xzf %[5]s && make -C %[8]s from-bundle; ` +
	`else echo 'WRONG CODE: nothing was unpacked'; fi

`

const help = `The download breaks off?  Run the same line again: it goes on.
FAILED, but complete?     Remove the file, and run the line again.
WRONG CODE?               The teacher's screen shows it. If yours is the same, do not install this bundle.
from-bundle fails?        Fix what it names, then: make -C %[1]s from-bundle
You have a clone?         Download %[2]s/SHA256SUMS, too. In the clone: make from-bundle FILE=path CODE=…
Only modules are missing? In each terminal: export GOPROXY=%[2]s/modules
`

// hint names an address for a room when only this machine can reach base.
func hint(base string) string {
	if !strings.HasPrefix(base, "http://127.") {
		return ""
	}
	const only = "Only this machine reaches this address. "
	if others := addresses(); len(others) > 1 {
		return fmt.Sprintf(only+"For a room, name one of its addresses: make serve-bundle ADDRESS=%s:8400\n", others[0])
	}
	return only + "It has no other one now, because it is in no network.\n"
}
