package window

import (
	"bytes"
	"errors"
	"os"

	"example.com/operator-workshop/scripts/internal/translation"
)

const (
	// inputLimit is how much input a terminal keeps for a program that does not read. terminal.js has it, too.
	inputLimit = 1 << 20
	// inputPiece is how much input is written at once. The kernel takes a piece and a key after a flush, without a reader.
	inputPiece = 1 << 10
)

var errInputRefused = errors.New(translation.Mark("a terminal keeps at most 1 MiB for a program that does not read"))

// keys sends keys to the shell. When the shell has ended, Enter starts another shell.
func (t *terminal) keys(keys []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		if bytes.ContainsAny(keys, "\r\n") {
			return t.start()
		}
		return nil
	}
	if len(keys) == 1 && isSignal(t.file, keys[0]) {
		t.input = nil
		flushInput(t.file)
	}
	return t.enter(keys)
}

// enter keeps input for the shell. The caller holds the lock.
func (t *terminal) enter(input []byte) error {
	if len(t.input)+len(input) > inputLimit {
		return errInputRefused
	}
	t.input = append(t.input, input...)
	t.changed.Broadcast()
	return nil
}

// feed writes the input to the shell, until the shell has ended. A write can wait as long as the program does not read.
func (t *terminal) feed(file *os.File) {
	for {
		t.mu.Lock()
		for len(t.input) == 0 && t.file == file {
			t.changed.Wait()
		}
		if t.file != file {
			t.mu.Unlock()
			return
		}
		piece := bytes.Clone(t.input[:min(len(t.input), inputPiece)])
		t.input = t.input[len(piece):]
		t.mu.Unlock()
		if _, err := file.Write(piece); err != nil {
			return // the shell has ended
		}
	}
}

// interrupt sends Ctrl-C.
func (t *terminal) interrupt() { _ = t.keys([]byte{3}) }
