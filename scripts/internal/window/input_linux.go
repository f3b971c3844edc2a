package window

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// isSignal reports whether a terminal turns a key, such as Ctrl-C, into a signal.
func isSignal(terminal *os.File, key byte) bool {
	modes, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil || modes.Lflag&unix.ISIG == 0 {
		return false
	}
	return bytes.IndexByte([]byte{modes.Cc[unix.VINTR], modes.Cc[unix.VQUIT], modes.Cc[unix.VSUSP]}, key) >= 0
}

// flushInput drops the input that a program has not read. The kernel turns a key into a signal only when the key
// reaches a buffer that this input fills.
func flushInput(terminal *os.File) {
	fd := int(terminal.Fd())
	_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCOFLUSH) // on the way to the program's side
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return
	}
	side, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer side.Close()
	_ = unix.IoctlSetInt(int(side.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
