package window

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

func TestMessagesOfALanguageServer(t *testing.T) {
	var stream bytes.Buffer
	for _, message := range []string{`{"a":1}`, "", "ä\r\n\r\n"} {
		testkit.Must(t, writeMessage(&stream, []byte(message)))
	}
	stream.WriteString("Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length: 2\r\n\r\n{}")
	r := bufio.NewReader(&stream)
	for _, want := range []string{`{"a":1}`, "", "ä\r\n\r\n", "{}"} {
		if got, err := readMessage(r); err != nil || string(got) != want {
			t.Errorf("read %q (%v), want %q", got, err, want)
		}
	}
	if _, err := readMessage(r); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestABrokenMessageEndsTheConversation(t *testing.T) {
	for what, stream := range map[string]string{
		"no length":           "Content-Type: x\r\n\r\n{}",
		"a negative length":   "Content-Length: -1\r\n\r\n{}",
		"a length of a novel": "Content-Length: 99999999999\r\n\r\n{}",
		"half a message":      "Content-Length: 3\r\n\r\n{}",
		"no header":           "{}\r\n\r\n",
	} {
		if message, err := readMessage(bufio.NewReader(strings.NewReader(stream))); err == nil {
			t.Errorf("%s: it is read as %q", what, message)
		}
	}
}
