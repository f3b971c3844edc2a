package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// A checkout is a small repository with the real scripts/workshop, which builds a program that prints
// its arguments.
type checkout struct {
	t    *testing.T
	root string
}

func newCheckout(t *testing.T) checkout {
	t.Helper()
	c := checkout{t, filepath.Join(t.TempDir(), `a learner's "checkout"`)}
	script := testkit.Read(t, "../../workshop")
	c.write("scripts/workshop", script)
	c.write("scripts/go.mod", "module example.test/scripts\n\ngo 1.26.0\n")
	c.program("one")
	return c
}

func (c checkout) write(path, text string) {
	c.t.Helper()
	testkit.Write(c.t, filepath.Join(c.root, path), text)
}

func (c checkout) program(greeting string) {
	c.write("scripts/cmd/workshop/main.go", `package main

import ("fmt"; "os")

func main() { fmt.Printf("`+greeting+` %q\n", os.Args[1:]) }
`)
	c.age("scripts/cmd/workshop/main.go", -time.Second) // newer than the program that was just built
}

// age sets the time of a file to the given duration ago.
func (c checkout) age(path string, by time.Duration) {
	c.t.Helper()
	then := time.Now().Add(-by)
	testkit.Must(c.t, os.Chtimes(filepath.Join(c.root, path), then, then))
}

// settle makes all sources older than the program.
func (c checkout) settle() {
	c.t.Helper()
	c.age("scripts/cmd/workshop/main.go", time.Hour)
	c.age("scripts/go.mod", time.Hour)
}

func (c checkout) command(args ...string) *exec.Cmd {
	cmd := exec.Command("scripts/workshop", args...)
	cmd.Dir = c.root
	return cmd
}

// run runs scripts/workshop and returns its output, and whether it succeeded.
func (c checkout) run(args ...string) (string, bool) {
	out, err := c.command(args...).CombinedOutput()
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(c.root), "*", "bin", ".workshop.*")); len(left) > 0 {
		c.t.Errorf("left behind: %q", left)
	}
	return string(out), err == nil
}

func (c checkout) says(want string, args ...string) {
	c.t.Helper()
	if out, ok := c.run(args...); !ok || !strings.HasSuffix(out, want+"\n") {
		c.t.Errorf("succeeded: %v, it says:\n%s\nwanted at its end: %s", ok, out, want)
	}
}

// fails requires a failure that names the reason and the fix.
func (c checkout) fails(reason, fix string) {
	c.t.Helper()
	if out, ok := c.run(); ok || !strings.Contains(out, reason) || !strings.Contains(out, fix) {
		c.t.Errorf("succeeded: %v, it says:\n%s\nwanted: %s … %s", ok, out, reason, fix)
	}
}

// pathWithout makes a PATH with the programs that the script uses, where `go` is the given shell script or missing.
func pathWithout(t *testing.T, goScript string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bash", "env", "dirname", "find", "mkdir", "mv", "rm", "sleep"} {
		real, err := exec.LookPath(name)
		testkit.Must(t, err)
		testkit.Must(t, os.Symlink(real, filepath.Join(dir, name)))
	}
	if goScript != "" {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, "go"), []byte("#!/usr/bin/env bash\n"+goScript), 0o755))
	}
	return dir
}

func TestTheScriptBuildsWhenTheSourceIsNewer(t *testing.T) {
	c := newCheckout(t)
	decoy := t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(decoy, "scripts"), 0o755))
	t.Setenv("CDPATH", decoy)
	c.says(`one ["a b" "'"]`, "a b", "'")
	c.settle()
	c.write("scripts/cmd/workshop/main_test.go", "package main")
	c.age("scripts/cmd/workshop/main_test.go", -time.Minute)
	if out, ok := c.run(); !ok || out != "one []\n" {
		t.Errorf("with nothing to build it says: %s", out)
	}
	c.program("two")
	c.says("two []")
	c.settle()
	t.Setenv("PATH", pathWithout(t, ""))
	c.says("two []") // a built program needs no Go
}

