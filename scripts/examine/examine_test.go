package examine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/pod"
)

// build compiles the operator of these tests.
func build(t *testing.T, flags ...string) string { return buildOf(t, "testoperator", flags...) }

// buildOf compiles one of the operators of these tests.
func buildOf(t *testing.T, name string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	args := slices.Concat([]string{"build", "-o", program}, flags, []string{"./" + name})
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func greeting(program string, env ...string) Subject {
	return Subject{Program: program, CRD: "testoperator/config/crd.yaml", Sample: "testoperator/config/sample.yaml",
		Role: []string{"testoperator/config/role.yaml", "testoperator/config/leader_election_role.yaml"},
		Env:  env, Fast: true}
}

// TestPlantedFaultsAreFound examines the unchanged operator, and the operator with each of its faults, on a real API
// server.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	plantedFaults(t, map[string]planted{
		"as it is: a permission too many, and a port that server-side apply cannot restore once its key is edited": {nil,
			[]string{"steady-state", "drift", "permissions"}, "drift permissions", []string{"update deployments.apps"}},
		"a hot loop": {[]string{"FAULT=hot-loop"}, []string{"steady-state"}, "steady-state",
			[]string{"apply greetings.test.example.com/status every"}},
		"children that it polls": {[]string{"FAULT=polls"}, []string{"steady-state"}, "steady-state",
			[]string{"it reads without a watch: configmaps, deployments.apps, services\n"}},
		"samples that it polls": {[]string{"FAULT=polls-samples"}, []string{"steady-state"}, "steady-state",
			[]string{"it reads without a watch: greetings.test.example.com\n"}},
		"children that it does not watch": {[]string{"FAULT=unwatching"}, []string{"drift"}, "drift",
			[]string{"a deleted configmaps/hello comes back](#drift): ", "; the operator does not watch configmaps", "it does not watch this kind"}},
		"a child that is not restored": {[]string{"FAULT=no-drift"}, []string{"drift"}, "drift",
			[]string{"**failed**: a deleted configmaps/hello comes back: ", "; the operator watches configmaps",
				"it watches this kind, and does not react to the deletion"}},
		"a log without end": {[]string{"FAULT=nags"}, []string{"faults"}, "faults",
			[]string{"its log stays short while writes fail](#api-faults): it printed a message ",
				"**passed**: recovers from 500"}},
		"a refusal that nobody hears of": {[]string{"FAULT=gives-up"}, []string{"admission"}, "admission", []string{
			"neither the status nor an event reports it; meanwhile it did not make deployments.apps/hello, services/hello"}},
		"a refusal that the status reports only at the end of each reconcile": {[]string{"FAULT=flaps"},
			[]string{"admission"}, "admission", []string{"without exponential backoff; as undisturbed"}},
		"writes that change nothing": {[]string{"FAULT=blind"}, []string{"creation", "restart"}, "creation restart",
			[]string{"a restarted operator writes nothing needless"}},
		"a deletion timestamp that nobody looks at": {[]string{"FAULT=ignores-deletion"}, []string{"deletion"}, "deletion",
			[]string{"for a sample that has a deletion timestamp"}},
		"an unsorted list, in which other values stand in each run": {[]string{"FAULT=flips"}, []string{"restart"}, "restart",
			[]string{"1 writes over an object that was as it should be"}},
		"an object of another user that it takes": {[]string{"FAULT=adopts"}, []string{"ownership"}, "ownership",
			[]string{"configmaps/hello that has no owner stays](#names-that-are-taken): the operator changed it",
				"**passed**: an object with the name of configmaps/hello that has another owner stays"}},
		"two that work at once": {[]string{"FAULT=no-lease"}, []string{"replicas"}, "replicas",
			[]string{"two replicas both write"}},
	})
}

// TestWithoutACustomResource has a replicator of ConfigMaps, in one namespace and into another, an operator that makes
// PodDisruptionBudgets for Deployments, and an operator whose custom resource has its fields at its root.
func TestWithoutACustomResource(t *testing.T) {
	t.Parallel()
	type test struct {
		sample, fault string
		only          []string
		fail          string
		say           []string
	}
	const configMap, elsewhere, note, deployment = "configmap.yaml", "elsewhere.yaml", "note.yaml", "deployment.yaml"
	tests := []test{
		{configMap, "", []string{"drift", "spec"}, "", []string{"**passed**: data.text becomes \"welcomex\": it reached " +
			"configmaps/hello-copy.data.text", "**passed**: data.text is removed", "**passed**: a deleted configmaps/hello-copy"}},
		{deployment, "", []string{"deletion", "drift", "spec"}, "", []string{
			"**passed**: a deleted poddisruptionbudgets.policy/hello-budget",
			"**passed**: changed fields of poddisruptionbudgets.policy", "copy-to becomes \"hello-budgetx\": it reached"}},
		{configMap, "merges", []string{"spec"}, "spec", []string{"data.examine becomes \"x\"](#spec-changes): after the change " +
			"was undone, the state is not the first one", "data.text is removed](#spec-changes): accepted, and neither"}},
	}
	if os.Getenv("LONG") != "" {
		tests = append(tests,
			test{configMap, "once", []string{"spec"}, "spec", []string{"data.text becomes \"welcomex\"](#spec-changes): accepted"}},
			test{elsewhere, "", []string{"deletion", "ownership", "drift", "spec"}, "", []string{
				"**passed**: a deleted configmaps/team/hello", "it reached configmaps/team/hello.data.text",
				"an object with the name of configmaps/team/hello that has no owner stays: it stayed"}},
			test{configMap, "", []string{"many"}, "", []string{"**passed**: 100 samples are served"}},
			test{elsewhere, "", []string{"many"}, "", []string{"**passed**: 100 samples are served"}},
			test{elsewhere, "once", []string{"spec"}, "spec", []string{"data.text becomes \"welcomex\"](#spec-changes): accepted"}},
			test{elsewhere, "leaves", []string{"deletion"}, "deletion", []string{"configmaps/team/hello is left"}},
			test{configMap, "leaves", []string{"spec"}, "spec", []string{"objects for the other spec are left behind: " +
				"configmaps/hello-copyx", "copy-to is removed](#spec-changes): accepted, and neither"}},
			test{elsewhere, "adopts", []string{"ownership"}, "ownership", []string{"the operator changed it"}},
			test{note, "", []string{"deletion", "spec", "values"}, "", []string{"**passed**: copyTo becomes \"hello-copyx\": it " +
				"reached a child that is gone", "**passed**: data.text becomes \"welcomex\""}},
			test{note, "merges", []string{"spec"}, "spec", []string{"data.examine becomes \"x\"](#spec-changes): after the change " +
				"was undone"}})
	}
	program := buildOf(t, "testreplicator")
	for _, test := range tests {
		t.Run(test.sample+" "+test.fault, func(t *testing.T) {
			t.Parallel()
			s := Subject{Program: program, Sample: "testreplicator/config/" + test.sample, Env: []string{"FAULT=" + test.fault},
				Role: []string{"testreplicator/config/role.yaml"}, Fast: true}
			if test.sample == configMap && test.fault == "leaves" { // FAST=1 does not come to the annotation
				s.Fast, s.Time.Duration = false, 4*time.Minute
			}
			if test.sample == deployment {
				s.Env = append(s.Env, "SOURCE=deployments")
			}
			if test.sample == note {
				s.CRD, s.Env = "testreplicator/config/crd.yaml", append(s.Env, "SOURCE=notes")
			}
			expect(t, s, test.only, test.fail, test.say)
		})
	}
}

