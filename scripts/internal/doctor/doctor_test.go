package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/lock"
)

func TestAHealthyMachineIsOK(t *testing.T) {
	w := newFixture(t)
	findings := Examine(t.Context(), w.Machine)
	if len(findings) != len(checks) {
		t.Fatalf("%d findings for %d checks", len(findings), len(checks))
	}
	for i, finding := range findings {
		if finding.Check != checks[i].name {
			t.Errorf("finding %d is %q, want %q", i, finding.Check, checks[i].name)
		}
		if finding.Status != OK {
			t.Errorf("want ok: %+v", finding)
		}
		complete(t, finding)
	}
	if worst := Worst(findings); worst != OK {
		t.Errorf("worst is %s", worst)
	}
}

// Whatever this machine is like, the real parts together give complete findings.
func TestTheLocalMachineGivesCompleteFindings(t *testing.T) {
	findings := Examine(t.Context(), Local(t.TempDir(), t.TempDir()))
	for _, finding := range findings {
		complete(t, finding)
	}
}

func TestAHangingCheckDoesNotDelayTheOthers(t *testing.T) {
	saved := checks
	t.Cleanup(func() { checks = saved })
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	checks = []check{
		{name: "deaf", run: func(context.Context, Machine) Finding { <-release; return okay("late") }},
		{name: "quick", run: func(context.Context, Machine) Finding { return okay("done") }},
	}
	findings := Examine(t.Context(), Machine{Limit: 2 * time.Second})
	if findings[0].Status != Warning || findings[0].What != "No answer within 2s." {
		t.Errorf("the deaf one: %+v", findings[0])
	}
	complete(t, findings[0])
	if findings[1].Status != OK {
		t.Errorf("the quick one: %+v", findings[1])
	}
}

func TestAnInterruptIsNotTakenForAHang(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, finding := range Examine(ctx, newFixture(t).Machine) {
		if finding.Status != Warning || !strings.Contains(finding.What, "Interrupted") {
			t.Errorf("got %+v", finding)
		}
	}
}

func TestTheEndOfTheTimeEndsWhatAProgramStarted(t *testing.T) {
	w := newFixture(t)
	started, hangs := w.fifo(), w.fifo()
	// The shell below the script says that it is there, then waits for a line that never comes.
	w.script("hang", `/bin/sh -c 'echo > "$1"; read line < "$2"' sh "$@" & wait`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		os.ReadFile(started)
		cancel()
	}()
	if _, err := w.Run(ctx, "hang", started, hangs); err == nil {
		t.Error("no error")
	}
	// A pipe that nobody reads cannot be opened for writing without waiting.
	pipe, err := os.OpenFile(hangs, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if !errors.Is(err, syscall.ENXIO) {
		pipe.Close()
		t.Errorf("the child of the program lives on: %v", err)
	}
}

func TestRunReportsWhatTheProgramPrinted(t *testing.T) {
	w := newFixture(t)
	w.script("fail", "echo part; echo reason >&2; exit 3")
	out, err := w.Run(t.Context(), "fail", "now")
	if out != "part\n" || err == nil || err.Error() != "run fail now: reason (exit status 3)" {
		t.Errorf("got %q, %v", out, err)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Errorf("%v wraps no exit error", err)
	}
}

func TestDiskFree(t *testing.T) {
	if free, err := diskFree(t.TempDir()); err != nil || free == 0 {
		t.Errorf("got %d, %v", free, err)
	}
	if _, err := diskFree(filepath.Join(t.TempDir(), "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestAnExclusiveLockCanBeTakenWhileADoctorLooks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etcd.pid")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	if held, err := lock.Held(path); held || err != nil {
		t.Errorf("another doctor's shared lock was taken for a component: %t, %v", held, err)
	}
}

// The fix of the proxies is run by a real shell.
func TestTheFixForTheProxiesFixes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, earlier := range []string{"", "no_proxy=example.com", "NO_PROXY=example.com"} {
		w := newFixture(t)
		t.Setenv("http_proxy", "http://proxy:3128")
		name, value, _ := strings.Cut(earlier, "=")
		if name != "" {
			t.Setenv(name, value)
		}
		fix := exec.Command(bash, "-c", w.finding("Proxies").Fix+"\n"+`printf %s "$NO_PROXY"`)
		list, err := fix.Output()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(list), value) {
			t.Errorf("%s: %s has lost what was there", earlier, list)
		}
		t.Setenv("no_proxy", string(list))
		if got := w.finding("Proxies"); got.Status != OK {
			t.Errorf("%s: still %+v", earlier, got)
		}
	}
}

