package window

import (
	"bufio"
	"fmt"
	"io"
	"net/textproto"
	"strconv"
)

// mostOfMessage is how many bytes one message of a language server may have.
const mostOfMessage = 64 << 20

// readMessage reads one message of the language server protocol: lines of a header, an empty line, and as many bytes as
// Content-Length in the header says.
func readMessage(r *bufio.Reader) ([]byte, error) {
	header, err := textproto.NewReader(r).ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	length, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil || length < 0 || length > mostOfMessage {
		return nil, fmt.Errorf("a message has the length %q", header.Get("Content-Length"))
	}
	message := make([]byte, length)
	_, err = io.ReadFull(r, message)
	return message, err
}

// writeMessage writes one message with its header.
func writeMessage(w io.Writer, message []byte) error {
	_, err := fmt.Fprintf(w, "Content-Length: %d\r\n\r\n%s", len(message), message)
	return err
}