// expect examines a subject: some experiments must fail, no other may fail, and the page must have some texts.
func expect(t *testing.T, s Subject, only []string, fail string, say []string) {
	t.Helper()
	report, err := Run(t.Context(), s, Options{Only: only, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if got := failedExperiments(report); got != fail {
		t.Errorf("failed: %q, want %q", got, fail)
	}
	page := report.Markdown()
	for _, text := range say {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not say %q:\n%s", text, page)
		}
	}
}

// TestWithoutFast has faults that an examination with FAST=1 does not look for, and the operator without them.
func TestWithoutFast(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	program := build(t)
	const paused = "a leader that was paused for longer than its lease no longer writes"
	const orphans = "children that a deletion keeps stay, though the operator sees the deletion late"
	for name, test := range map[string]struct {
		fault, only, fail, say string
	}{
		"a paused leader":             {"", "replicas", "", "**passed**: " + paused},
		"a leader without its lease":  {"stubborn", "replicas", "replicas", "writes beside the new leader, and goes on"},
		"a leader that loses it late": {"usual-lease", "replicas", "replicas", "directly after its pause, beside the new leader, and ended 1"},
		"orphans":                     {"", "deletion", "", "**passed**: " + orphans},
		"orphans that it takes back":  {"readopts", "deletion", "deletion", "it took back configmaps/hello, "},
		"a fight with an autoscaler":  {"", "drift", "drift", "nothing slows it down"},
		"no fight with an autoscaler": {"eases", "drift", "drift", "is reported: it restored the replicas 3 times, and then left them"},
		"a slow fight that nobody hears of": {"persists", "drift", "drift",
			"a fight with an autoscaler on deployments.apps/hello is reported](#drift): it restored the replicas "},
		"a slow fight that is reported": {"complains", "drift", "drift",
			"**passed**: a fight with an autoscaler on deployments.apps/hello is reported: the status reports it"},
		"policies that change children": {"", "admission", "",
			"**passed**: a policy keeps .spec.replicas of deployments.apps/hello as it was when spec.replicas changes: "},
		"policies that change other kinds": {"sees-pods", "admission", "admission",
			"a policy changes .data.text of configmaps/hello](#admission): neither the status nor an event reports it; as undisturbed"},
		"a policy that keeps a field": {"sees-creation", "admission", "admission",
			"of deployments.apps/hello as it was when spec.replicas changes](#admission): neither the status nor an event reports it; as undisturbed"},
		"an error that is logged once":   {"", "faults", "", "**passed**: an error that stays is logged once: at most 1 lines"},
		"an error that is logged always": {"repeats", "faults", "faults", "an error that stays is logged once](#api-faults): it logged the same line "},
		"an addition that a policy refuses": {"", "admission", "",
			"**passed**: a policy refuses a container that another client added to deployments.apps/hello: "},
		"an addition that it removes": {"strips", "admission", "admission", "the operator removed a container that another client added"},
		"a refused addition that nobody hears of": {"overlooks", "admission", "admission",
			"added to deployments.apps/hello](#admission): neither the status nor an event reports it; as undisturbed"},
		"a fight about the status":  {"", "drift", "drift", `another client falsified conditions\[Ready\].status 50 times`},
		"no fight about the status": {"calms", "drift", "drift", "**passed**: a client that falsifies the status"},
		"watches that end forever, with the API server": {"deaf", "faults", "faults",
			"killed and restarted](#api-faults): the operator stayed alive; it worked again "},
		"a status that stays false": {"tires", "drift", "drift", "for the last time, the status is still false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := greeting(program, "FAULT="+test.fault, "KUBE_FEATURE_WatchListClient=false")
			s.Fast, s.Time.Duration = false, 4*time.Minute
			expect(t, s, []string{test.only}, test.fail, []string{test.say})
		})
	}
}

// TestAllExperimentsOfSixChildren runs all experiments, without a setting that shortens them.
func TestAllExperimentsOfSixChildren(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	s := greeting(build(t), "MORE=yes")
	s.Fast, s.Role = false, nil // of the test operator it has no permission for three of the children
	report, err := Run(t.Context(), s, Options{Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("it took %v, on an idle machine %v", report.Took, report.Idle)
	if len(report.Children) != 6 {
		t.Errorf("the children are %v", report.Children)
	}
	if left := report.NotTried(); left != "the experiments upgrade" { // it needs an old program
		t.Error("not tried: ", left)
	}
	if report.Idle > 10*time.Minute {
		t.Errorf("an idle machine needs %v", report.Idle)
	}
}

// TestWhatNeverConverges has operators that stop writing before they have done their work.
func TestWhatNeverConverges(t *testing.T) {
	t.Parallel()
	program := build(t)
	faults := map[string][]string{
		"FAULT=invalid": {"apply deployments.apps hello were refused with 422: Deployment.apps \"hello\" is invalid"},
		"FAULT=hangs":   {"a reconcile does not end: it has been under way for"},
	}
	if os.Getenv("LONG") != "" {
		faults["FAULT=asks-by-name"] = []string{"it asks the Service hello.examine-1 over the network",
			"no pod answers: switch off what asks the pods (ARGS=, ENV=, a field"}
		faults["FAULT=huge"] = []string{"Insufficient cpu"}
		faults["FAULT=begins"] = []string{"name that state in READY="}
		faults["FAULT=fails-on"] = []string{"its reconciles end in errors"}
		faults["FAULT=fails-rarely"] = []string{"its reconciles end in errors: 1 so far"}
	}
	for fault, say := range faults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			_, err := Run(t.Context(), greeting(program, fault), Options{Only: []string{"creation"}, Progress: t.Logf})
			for _, part := range append(say, "Fix: ") {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%v, want %q", err, part)
				}
			}
		})
	}
}