func TestWorst(t *testing.T) {
	for sentence, test := range map[string]struct {
		have []Status
		want Status
	}{
		"nothing":                         {nil, OK},
		"not applicable is no fault":      {[]Status{NotApplicable, OK}, OK},
		"a warning above not applicable":  {[]Status{Warning, NotApplicable}, Warning},
		"a failure, wherever it stands":   {[]Status{OK, Failure, Warning, NotApplicable}, Failure},
		"not applicable and nothing else": {[]Status{NotApplicable}, OK},
	} {
		t.Run(sentence, func(t *testing.T) {
			var findings []Finding
			for _, status := range test.have {
				findings = append(findings, Finding{Status: status})
			}
			if got := Worst(findings); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"https://jane:pw@host/x":           "https://host/x",
		"https://token@host":               "https://host",
		`bad "http://a:b@c@host": no`:      `bad "http://host": no`,
		"a:b@host:1":                       "host:1",
		"see k8s.io/api@v0.37.1":           "see k8s.io/api@v0.37.1",
		"http://a:b@x,http://c:d@y":        "http://x,http://y",
		"red \x1b[31mtext\nand \ta second": "red  [31mtext\nand  a second",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestPrint(t *testing.T) {
	findings := []Finding{
		{Check: "Go", What: "go1.26.8 (/usr/local/go/bin/go)"},
		{Check: "Local cluster", Status: Warning, What: "Half of it.", Why: "It matters.",
			Fix: "Do this:\nmake up"},
		{Check: "Docker", Status: NotApplicable, What: "not found"},
		{Check: "Memory", Status: Failure, What: "Little.", Why: "Much.", Fix: "More."},
	}
	const want = `ok    Go             go1.26.8 (/usr/local/go/bin/go)
warn  Local cluster
      what  Half of it.
      why   It matters.
      fix   Do this:
            make up
n/a   Docker         not found
FAIL  Memory
      what  Little.
      why   Much.
      fix   More.
4 checks: 1 ok, 1 warning, 1 failure, 1 not applicable
`
	var plain, colourful strings.Builder
	if err := Print(&plain, findings, false); err != nil || plain.String() != want {
		t.Errorf("got %v\n%s", err, plain.String())
	}
	if err := Print(&colourful, findings, true); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"\x1b[32mok  \x1b[0m", "\x1b[33mwarn\x1b[0m", "\x1b[31mFAIL\x1b[0m"} {
		if !strings.Contains(colourful.String(), word) {
			t.Errorf("%q is missing in %q", word, colourful.String())
		}
	}
}

func TestPrintCountsInWords(t *testing.T) {
	for want, statuses := range map[string][]Status{
		"0 checks: 0 ok\n":             nil,
		"1 check: 1 ok\n":              {OK},
		"3 checks: 1 ok, 2 warnings\n": {OK, Warning, Warning},
		"2 checks: 0 ok, 2 failures\n": {Failure, Failure},
	} {
		var findings []Finding
		for _, status := range statuses {
			findings = append(findings, Finding{Check: "x", Status: status})
		}
		var out strings.Builder
		if err := Print(&out, findings, false); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("want %q at the end of %q (%v)", want, out.String(), err)
		}
	}
}

// Every sentence that a check can say fits; only a single long word, such as a path, may stick out.
func TestPrintKeepsLinesShort(t *testing.T) {
	var findings []Finding
	for name, cases := range scenes {
		for sentence, scene := range cases {
			t.Run(name+": "+sentence, func(t *testing.T) {
				w := newFixture(t)
				scene.set(w)
				findings = append(findings, w.finding(name))
			})
		}
	}
	var out strings.Builder
	if err := Print(&out, findings, false); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\n")
		longWord := slices.ContainsFunc(strings.Fields(line), func(word string) bool { return len(word) > 60 })
		if utf8.RuneCountInString(line) > 100 && !longWord {
			t.Errorf("too long: %s", line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("blanks at the end: %q", line)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestPrintReportsAnErrorOfTheWriter(t *testing.T) {
	if err := Print(brokenPipe{}, nil, false); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
}

func TestTheVersionsAreThoseOfTheWorkshop(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "versions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var pins struct {
		Go      string            `json:"go"`
		Modules map[string]string `json:"modules"`
	}
	if err := yaml.Unmarshal(data, &pins); err != nil {
		t.Fatal(err)
	}
	if minimumGo != "go"+pins.Go || DefaultProbe != "k8s.io/api@"+pins.Modules["k8s.io/api"] {
		t.Errorf("%s and %s are not what scripts/versions.yaml says: %+v", minimumGo, DefaultProbe, pins)
	}
}
