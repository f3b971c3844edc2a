package cluster

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/loop"
)

// zeros is a body of any length.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// post sends a body of some bytes, and returns the code and the answer. The server may end a connection before it has
// read the whole body.
func post(client *http.Client, address, token string, size int64) (code int, text string, err error) {
	request, err := http.NewRequest(http.MethodPost, address, io.LimitReader(zeros{}, size))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(data), err
}

// peak returns the most memory that a process has had, in MiB.
func peak(t *testing.T, pid int) (mib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("only Linux shows the memory of a process")
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	if _, err := fmt.Sscan(string(rest), &mib); err != nil {
		t.Fatal(err)
	}
	return mib / 1024
}

// lensKeepsNothingOfStrangers checks that a client without valid credentials neither fills the memory of the lens nor
// writes into its ledger. A known user gets the API server's limits.
func lensKeepsNothingOfStrangers(t *testing.T, c *Cluster) {
	maps := "/api/v1/namespaces/default/configmaps"
	stranger := usersClient(t, c, "carol")
	stranger.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = nil
	before := peak(t, c.pid(Lens))
	for _, token := range []string{"", "invented"} {
		for _, name := range []string{strings.Repeat("x", 900<<10), "\x1b[2J\nforged"} {
			address := c.address() + maps + "/" + url.PathEscape(name)
			for _, query := range []string{"", "?timeout=wrong", "?watch=1"} {
				request, err := http.NewRequest(http.MethodGet, address+query, nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("User-Agent", "forged/1")
				if token != "" {
					request.Header.Set("Authorization", "Bearer "+token)
				}
				if answer, err := stranger.Do(request); err == nil {
					_ = answer.Body.Close()
				}
			}
		}
		code, text, err := post(stranger, c.address()+maps, token, 300<<20)
		if err == nil && code != http.StatusUnauthorized && code != http.StatusForbidden {
			t.Errorf("a stranger: %d %s", code, text)
		}
	}
	if after := peak(t, c.pid(Lens)); after > before+100 {
		t.Errorf("600 MiB of a stranger made the lens grow from %d to %d MiB", before, after)
	}
	mustKubectl(t, c.Kubeconfig(), "create", "rolebinding", "dave", "-n", "default", "--clusterrole=edit", "--user=dave")
	dave := usersClient(t, c, "dave")
	for _, size := range []int64{3 << 20, 3<<20 + 1, 50 << 20} {
		direct, through := c.api(maps), c.address()+maps
		code, text, err := post(dave, through, "", size)
		want, wantText, wantErr := post(dave, direct, "", size)
		if err == nil && wantErr == nil && (code != want || strings.TrimSpace(text) != strings.TrimSpace(wantText)) {
			t.Errorf("%d bytes: %d %s, the API server itself: %d %s", size, code, text, want, wantText)
		}
		if size == 3<<20+1 && (code != http.StatusRequestEntityTooLarge || err != nil) {
			t.Errorf("%d bytes: %d %s %v", size, code, text, err)
		}
	}
	token := strings.TrimSpace(mustKubectl(t, c.Kubeconfig(), "create", "token", "default", "-n", "default"))
	if code, text, err := post(stranger, c.address()+maps, token, 10); code != http.StatusForbidden || err != nil {
		t.Errorf("a service account: %d %s %v", code, text, err)
	}
	var strangers, accounts []string
	eventually(t, "the service account is recorded", func() bool {
		strangers, accounts = nil, nil
		err := loop.Read(t.Context(), c.Ledger(), false, func(r loop.Record) error {
			if r.By.Name == "forged" || strings.Contains(r.Name, "forged") {
				strangers = append(strangers, r.Text())
			}
			if r.By.User == "" && r.Verb == "create" && r.Code == http.StatusForbidden {
				accounts = append(accounts, r.Text())
			}
			return nil
		})
		return err == nil && len(accounts) > 0
	})
	if len(strangers) > 0 || len(accounts) != 1 {
		t.Errorf("strangers wrote %q, service accounts %q", strangers, accounts)
	}
	if about, err := os.Stat(c.Ledger()); err != nil || about.Size() > 4<<20 {
		t.Errorf("the ledger has %d bytes (%v)", about.Size(), err)
	}
}