// TestWebhooks has operators that make the certificate of their webhook, read it from a Secret, or register the webhook.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	const manifests, certificate = "testoperator/config/webhooks.yaml", "testoperator/config/certificate.yaml"
	const distrust = "ValidatingWebhookConfiguration greetings: tls: failed to verify certificate"
	type test struct {
		fault string
		files []string
		want  string // the error; empty when the webhook must be served
	}
	tests := []test{{"own-ca", []string{manifests}, ""}, {"registers", nil, ""}}
	if os.Getenv("LONG") != "" {
		tests = append(tests, test{"wrong-ca", []string{manifests}, distrust},
			test{"from-secret", []string{manifests, certificate}, ""},
			test{"faints", []string{manifests}, ""},
			test{"from-secret", []string{manifests}, `secrets "greetings" not found`})
	}
	program := build(t)
	for _, test := range tests {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			want := test.want
			s := greeting(program, "FAULT="+test.fault)
			s.Role, s.Webhooks = nil, test.files
			only, failures := "restart", 0
			if test.fault == "faints" { // the webhook has no answer about an extreme value
				only, failures = "values", 1
			}
			report, err := Run(t.Context(), s, Options{Only: []string{only}, Progress: t.Logf})
			if want != "" {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			page, served := report.Markdown(), "Its webhooks were served: ValidatingWebhookConfiguration greetings"
			if report.Count(Failed) != failures || !strings.Contains(page, served) ||
				strings.Contains(page, "its webhook does not answer") != (failures > 0) {
				t.Errorf("the webhook is not trusted:\n%s", page)
			}
		})
	}
}

// TestConversions has a CRD with two versions, and an operator that converts them, and one that does not.
func TestConversions(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	program := build(t)
	for fault, want := range map[string]string{"FAULT=converts": "",
		"FAULT=": "serves no webhooks (the conversion of greetings.test.example.com)"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := greeting(program, fault)
			s.CRD = "testoperator/config/crd_versions.yaml"
			report, err := Run(t.Context(), s, Options{Only: []string{"restart"}, Progress: t.Logf})
			switch {
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%v, want %q", err, want)
			case want == "" && err != nil:
				t.Error(err)
			case want == "" && report.Count(Failed) > 0:
				t.Error(report.Markdown())
			}
		})
	}
}