func TestTheScriptNamesReasonAndFix(t *testing.T) {
	c := newCheckout(t)
	c.says("one []")
	c.write("scripts/cmd/workshop/main.go", "package main\n\nfunc main() { nonsense() }\n")
	c.age("scripts/cmd/workshop/main.go", -time.Minute)
	c.fails("undefined: nonsense", "Fix: ")
	path := os.Getenv("PATH")
	for what, fake := range map[string]struct{ script, reason string }{
		"no Go": {"", "Go is not installed"},
		"an old Go": {
			`if [ "$1" = env ]; then echo go1.20.14; else echo "invalid go version" >&2; exit 1; fi`, "go1.20.14"},
		"a broken Go":    {`echo "go: cannot find GOROOT" >&2; exit 2`, "cannot find GOROOT"},
		"no newer to be": {`echo "go: download go1.26.0: dial tcp: no such host" >&2; exit 1`, "no such host"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Setenv("PATH", pathWithout(t, fake.script))
			checkout{t, c.root}.fails(fake.reason, "https://go.dev/dl/")
		})
	}
	t.Setenv("PATH", path)
	c.settle()
	c.says("one []") // nothing was lost
}

func TestTheScriptIgnoresSettingsForOtherProjects(t *testing.T) {
	for what, set := range hostile {
		t.Run(what, func(t *testing.T) {
			c := newCheckout(t)
			set(t, filepath.Dir(c.root))
			c.says("one []")
		})
	}
}

func TestTwoScriptsAtOnce(t *testing.T) {
	c := newCheckout(t)
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			if out, err := c.command(fmt.Sprint(i)).CombinedOutput(); err != nil ||
				!strings.HasSuffix(string(out), fmt.Sprintf("one [\"%d\"]\n", i)) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	c.settle()
	c.says("one []")
}

func TestCtrlCStopsTheScript(t *testing.T) {
	c := newCheckout(t)
	c.says("one []")
	c.program("two")
	// Like the go command, this command ends itself at the signal with its own exit code.
	t.Setenv("PATH", pathWithout(t, `case $1 in
env) [ "$2" = GOVERSION ] && echo go1.26.0 || echo host;;
build) trap 'exit 1' INT; for a; do [ "$p" = -o ] && echo half > "$a"; p=$a; done; while :; do sleep 0.05; done;;
esac`))
	cmd := c.command()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	testkit.Must(t, cmd.Start())
	half := fmt.Sprintf("%s/bin/.workshop.%d", c.root, cmd.Process.Pid)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(half); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not build: %s", &out)
		}
	}
	testkit.Must(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT))
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || strings.Contains(out.String(), "Fix") {
		t.Errorf("it ended with %v and said %s", cmd.ProcessState, &out)
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("half a program is left behind")
	}
	c.settle()
	c.says("one []")
}

func TestABundleComesBeforeTheProgramThatIsBuiltFromIt(t *testing.T) {
	c := newCheckout(t)
	c.write("scripts/cmd/unbundle/main.go", `package main

import ("fmt"; "os")

func main() {
	if os.Args[4] == "bad" { println("error: it is damaged"); os.Exit(3) }
	fmt.Println("file:///modules")
}
`)
	c.write("scripts/cmd/workshop/main.go", `package main

import ("fmt"; "os")

func main() { fmt.Printf("%s %q\n", os.Getenv("GOPROXY"), os.Args[1:]) }
`)
	c.says(`file:///modules ["from-bundle" "--file" "good"]`, "from-bundle", "--file", "good")
	out, err := c.command("from-bundle", "--file", "bad").CombinedOutput()
	if err == nil || string(out) != "error: it is damaged\n" {
		t.Errorf("it says %q (%v)", out, err)
	}
	t.Setenv("GOPROXY", "off")
	c.says(`off ["up"]`, "up")
}
