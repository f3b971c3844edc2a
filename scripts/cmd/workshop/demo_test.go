package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// A demo that was interrupted leaves a MyWeb with children. An operator of the reader, or of another demo, may still
// work. The next demo removes the MyWeb, and names the operator.
func TestADemoBeginsClean(t *testing.T) {
	root, err := filepath.Abs("../../..")
	testkit.Must(t, err)
	w := workshop{root: root, state: filepath.Join(t.TempDir(), ".workshop")}
	chapter := filepath.Join(root, "04-controller-runtime")
	t.Cleanup(func() {
		if err := w.cluster().Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	crd := filepath.Join(chapter, "config", "crd", "operator.k8s-summit.org_mywebs.yaml")
	testkit.Must(t, w.bringUp(t.Context(), crd))
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
	if err := w.removeSample(t.Context(), chapter); err != nil {
		t.Fatalf("nothing was left: %v", err)
	}
	kubectl("apply", "-f", "config/samples/myweb.yaml")
	uid := kubectl("get", "myweb", "myweb", "-o", "jsonpath={.metadata.uid}")
	kubectl("create", "configmap", "myweb")
	kubectl("label", "configmap", "myweb", "app.kubernetes.io/instance=myweb")
	kubectl("patch", "configmap", "myweb", "-p", `{"metadata":{"ownerReferences":[{"kind":"MyWeb","name":"myweb",`+
		`"apiVersion":"operator.k8s-summit.org/v1","uid":"`+uid+`"}]}}`)
	testkit.Must(t, w.removeSample(t.Context(), chapter))
	if left := kubectl("get", "mywebs,configmaps", "-l", "app.kubernetes.io/instance=myweb", "-o", "name"); left != "" {
		t.Errorf("the MyWeb is removed, but there is %s", left)
	}

	testkit.Must(t, w.noOperator(t.Context()))
	// The name of the file is that of the program for the API server.
	operator := filepath.Join(t.TempDir(), "another-operator\u202e")
	testkit.Must(t, os.Symlink(filepath.Join(w.bin(), "kubectl"), operator))
	watch := run(operator, "get", "mywebs", "--watch")
	testkit.Must(t, watch.Start())
	for begin := time.Now(); err == nil && time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
		err = w.noOperator(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), `another-operator\u202e (process`) {
		t.Errorf("an operator works: %v", err)
	}
	_ = watch.Process.Kill()
	_ = watch.Wait()
	if err := w.noOperator(t.Context()); err != nil {
		t.Errorf("its process has ended: %v", err)
	}
}
