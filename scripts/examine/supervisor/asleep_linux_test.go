package supervisor

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/operator-workshop/scripts/examine/output"
)

// TestAsleep has programs that wait, and programs that need a processor, one of each with a child.
func TestAsleep(t *testing.T) {
	for program, want := range map[string]bool{
		"exec sleep 300":                      true,
		"sleep 300; exit":                     true,
		"while :; do :; done":                 false,
		"sh -c 'while :; do :; done'; exit":   false,
		"sleep 300 & while :; do :; done":     false,
		"kill -STOP $$; exit # it is stopped": false,
	} {
		t.Run(program, func(t *testing.T) {
			words := &output.Buffer{}
			p, err := Start(Command{Path: script(t, "echo begun\n"+program), Env: os.Environ(), Output: words})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			eventually(t, "it has begun", func() bool { return strings.Contains(words.String(), "begun") })
			eventually(t, "it is as wanted", func() bool { return p.Asleep() == want })
			for range 20 {
				if !want && p.Asleep() {
					t.Fatal("it is asleep")
				}
			}
			if p.Kill(); p.Asleep() {
				t.Error("it has ended, and is asleep")
			}
		})
	}
}

// TestPriority gives this process the priority of a supervisor, and takes it away again.
func TestPriority(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the system gives this priority to root")
	}
	defer lowerPriority()
	for _, step := range []struct {
		change func()
		want   uint32
	}{{raisePriority, unix.SCHED_FIFO}, {lowerPriority, unix.SCHED_NORMAL}} {
		step.change()
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name())
			if now, err := unix.SchedGetAttr(id, 0); err == nil && now.Policy != step.want {
				t.Errorf("thread %d has policy %d, want %d", id, now.Policy, step.want)
			}
		}
	}
}
