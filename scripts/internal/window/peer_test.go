package window

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestTheUserOfASocketIsFound(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	peer, own := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 0xB0DE}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 0x1054}
	const rest = "00000000:00000000 00:00000000 00000000"
	tests := map[string]struct {
		rows string
		user int
		ok   bool
	}{
		"the peer's side counts, not the window's": {ok: true, user: 1001,
			rows: "0: 0100007F:1054 0100007F:B0DE 01 " + rest + " 1000 0 7 1\n1: 0100007F:B0DE 0100007F:1054 01 " + rest + " 1001 0 8 1\n"},
		"a socket of IPv6": {ok: true, user: 1001, rows: "1: 0000000000000000FFFF00000100007F:B0DE " +
			"0000000000000000FFFF00000100007F:1054 01 " + rest + " 1001 0 8 1\n"},
		"a closed socket has no user": {ok: true, user: hasClosed, rows: "1: 0100007F:B0DE 0100007F:1054 06 " + rest + " 0 0 0 1\n"},
		"another port":                {rows: "1: 0100007F:B0DF 0100007F:1054 01 " + rest + " 1001 0 8 1\n"},
		"another address":             {rows: "1: 0200007F:B0DE 0100007F:1054 01 " + rest + " 1001 0 8 1\n"},
		"no row":                      {},
		"a row that the kernel lacks": {rows: "1: x\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if user, ok := userOf(head+test.rows, peer, own); user != test.user || ok != test.ok {
				t.Errorf("got %d %v", user, ok)
			}
		})
	}
}

// TestAConnectionOfAnotherUserIsRefused connects as another user, with all secrets of the reader.
func TestAConnectionOfAnotherUserIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a program as another user")
	}
	f := start(t)
	const ask = `exec 3<>/dev/tcp/${0/://}; printf 'GET /exercises HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n` +
		`Authorization: Bearer %s\r\nConnection: close\r\n\r\n' "$0" "$1" "$2" >&3; cat <&3`
	for user, want := range map[uint32]string{65534: "another user", 0: "HTTP/1.1 200 OK"} {
		t.Run(fmt.Sprint("user ", user), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "bash", "-c", ask, f.host(), f.cookieName()+"="+f.cookie, f.secret)
			cmd.Dir = "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
			answer, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(answer), want) {
				t.Errorf("%v %s", err, answer)
			}
		})
	}
}
