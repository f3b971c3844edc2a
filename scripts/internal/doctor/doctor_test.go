package doctor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/testkit"
)

func TestAHealthyMachineIsOK(t *testing.T) {
	w := newFixture(t)
	findings := Run(t.Context(), w.Machine)
	if len(findings) != len(checks) {
		t.Fatalf("%d findings for %d checks", len(findings), len(checks))
	}
	for i, finding := range findings {
		if finding.Check != checks[i].name || finding.Status != OK {
			t.Errorf("want ok of %s: %+v", checks[i].name, finding)
		}
		complete(t, finding)
	}
	if worst := Worst(findings); worst != OK {
		t.Errorf("worst is %s", worst)
	}
}

// On every machine, the real parts together give complete findings.
func TestTheLocalMachineGivesCompleteFindings(t *testing.T) {
	for _, finding := range Run(t.Context(), Local(filepath.Join("..", "..", ".."))) {
		complete(t, finding)
		if finding.Check == "Go" && finding.Status != OK { // this test runs with Go
			t.Errorf("want ok: %+v", finding)
		}
	}
}

// A daemon that hangs does not hang the doctor.
func TestAProgramThatHangsIsEnded(t *testing.T) {
	w := newFixture(t)
	w.script("docker", "kill -STOP $$")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	got := checkDocker(ctx, w.Machine)
	if got.Status != Warning || !strings.Contains(got.What, "no answer in time") {
		t.Errorf("got %+v", got)
	}
}

// The fix of the proxies is run by a real shell.
func TestTheFixForTheProxiesFixes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	proxies := named(t, "Proxies")
	for _, earlier := range []string{"", "no_proxy=example.com", "NO_PROXY=example.com"} {
		w := newFixture(t)
		t.Setenv("http_proxy", "http://proxy:3128")
		name, value, _ := strings.Cut(earlier, "=")
		if name != "" {
			t.Setenv(name, value)
		}
		fix := exec.Command(bash, "-c", proxies.run(t.Context(), w.Machine).Fix+"\n"+`printf %s "$NO_PROXY"`)
		list, err := fix.Output()
		testkit.Must(t, err)
		if !strings.Contains(string(list), value) {
			t.Errorf("%s: %s has lost what was there", earlier, list)
		}
		t.Setenv("no_proxy", string(list))
		if got := proxies.run(t.Context(), w.Machine); got.Status != OK {
			t.Errorf("%s: still %+v", earlier, got)
		}
	}
}

func TestPrint(t *testing.T) {
	findings := []Diagnosis{
		{Check: "Go", Status: OK, What: "go1.26.8 (/usr/local/go/bin/go)"},
		{Check: "inotify", Status: Warning, What: "Half of it.", Why: strings.Repeat("much ", 17) + "more",
			Fix: "Do this:\nmake up"},
		{Check: "Docker", Status: NotApplicable, What: "not found"},
		{Check: "Memory", Status: Failure, What: "Little.", Why: "Much.", Fix: "More."},
	}
	const want = `ok    Go       go1.26.8 (/usr/local/go/bin/go)
warn  inotify
      what  Half of it.
      why   much much much much much much much much much much much much much much much much much
            more
      fix   Do this:
            make up
n/a   Docker   not found
FAIL  Memory
      what  Little.
      why   Much.
      fix   More.
4 checks, 1 ok, 1 warn, 1 FAIL, 1 n/a
`
	var plain, colourful strings.Builder
	if err := Print(&plain, findings, false); err != nil || plain.String() != want {
		t.Errorf("got %v\n%s", err, plain.String())
	}
	testkit.Must(t, Print(&colourful, findings, true))
	for _, word := range []string{"\x1b[32mok  \x1b[0m", "\x1b[33mwarn\x1b[0m", "\x1b[31mFAIL\x1b[0m"} {
		if !strings.Contains(colourful.String(), word) {
			t.Errorf("%q is missing in %q", word, colourful.String())
		}
	}
}

func TestTheVersionIsThatOfTheWorkshop(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "versions.yaml"))
	testkit.Must(t, err)
	var pins struct {
		Go string `json:"go"`
	}
	testkit.Must(t, yaml.Unmarshal(data, &pins))
	if minimumGo != "go"+pins.Go {
		t.Errorf("%s is not what scripts/versions.yaml says: %+v", minimumGo, pins)
	}
}
