package lock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestMain lets this program act as another process: it takes the lock and holds it until it is killed or its standard
// input ends. It must wait for input, because Go's runtime ends a program in which all goroutines are blocked.
func TestMain(m *testing.M) {
	if path := os.Getenv("LOCK_TEST_HOLD"); path != "" {
		release, err := Acquire(context.Background(), path, func(string) {})
		fmt.Println("held:", err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		release()
		return
	}
	os.Exit(m.Run())
}

// hold starts a process that holds the lock.
func hold(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOCK_TEST_HOLD="+path)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	if _, err := cmd.StdinPipe(); err != nil { // stays open until Wait
		t.Fatal(err)
	}
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held: <nil>\n" {
		t.Fatalf("the other process says %q (%v)", line, err)
	}
	return cmd
}

func TestAWaiterLearnsTheOwnerAndFollowsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	other := hold(t, path)
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("Try of a held lock: %v", err)
	}
	calls := 0
	host, err := os.Hostname()
	testkit.Must(t, err)
	release, err := Acquire(t.Context(), path, func(owner string) {
		calls++
		if want := fmt.Sprintf("%d on %s", other.Process.Pid, host); owner != want {
			t.Errorf("the owner is said to be %q, it is %s", owner, want)
		}
		_ = other.Process.Kill() // kill -9: the kernel alone can release the lock
	})
	if err != nil || calls != 1 {
		t.Fatalf("after the owner was killed: %v, %d calls", err, calls)
	}
	release()
	if held, err := Held(path); held || err != nil {
		t.Errorf("a released lock: held %v, %v", held, err)
	}
}

func TestAWaiterCanBeInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	hold(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Acquire(ctx, path, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted wait returned %v", err)
	}
}

func TestALockOutlivesItsFileOnlyForItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	hold(t, path)
	testkit.Must(t, os.Remove(path))
	f, err := Try(path) // a new file, a new lock
	testkit.Must(t, err)
	defer f.Close()
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("the new lock excludes nobody: %v", err)
	}
}

func TestExclusionHoldsWhenEachHolderRemovesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				f, err := Try(path)
				if errors.Is(err, ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if !inside.TryLock() || !isAt(f, path) {
					t.Error("two hold the lock, or one holds that of a file that is gone")
					return
				}
				inside.Unlock()
				_ = os.Remove(path) // from here on the lock guards nothing, as after the last step of `down`
				_ = f.Close()       // the lock ends with the open file
			}
		})
	}
	all.Wait()
}

func TestAskersDoNotTakeEachOtherForTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if held, err := Held(path); held || err != nil {
		t.Fatalf("a lock without a file: held %v, %v", held, err)
	}
	testkit.Must(t, os.WriteFile(path, nil, 0o600))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for until := time.Now().Add(50 * time.Millisecond); time.Now().Before(until); {
				if held, err := Held(path); held || err != nil {
					t.Errorf("nobody holds it, the answer was %v, %v", held, err)
					return
				}
			}
		})
	}
	all.Wait()
	hold(t, path)
	if held, err := Held(path); !held || err != nil {
		t.Errorf("another process holds it, the answer was %v, %v", held, err)
	}
}
