package env_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"example.com/operator-workshop/00-env/internal/testenv"
)

// Another user of the machine neither reads nor writes the etcd of a test: its port answers only about its health.
func TestTheEtcdOfATestIsPrivate(t *testing.T) {
	folder, err := os.MkdirTemp("", "etcd-test-") // the path of a socket must be short, and that of t.TempDir is long
	testenv.Must(t, err)
	defer os.RemoveAll(folder)
	t.Setenv("TMPDIR", folder)
	env, err := testenv.NewEnvironment()
	testenv.Must(t, err)
	defer func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	}()
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	etcd := env.ControlPlane.Etcd.URL.String()
	every := fmt.Sprintf(`{"key":%q,"range_end":%[1]q}`, base64.StdEncoding.EncodeToString([]byte{0}))
	for _, path := range []string{"/v3/kv/range", "/v3/kv/put"} {
		answer, err := http.Post(etcd+path, "application/json", strings.NewReader(every))
		testenv.Must(t, err)
		text, err := io.ReadAll(io.LimitReader(answer.Body, 200))
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s%s: %s, %v\n%s", etcd, path, answer.Status, err, text)
		}
	}
}
