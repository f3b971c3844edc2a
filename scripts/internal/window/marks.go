package window

import (
	"bytes"
	"regexp"
)

// A mark is a text that the shell of a terminal writes at its prompt, before the output of a command and at the end of
// a command. Terminals ignore marks.
type mark struct {
	// kind is 'P' where the prompt begins, 'C' where the output of a command begins, 'E' where it ends. 'A' follows 'E'
	// when the shell is away from the root folder of the checkout.
	kind byte
	// code is the exit code of a command that has ended.
	code string
}

// markPattern matches a mark in the output of a shell; shell.sh writes the marks.
var markPattern = regexp.MustCompile("\x1b\\]7717;([PCEA])([0-9]*)\a")

// markBegin matches the beginning of an incomplete mark.
const markBegin = "\x1b]7717;"

// A scanner separates marks from output, also a mark that arrives in two pieces.
type scanner struct{ kept []byte }

// scan calls text and found in the order of the shell's output.
func (s *scanner) scan(data []byte, text func([]byte), found func(mark)) {
	data = append(s.kept, data...)
	s.kept = nil
	for {
		at := markPattern.FindSubmatchIndex(data)
		if at == nil {
			break
		}
		text(data[:at[0]])
		found(mark{kind: data[at[2]], code: string(data[at[4]:at[5]])})
		data = data[at[1]:]
	}
	end := len(data)
	if begin := bytes.LastIndexByte(data, '\x1b'); begin >= 0 && mayBegin(data[begin:]) {
		end = begin
	}
	text(data[:end])
	s.kept = bytes.Clone(data[end:])
}

// mayBegin reports whether more output can complete data to a mark.
func mayBegin(data []byte) bool {
	const longest = len(markBegin) + len("E255")
	if len(data) < len(markBegin) {
		return bytes.HasPrefix([]byte(markBegin), data)
	}
	return bytes.HasPrefix(data, []byte(markBegin)) && len(data) <= longest
}