// TestAnUpgradeThatRestartsPodsIsFound starts the operator over the objects of another version, which had another
// annotation in its pod template, and over objects of the same version.
func TestAnUpgradeThatRestartsPodsIsFound(t *testing.T) {
	t.Parallel()
	program := build(t, "-ldflags=-X main.version=new")
	olds := map[string]string{build(t, "-ldflags=-X main.version=old"): "the pod template of deployments.apps/hello changes"}
	if os.Getenv("LONG") != "" {
		olds[program] = "no pod restarts"
	}
	for old, want := range olds {
		s := greeting(program)
		s.Old = old
		report, err := Run(t.Context(), s, Options{Only: []string{"upgrade"}, Progress: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		if page := report.Markdown(); (report.Count(Failed) == 1) != (old != program) || !strings.Contains(page, want) {
			t.Errorf("the page does not report %q:\n%s", want, page)
		}
	}
}

// TestAFieldWithoutAnEffect has a field on which no child depends. A cluster sets a default only at a creation: a sample
// without the field differs from a new one in its spec alone. Or only an event reports that a value is refused.
func TestAFieldWithoutAnEffect(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	sample := filepath.Join(t.TempDir(), "sample.yaml")
	text := "apiVersion: test.example.com/v1\nkind: Greeting\nmetadata: {name: hello}\nspec: {text: welcome, aside: hi}\n"
	if err := os.WriteFile(sample, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := build(t)
	for fault, want := range map[string]string{
		"FAULT=":          "**passed**: spec.aside is removed: nothing changed, as nothing differs",
		"FAULT=warns":     `**passed**: spec.aside becomes "hix": it reached an event (Warning: spec.aside is invalid)`,
		"FAULT=runs-job":  "a Job of the sample has ended meanwhile, which no operator can undo",
		"FAULT=remembers": `**failed**: spec.aside becomes "hix": after the change was undone, the state is not the first one`,
	} {
		s := greeting(program, fault)
		s.Sample, s.Needs, s.Role = sample, []string{"testoperator/config/defaults.yaml"}, nil
		report, err := Run(t.Context(), s, Options{Only: []string{"spec"}, Progress: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		page := report.Markdown()
		if (report.Count(Failed) > 0) != (fault == "FAULT=remembers") || !strings.Contains(page, want) {
			t.Errorf("%s: the page does not say %q:\n%s", fault, want, page)
		}
	}
}

// TestWhatComesLate has operators that look at their children only at intervals, in a cache and past it.
func TestWhatComesLate(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	program := build(t)
	for _, fault := range []string{"FAULT=resyncs", "FAULT=polls-rarely"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := greeting(program, fault)
			s.Period.Duration = 8 * time.Second
			report, err := Run(t.Context(), s, Options{Only: []string{"drift"}, Progress: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			page := report.Markdown()
			if report.Count(Late) == 0 {
				t.Errorf("nothing came late:\n%s", page)
			}
			if strings.Contains(page, "no longer sees the object") {
				t.Errorf("it sees its objects at each resync:\n%s", page)
			}
		})
	}
}

// TestTheTimeOfDrift has an operator that restores each field only at an interval: the time suffices for some fields.
func TestTheTimeOfDrift(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "FAULT=resyncs")
	s.Period.Duration, s.Time.Duration = 8*time.Second, 20*time.Second
	expect(t, s, []string{"drift"}, "", []string{"fields of the changed children: ",
		"that stayed changed at first were changed alone"})
}

// TestWorkAtIntervals has an operator that works at intervals: after a restart it writes only at the next interval.
func TestWorkAtIntervals(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "FAULT=ticks")
	s.Period.Duration = 8 * time.Second
	report, err := Run(t.Context(), s, Options{Only: []string{"restart", "spec"}, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if got := failedExperiments(report); got != "restart" {
		t.Errorf("failed: %q\n%s", got, report.Markdown())
	}
}

// TestTwoReplicasOnOnePort has an operator whose port no flag moves: two pods can listen on one port, and two processes
// of one machine cannot.
func TestTwoReplicasOnOnePort(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	program := build(t)
	for _, fault := range []string{"FAULT=", "FAULT=listens-late"} {
		for _, outside := range places() {
			port, err := fixture.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			s := greeting(program, fault, fmt.Sprintf("LISTEN=127.0.0.1:%d", port))
			s.Outside = outside
			report, err := Run(t.Context(), s, Options{Only: []string{"replicas"}, Progress: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "cannot listen on one port", false: "one replica sent all"}[outside]
			if page := report.Markdown(); report.Count(Failed) > 0 || !strings.Contains(page, want) {
				t.Errorf("%s, outside a pod %v: the page does not say %q:\n%s", fault, outside, want, page)
			}
		}
	}
}

// places are the values of Subject.Outside on this system.
func places() []bool {
	if pod.Check() != nil {
		return []bool{true}
	}
	return []bool{true, false}
}

// TestWhatOnlyAPodHas has operators that elect a leader by the name or the namespace of their pod.
func TestWhatOnlyAPodHas(t *testing.T) {
	t.Parallel()
	faults := map[string]string{"FAULT=in-a-pod": "two replicas elect a leader only in a pod"}
	if os.Getenv("LONG") != "" {
		faults["FAULT=by-host"] = "have the same identity in their lease"
	}
	program := build(t)
	for fault, want := range faults {
		for _, outside := range places() {
			if !outside {
				want = "one replica sent all"
			}
			s := greeting(program, fault)
			s.Outside = outside
			report, err := Run(t.Context(), s, Options{Only: []string{"replicas"}, Progress: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			if page := report.Markdown(); report.Count(Failed) > 0 || !strings.Contains(page, want) {
				t.Errorf("%s, outside a pod %v: the page does not say %q:\n%s", fault, outside, want, page)
			}
		}
	}
}

// TestAClusterByAFlag has an operator that finds its cluster by a flag alone.
func TestAClusterByAFlag(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "KUBECONFIG=")
	s.Outside = true
	report, err := Run(t.Context(), s, Options{Only: []string{"restart"}, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if page := report.Markdown(); !strings.Contains(page, "no write for the sample in the 2s after the restart") {
		t.Errorf("the operator does not find its cluster:\n%s", page)
	}
}

// TestWithoutANamespace examines the operator of a kind that is cluster-scoped, with children in a namespace.
func TestWithoutANamespace(t *testing.T) {
	t.Parallel()
	program, faults := build(t), map[string]string{"FAULT=": ""} // by fault, the experiments that must fail
	only := []string{"deletion"}
	if os.Getenv("LONG") != "" { // a namespace takes seconds to disappear
		faults["FAULT=no-drift"], only = "drift", []string{"deletion", "drift"}
	}
	for fault, want := range faults {
		s := greeting(program, fault, "SCOPE=Cluster")
		s.CRD, s.Role = "testoperator/config/crd_cluster.yaml", nil
		report, err := Run(t.Context(), s, Options{Only: only, Progress: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		if got := failedExperiments(report); got != want {
			t.Errorf("%s: failed: %q, want %q", fault, got, want)
		}
		if page := report.Markdown(); len(only) > 1 &&
			!strings.Contains(page, "a deleted configmaps/hello/hello comes back: ") ||
			len(only) > 1 && !strings.Contains(page, "a deleted namespaces/hello comes back: ") {
			t.Errorf("%s: a child was not found:\n%s", fault, page)
		}
	}
}

// TestOutsideTheNamespace has an operator that makes a cluster-scoped object for each sample.
func TestOutsideTheNamespace(t *testing.T) {
	t.Parallel()
	program := build(t)
	for fault, want := range map[string][]string{
		"FAULT=publishes": {"**failed**: deleted, it leaves nothing; created again, it works: 20 s after the deletion " +
			"ingressclasses.networking.k8s.io/hello is left", "**failed**: a sample with the same name in another namespace"},
		"FAULT=withdraws": {"**passed**: deleted, it leaves nothing", "**passed**: a sample with the same name in another"},
	} {
		s := greeting(program, fault)
		s.Role = nil
		report, err := Run(t.Context(), s, Options{Only: []string{"deletion"}, Progress: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		page := report.Markdown()
		for _, text := range want {
			if !strings.Contains(strings.NewReplacer("[", "", "](#deletion)", "").Replace(page), text) {
				t.Errorf("%s: the page does not say %q:\n%s", fault, text, page)
			}
		}
		if strings.Contains(page, "ingressclasses.networking.k8s.io/shared") {
			t.Errorf("%s: the object that all share is not of one sample:\n%s", fault, page)
		}
	}
}

// TestWhatItWasGiven has a ConfigMap with the name that the operator writes: the operator adopts it, and so deletes
// it.
func TestWhatItWasGiven(t *testing.T) {
	t.Parallel()
	given := filepath.Join(t.TempDir(), "given.yaml")
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\n"
	if err := os.WriteFile(given, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	s := greeting(build(t), "FAULT=adopts")
	s.Needs, s.Role = []string{given}, nil
	report, err := Run(t.Context(), s, Options{Only: []string{"deletion", "drift", "many"}, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	page := report.Markdown()
	if !strings.Contains(page, "the copies would share configmaps/hello") {
		t.Errorf("copies that share what they were given are judged:\n%s", page)
	}
	if !strings.Contains(page, "it deleted what was there before the sample: configmaps/hello") {
		t.Errorf("nobody says that the given ConfigMap is gone:\n%s", page)
	}
	if strings.Contains(page, "a deleted configmaps/hello comes back") {
		t.Errorf("what it was given it need not restore:\n%s", page)
	}
}

// TestWhatItWasGivenIsDeleted has an operator that deletes an object with the name of a child, and creates the child.
func TestWhatItWasGivenIsDeleted(t *testing.T) {
	t.Parallel()
	given := filepath.Join(t.TempDir(), "given.yaml")
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\n"
	if err := os.WriteFile(given, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	s := greeting(build(t), "FAULT=clears")
	s.Needs, s.Role = []string{given}, nil
	report, err := Run(t.Context(), s, Options{Only: []string{"restart"}, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	say := "it deleted what was there before the sample: configmaps/hello"
	if page := report.Markdown(); !strings.Contains(page, say) {
		t.Errorf("the page does not say that the given ConfigMap is gone:\n%s", page)
	}
}

// TestAnObjectThatItDeletes has the same operator without the ConfigMap: the lab creates it.
func TestAnObjectThatItDeletes(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "FAULT=clears")
	s.Role = nil // of the test operator it has no permission to delete
	report, err := Run(t.Context(), s, Options{Only: []string{"ownership"}, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	say := "configmaps/hello that has no owner stays](#names-that-are-taken): the operator deleted it"
	if page := report.Markdown(); !strings.Contains(page, say) {
		t.Errorf("the page does not say that the object was deleted:\n%s", page)
	}
}

// TestProgressAfterReady has operators whose samples are ready before their work is over: a Job has not ended, or nothing
// shows that there is more to come.
func TestProgressAfterReady(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	program := build(t)
	for fault, say := range map[string][]string{
		"FAULT=migrates": {"**passed**: a restarted operator writes nothing needless: no write for the sample"},
		"FAULT=proceeds": {"**skipped**: a restarted operator writes nothing needless: the sample made progress after it was ready",
			"leases apart; the sample made progress after it was ready, so the lab has learned its end state too early"},
	} {
		s := greeting(program, fault)
		s.Role, s.Period.Duration = nil, 8*time.Second // a period for a longer look after the restart
		expect(t, s, []string{"steady-state", "restart"}, "", say)
	}
}

// TestAProcessThatIsOver has an operator that does nothing more after its first failure: the next trial starts it again.
func TestAProcessThatIsOver(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	report, err := Run(t.Context(), greeting(build(t), "FAULT=sulks"), Options{Only: []string{"drift"}, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	page := report.Markdown()
	if !strings.Contains(page, "a deleted configmaps/hello comes back](#drift): ") ||
		!strings.Contains(page, "**passed**: a deleted deployments.apps/hello comes back") {
		t.Errorf("the first failure causes others:\n%s", page)
	}
}

// TestALongMessage has operators that report a refusal only by an event, whole or in part, and one that reports each
// refusal and fails for another reason.
func TestALongMessage(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	program := build(t)
	const title = "a policy refuses configmaps/hello at length"
	for fault, want := range map[string]Verdict{"FAULT=notes": Failed, "FAULT=notes-part": Passed, "FAULT=flaps": Passed} {
		s := greeting(program, fault)
		s.Fast, s.Role = false, nil // of the test operator it has no permission for events
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		report, err := Run(ctx, s, Options{Only: []string{"admission"}, Progress: func(format string, args ...any) {
			t.Logf(format, args...)
			if strings.Contains(fmt.Sprintf(format, args...), title+": ") {
				cancel() // the others are not of interest
			}
		}})
		if !errors.Is(err, context.Canceled) || report == nil {
			t.Fatalf("%v, %v", report, err)
		}
		at := slices.IndexFunc(report.Findings, func(f outcome.Result) bool { return f.Title == title })
		if at < 0 || report.Findings[at].Verdict != want {
			t.Errorf("%s: it is not %s:\n%s", fault, want, report.Markdown())
		}
	}
}

// TestRemainsOfATrial has an operator that works on the namespaces of earlier trials until they are gone.
func TestRemainsOfATrial(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "FAULT=visits")
	s.Role = nil // of the test operator it has no permission for namespaces
	report, err := Run(t.Context(), s, Options{Only: []string{"steady-state"}, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if report.Count(Failed) > 0 {
		t.Errorf("the end of an earlier trial counts:\n%s", report.Markdown())
	}
}

// TestCreatedTwice has an operator that replaces a child at its start, when its work is not complete.
func TestCreatedTwice(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "FAULT=recreates")
	s.Role = nil // of the test operator it has no permission to delete
	expect(t, s, []string{"crash"}, "crash", []string{"/hello was created twice"})
}

// TestATimeTravel has operators that delete the children of a sample that is being deleted, as an API server that lags
// shows them, and operators whose earlier sample leaves something behind also without a lag.
func TestATimeTravel(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	program := build(t)
	for fault, want := range map[string]string{
		"FAULT=sweeps": "**failed**: [recovers from an API server that lags: an earlier sample is being deleted there]" +
			"(#api-faults): it deleted what exists, by what it read of an earlier time: configmaps/hello",
		"FAULT=sweeps-own": "**passed**: recovers from an API server that lags: an earlier sample is being deleted there: " +
			"4 of its lists were answered as of an earlier time",
		"FAULT=publishes": "**passed**: recovers from an API server that lags: an earlier sample is being deleted there: " +
			"4 of its lists were answered as of an earlier time",
		"FAULT=finalizer": "**skipped**: recovers from an API server that lags: an earlier sample is being deleted there: " +
			"also without a lag, an earlier sample leaves something behind: ",
	} {
		s := greeting(program, fault)
		s.Role = nil // of the test operator it has no permission to delete
		report, err := Run(t.Context(), s, Options{Only: []string{"faults"}, Progress: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		if page := report.Markdown(); (report.Count(Failed) > 0) != (fault == "FAULT=sweeps") || !strings.Contains(page, want) {
			t.Errorf("%s: the page does not say %q:\n%s", fault, want, page)
		}
	}
}

// TestBeforeItsChildren has operators on an API server that lags and has no children yet: one of them creates the objects
// that its list lacks under new names.
func TestBeforeItsChildren(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	const title = "recovers from an API server that lags: the children do not exist there yet"
	program := build(t)
	for fault, want := range map[string]Verdict{"": Passed, "doubles": Failed} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := greeting(program, "FAULT="+fault)
			s.Fast, s.Role = false, nil // of the test operator it has no permission to create
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			report, err := Run(ctx, s, Options{Only: []string{"faults"}, Progress: func(format string, args ...any) {
				t.Logf(format, args...)
				if strings.Contains(fmt.Sprintf(format, args...), title) {
					cancel() // the others are not of interest
				}
			}})
			if !errors.Is(err, context.Canceled) || report == nil {
				t.Fatalf("%v, %v", report, err)
			}
			at := slices.IndexFunc(report.Findings, func(f outcome.Result) bool { return f.Title == title })
			say := map[Verdict]string{Passed: "of its lists were answered as of an earlier time",
				Failed: "it created objects a second time: configmaps/hello-2"}[want]
			if at < 0 || report.Findings[at].Verdict != want || !strings.Contains(report.Findings[at].What, say) {
				t.Errorf("it is not %s, %q:\n%s", want, say, report.Markdown())
			}
		})
	}
}

// TestPodsOfAWorkloadAreNotChildren has an operator that annotates the pods of its Deployment, whose names are random.
func TestPodsOfAWorkloadAreNotChildren(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "FAULT=marks-pods")
	s.Role = nil
	report, err := Run(t.Context(), s, Options{Only: []string{"creation", "deletion"}, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	page := report.Markdown()
	if len(report.Failed("deletion")) > 0 {
		t.Errorf("the node of a pod is not the operator's choice:\n%s", page)
	}
	if strings.Contains(page, "pods/hello") || !strings.Contains(page, "patch pods") {
		t.Errorf("the pods are children, or were not annotated:\n%s", page)
	}
}

// TestMorePlantedFaultsAreFound takes minutes.
func TestMorePlantedFaultsAreFound(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	plantedFaults(t, map[string]planted{
		"what a spec says later is ignored": {[]string{"FAULT=no-drift"}, []string{"spec"}, "spec",
			[]string{"accepted, and neither"}},
		"a ConfigMap that is written all the time": {[]string{"FAULT=beats"}, []string{"steady-state"}, "steady-state",
			[]string{"apply configmaps every 5"}},
		"a create of what exists, which is no conflict; defaults are not its fields": {[]string{"FAULT=creates"},
			[]string{"creation"}, "creation", []string{"**passed**: no conflict with itself: none",
				"**failed**: it does not create what exists", "deployments.apps/hello (7 fields)"}},
		"no backoff": {[]string{"FAULT=at-once"}, []string{"admission"}, "admission", []string{"a hot loop"}},
		"what a policy changed is reported, and made again when it is deleted": {[]string{"FAULT=once"},
			[]string{"admission"}, "", []string{"was deleted, "}},
		"a label that the cache selects by": {[]string{"FAULT=selects"}, []string{"drift"}, "drift",
			[]string{"when a user changes .metadata.labels.app of configmaps/hello",
				"changed fields of configmaps/hello are restored: 2 fields were restored",
				"; without .metadata.labels.app the operator does not see it"}},
		"a child that it gives up when a label changes": {[]string{"FAULT=releases"}, []string{"drift"}, "drift",
			[]string{"the operator has released the object: it removed its owner reference"}},
		"what an earlier spec made stays": {[]string{"FAULT=leaves"}, []string{"spec"}, "spec",
			[]string{"are left behind: configmaps/hello-3"}},
		"it writes to many samples without an end": {[]string{"FAULT=hot-loop"}, []string{"many"}, "many",
			[]string{"the operator does not stop writing"}},
		"an annotation with the generation is one finding": {[]string{"FAULT=numbered"}, []string{"spec"}, "spec",
			[]string{"annotations depend on the spec alone](#spec-changes): after a change was undone, only annotations differ",
				"30401, undone: configmaps/hello.metadata.annotations.generation is", " 1 failed for 1 cause,",
				"**passed**: spec.replicas becomes 3"}},
		"a taken name that nobody hears of": {[]string{"FAULT=overlooks"}, []string{"ownership"}, "ownership",
			[]string{"it stayed; neither the status nor an event reports it; as undisturbed"}},
		"its watches end forever, and only a list brings back what was deleted before": {
			[]string{"FAULT=deaf", "KUBE_FEATURE_WatchListClient=false"}, []string{"faults"}, "faults",
			[]string{"; after that, configmaps/hello was deleted, and is not back"}},
		"a first child that does not come back, and another one that shows what a fault does": {[]string{"FAULT=no-drift"},
			[]string{"faults"}, "", []string{"410 Gone: deployments.apps/hello was deleted meanwhile"}},
		"a text that ends the process": {[]string{"FAULT=chokes"}, []string{"values"}, "values",
			[]string{`spec.text becomes "日本-ünï"](#extreme-values): the operator did not stay alive: it ended with code 2`}},
		"a text that ends the process later, when the sample has another text": {[]string{"FAULT=ponders"}, []string{"values"},
			"values", []string{`spec.text becomes "日本-ünï"](#extreme-values): the operator did not stay alive: it ended with code 2`}},
		"a removed status that stays removed": {[]string{"FAULT=generation"}, []string{"drift"}, "drift",
			[]string{"a removed status comes back](#drift): the status stayed removed for"}},
		"progress in memory": {[]string{"FAULT=in-memory"}, []string{"crash"}, "crash", []string{"killed after"}},
		"each sample costs more than a single sample": {[]string{"FAULT=marks-all"}, []string{"many"}, "many",
			[]string{"each of many samples costs more than a single sample"}},
		"a finalizer of its own keeps its children": {[]string{"FAULT=finalizer"}, []string{"deletion", "drift"},
			"deletion drift", []string{"held by the finalizers",
				"**failed**: a deleted configmaps/hello comes back: "}},
		"a condition Updating that stays True after a change": {[]string{"FAULT=stuck"}, []string{"spec"}, "spec",
			[]string{"the state is not the first one"}},
		"additions by others are lost in a later reconcile": {[]string{"FAULT=replaces"}, []string{"drift"}, "drift",
			[]string{"an added label is gone from configmaps/hello, deployments.apps/hello, services/hello after a restart"}},
		"reads of all namespaces, past the cache": {[]string{"FAULT=lists-all"}, []string{"creation"}, "creation",
			[]string{"reads went to the API server after the caches had synced", "list configmaps"}},
		"two replicas with the same name in the lease": {[]string{"FAULT=one-name"}, []string{"replicas"}, "replicas",
			[]string{"both replicas hold the lease, as"}},
		"many samples share one child": {[]string{"FAULT=shares"}, []string{"many"}, "many", []string{"are not served",
			"the operator has written nothing for 20s"}},
		"an error that is forgotten": {[]string{"FAULT=forgets"}, []string{"faults"}, "faults",
			[]string{"recovers from 500", "40 s after its writes worked again, and after 0 further writes"}},
	})
}

// TestHabitsAreNoFaults takes minutes. Each of these operators does something unusual that is right.
func TestHabitsAreNoFaults(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	plantedFaults(t, map[string]planted{
		"as it is": {nil, []string{"restart", "deletion", "replicas", "faults", "spec", "crash"}, "",
			[]string{"one replica sent all"}},
		"as it is, in a cluster with policies, and with a port that the cluster chose before": {nil,
			[]string{"admission", "spec"}, "", []string{"the status reports it", "it reached services/hello.spec"}},
		"objects that others own, or nobody": {nil, []string{"ownership"}, "",
			[]string{"configmaps/hello that has no owner stays: it stayed", "the status reports it; as undisturbed"}},
		"another name instead of one that is taken": {[]string{"FAULT=renames"}, []string{"ownership"}, "",
			[]string{"it stayed; its other children existed; the sample is ready with configmaps/hello-2 instead"}},
		"children that never come back show nothing about watches": {[]string{"FAULT=unwatching"}, []string{"faults"}, "",
			[]string{"**skipped**: recovers from watches that end with 410 Gone: without a disturbance, a deleted "}},
		"it works at intervals, from its cache": {[]string{"FAULT=resyncs"}, []string{"steady-state"}, "",
			[]string{"no request in"}},
		"an annotation with the generation": {[]string{"FAULT=numbered"}, []string{"values"}, "",
			[]string{"**passed**: spec.replicas becomes 0", `**passed**: spec.text becomes "日本`}},
		"zero and a Chinese text": {nil, []string{"values"}, "",
			[]string{"5 of 7 extreme values", "**passed**: spec.replicas becomes 0", `**passed**: spec.text becomes "日本`}},
		"a lock in a ConfigMap": {[]string{"FAULT=old-lock"}, []string{"steady-state"}, "",
			[]string{"no request in"}},
		"its client is limited to 5 requests a second": {[]string{"FAULT=throttled"}, []string{"drift"}, "drift",
			[]string{"**passed**: changed fields of configmaps/hello", "**passed**: changed fields of deployments.apps/hello",
				"**passed**: a removed status comes back: the status was back after "}},
		"its client is limited to 1 request a second, which is too little for many samples": {[]string{"FAULT=crawls"},
			[]string{"many"}, "", []string{"the time was over, and the work was still going on: "}},
		"a password that it makes up": {[]string{"FAULT=makes-up"}, []string{"deletion"}, "",
			[]string{"configmaps/hello (3 fields)"}},
		"a value that lives as long as the process": {[]string{"FAULT=fingerprint"}, []string{"restart"}, "",
			[]string{"all of values that live as long as the process"}},
		"a field on which nothing depends here": {[]string{"FAULT=unused"}, []string{"spec"}, "",
			[]string{"neither a child nor the status depends on it here, also in a new sample"}},
		"a field that is in a hash with the namespace": {[]string{"FAULT=packs"}, []string{"spec"}, "",
			[]string{"**passed**: spec.nodePort becomes 30401: it reached configmaps/hello.data.packed, and undoing"}},
		"some tries at once in each reconcile": {[]string{"FAULT=tries-again"}, []string{"admission"}, "",
			[]string{"up to 4 of them at once (a reconcile tries again by itself", "the status reports it"}},
		"a reconcile that creates takes seconds": {[]string{"FAULT=waits"}, []string{"creation"}, "",
			[]string{"passed**: the sample gets ready"}},
		"an error at the creation": {[]string{"FAULT=stumbles"}, []string{"creation"}, "",
			[]string{"passed**: the sample gets ready"}},
		"it writes once more some time after the creation": {[]string{"FAULT=trails"}, []string{"many"}, "",
			[]string{"writes for a single sample"}},
		"a busy operator, whose backoff begins late, and whose metrics count the errors": {
			[]string{"FAULT=busy"}, []string{"faults"}, "", []string{"while another sample got ready", "**passed**: its log stays short while writes fail"}},
		"many samples": {nil, []string{"many"}, "", []string{"writes for a single sample"}},
		"the pods of many samples need 800 CPUs": {[]string{"FAULT=big"}, []string{"many"}, "",
			[]string{"**passed**: 100 samples are served"}},
		"the pods of many samples do not fit on the nodes": {[]string{"FAULT=on-port"}, []string{"many"}, "",
			[]string{"the pods of the copies do not fit on the simulated nodes"}},
		"the cluster keeps a child that is in use": {[]string{"FAULT=protects"}, []string{"drift"}, "drift",
			[]string{"**skipped**: a deleted configmaps/hello comes back: the cluster keeps it"}},
		"a reconcile that ends after the deletion began": {[]string{"FAULT=slow"}, []string{"deletion"}, "",
			[]string{"nothing was created in 2s"}},
		"a condition Updating that is False after a change": {[]string{"FAULT=progressing"}, []string{"spec"}, "",
			[]string{"undoing the change restored the first state"}},
		"its lease is in a namespace of its own choice": {[]string{"FAULT=elsewhere"},
			[]string{"replicas", "permissions"}, "permissions", []string{"what it asks for is granted: no request was refused",
				"its lease was forbidden in the namespace default"}},
		"the status reports an error without its reason": {[]string{"FAULT=vague"}, []string{"admission"}, "",
			[]string{"the status reports an error, without the reason"}},
		"the spec names a child": {[]string{"FAULT=named"}, []string{"many"}, "",
			[]string{"writes for a single sample"}},
	})
}

// TestFaultsOfARealServer has an operator for which AlreadyExists means that a child exists: a create may not get it as a
// fault.
func TestFaultsOfARealServer(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "FAULT=trusts")
	s.Fast = false
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	report, err := Run(ctx, s, Options{Only: []string{"faults"}, Progress: func(format string, args ...any) {
		t.Logf(format, args...)
		if strings.Contains(fmt.Sprintf(format, args...), "recovers from 409 Conflict") {
			cancel() // the others are not of interest
		}
	}})
	if !errors.Is(err, context.Canceled) || report == nil {
		t.Fatalf("%v, %v", report, err)
	}
	if page := report.Markdown(); !strings.Contains(page, "**passed**: recovers from 409 Conflict") {
		t.Errorf("a create got a fault that no API server sends:\n%s", page)
	}
}

// TestPermissionsThatSamplesReach has a role with a permission that only a further sample needs.
func TestPermissionsThatSamplesReach(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	dir, program := t.TempDir(), build(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secrets := write("role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: more}\n"+
		"rules: [{apiGroups: [''], resources: [secrets], verbs: [create]}]\n")
	more := write("more.yaml", "apiVersion: test.example.com/v1\nkind: Greeting\nmetadata: {name: more}\n"+
		"spec: {text: more, replicas: 1}\n")
	for _, samples := range [][]string{nil, {more}} {
		s := greeting(program, "FAULT=secretive")
		s.Role, s.More = append(s.Role, secrets), samples
		report, err := Run(t.Context(), s, Options{Only: []string{"permissions"}, Progress: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(report.Findings, func(f outcome.Result) bool { return f.Title == "further permissions" })
		if at < 0 || report.Findings[at].Verdict != Skipped ||
			slices.Contains(report.Findings[at].Evidence, "create secrets") != (samples == nil) {
			t.Errorf("with the further samples %q:\n%s", samples, report.Markdown())
		}
	}
}

// failedExperiments are the experiments with a failure, in their order.
func failedExperiments(r *Report) string {
	return strings.Join(slices.DeleteFunc(IDs(), func(id string) bool { return len(r.Failed(id)) == 0 }), " ")
}

// planted is a fault that an examination must find.
type planted struct {
	env  []string
	only []string
	fail string // the experiments that must fail; no other may fail
	say  []string
}

func plantedFaults(t *testing.T, faults map[string]planted) {
	t.Helper()
	program := build(t)
	for name, test := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has a separate control plane, and mostly waits
			expect(t, greeting(program, test.env...), test.only, test.fail, test.say)
		})
	}
}

func TestAnInterruptedRunKeepsWhatItKnows(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	report, err := Run(ctx, greeting(build(t)), Options{Progress: func(format string, args ...any) {
		t.Logf(format, args...)
		if strings.Contains(fmt.Sprintf(format, args...), experiments[1].title) {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || report == nil {
		t.Fatalf("%v, %v", report, err)
	}
	if !report.Interrupted || report.Count(Passed) == 0 {
		t.Errorf("interrupted: %v, passed: %d", report.Interrupted, report.Count(Passed))
	}
	page, err := report.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(page); err != nil || !bytes.Contains(data, []byte("was interrupted")) {
		t.Errorf("%s, %v", data, err)
	}
}

// TestASentence shows the message for a user whose subject cannot be examined.
func TestASentence(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sample, err := os.ReadFile("testoperator/config/sample.yaml")
	if err != nil {
		t.Fatal(err)
	}
	twice := write("twice.yaml", string(sample)+"---\n"+strings.Replace(string(sample), "name: hello", "name: other", 1))
	pod := write("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
	for name, test := range map[string]struct {
		change func(*Subject)
		say    string
	}{
		"no program":             {func(s *Subject) { s.Program = "" }, "no operator was given: PROGRAM="},
		"a program that is not":  {func(s *Subject) { s.Program = "none" }, "PROGRAM=none cannot be read"},
		"a source file":          {func(s *Subject) { s.Program = "run.go" }, "is not an executable file"},
		"a folder without a CRD": {func(s *Subject) { s.CRD = dir }, "holds no CustomResourceDefinition"},
		"a sample of another kind": {func(s *Subject) { s.Sample = pod },
			"it has v1 Pod, and the CRDs are for test.example.com/v1 Greeting"},
		"two samples": {func(s *Subject) { s.Sample = twice }, "has two custom resources, Greeting hello and Greeting other"},
		"a strange READY": {func(s *Subject) { s.Ready = "a = b" },
			"is neither {jsonpath}=value nor the name of a condition"},
	} {
		t.Run(name, func(t *testing.T) {
			s := greeting("/bin/false")
			test.change(&s)
			if _, err := Run(t.Context(), s, Options{}); err == nil || !strings.Contains(err.Error(), test.say) {
				t.Errorf("%v, want %q", err, test.say)
			}
		})
	}
}

// TestTheProgressNamesWhatIsCompiled has a folder with a program that does not compile. Without the line of the progress, the
// first minutes of an examination are silent.
func TestTheProgressNamesWhatIsCompiled(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module a\n", "main.go": "package main\n\nfunc main() { missing() }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var progress []string
	_, err := Run(t.Context(), greeting(dir), Options{Progress: func(format string, args ...any) {
		progress = append(progress, fmt.Sprintf(format, args...))
	}})
	if err == nil || !strings.Contains(err.Error(), "undefined: missing") {
		t.Errorf("%v", err)
	}
	if !slices.Contains(progress, "compiling "+dir) {
		t.Errorf("the progress was %q", progress)
	}
}

// TestASentenceFromTheCluster is about programs that cannot be examined, which becomes clear only when they run.
func TestASentenceFromTheCluster(t *testing.T) {
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "operator")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fails := func(text string) string { return script("echo " + text + "\nexit 1\n") }
	const help = "An operator.\n\nAvailable Commands:\n  help   About it\n  start  Begins\n\nFlags:\n  -h, --help"
	for say, test := range map[string]struct {
		program string
		outside bool
	}{
		"ended with code 1 at its start, before it sent any request": {"/bin/false", false},
		"it has the commands help, start. Begin ARGS= with":          {script("echo '" + help + "'"), false},
		"OUTSIDE=1 runs the program outside a pod":                   {fails("open data.txt: no such file or directory"), false},
		"another program on this machine listens on :9443": {
			fails("listen tcp :9443: bind: address already in use"), true},
		"fs.inotify.max_user_instances":                                {fails("problem running manager: too many open files"), false},
		"ENV='POD_NAMESPACE=":                                          {fails("open /var/run/secrets/serviceaccount/namespace"), true},
		"only where a pod finds it, and the lab runs it outside a pod": {fails("KUBERNETES_SERVICE_HOST must be defined"), true},
	} {
		t.Run(say, func(t *testing.T) {
			t.Parallel()
			if test.outside || pod.Check() == nil {
				s := greeting(test.program)
				s.Outside = test.outside
				_, err := Run(t.Context(), s, Options{Progress: t.Logf})
				if err == nil || !strings.Contains(err.Error(), say) {
					t.Errorf("%v, want %q", err, say)
				}
			}
		})
	}
}
