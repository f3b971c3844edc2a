package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/lock"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// A demo that was interrupted leaves a MyWeb with children. An operator of the reader, or another demo, may still work.
// The next demo waits for the other demo, names the operator, removes the MyWeb, and names a finalizer that keeps it.
func TestADemoBeginsClean(t *testing.T) {
	l := newLearner(t)
	w := workshop{root: l.root, state: filepath.Join(l.root, ".workshop")}
	chapter, demo := filepath.Join(l.root, "04-controller-runtime"), "demo 04-controller-runtime"
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = chapter, w.pageEnv()
		return cmd
	}
	kubectl := func(args ...string) string {
		out, err := run(filepath.Join(w.bin(), "kubectl"), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	l.interrupted(demo, "service/myweb ")
	testkit.Must(t, w.removeSample(t.Context(), chapter))
	if left := kubectl("get", "mywebs,configmaps", "-l", "app.kubernetes.io/instance=myweb", "-o", "name"); left != "" {
		t.Errorf("the MyWeb is removed, but there is %s", left)
	}
	release, err := lock.Acquire(t.Context(), filepath.Join(w.state, "demo.lock"), nil)
	testkit.Must(t, err)
	l.interrupted(demo, "another demo runs on this cluster")
	release()

	// The name of the file is that of the program for the API server.
	operator := filepath.Join(t.TempDir(), "another-operator\u202e")
	testkit.Must(t, os.Symlink(filepath.Join(w.bin(), "kubectl"), operator))
	watch := run(operator, "get", "mywebs", "--watch")
	testkit.Must(t, watch.Start())
	for begin := time.Now(); err == nil && time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
		err = w.noOperator(t.Context())
	}
	l.answers(false, demo, "", "another operator works on the MyWebs of this cluster", `another-operator\u202e (process`)
	_ = watch.Process.Kill()
	_ = watch.Wait()

	kubectl("apply", "-f", "config/samples/myweb.yaml")
	kubectl("patch", "myweb", "myweb", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/mine"]}}`)
	l.answers(false, demo, "", "left from before", `these finalizers: ["example.com/mine"]`, "make down")
}
