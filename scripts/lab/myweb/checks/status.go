package checks

import (
	"fmt"
	"slices"
	"time"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// statusChecks are the checks of the status.
var statusChecks = []suite.Check{
	{ID: "fault/21-status-falsified", Fast: true, Run: statusFalsified,
		Title: "a falsified status is corrected soon, by one write and without an event"},
	{ID: "fault/21-port-falsified", Alone: true, Run: portIsKept,
		Title: "a node port that was falsified in the status while no operator ran is corrected; the Service keeps its port"},
	{ID: "fault/21-status-fought", Run: statusFought,
		Title: "a status that is falsified ten times a second for ten seconds is not corrected as fast; in the " +
			"end it is true"},
}

// falsifications are another client's changes of a correct status.
var falsifications = map[string]string{
	"completed":  `{"status":{"completed":false}}`,
	"replicas":   `{"status":{"readyReplicas":77}}`,
	"conditions": `{"status":{"conditions":null}}`,
	"everything": `{"status":null}`,
}

func statusFalsified(t *suite.T) {
	truth := map[string]*suite.Web{}
	for name := range falsifications {
		t.Create(name, suite.Sample())
	}
	for name := range falsifications {
		truth[name], _ = converged(t, name)
	}
	awaitNoMoreEvents(t)
	mark := t.Mark()
	for name, patch := range falsifications {
		t.Falsify(name, patch)
	}
	for name := range falsifications {
		t.Eventually("the status of "+name+" is true again", 10*time.Second, func() error { return isTrue(t, truth[name]) })
	}
	t.AwaitQuiet(time.Second)
	for name := range falsifications {
		own := slices.DeleteFunc(t.Changes(mark), func(e ledger.Entry) bool { return e.Name != name })
		if len(own) != 1 || own[0].FullResource() != status {
			t.Errorf("%s: %d writes, one of the status is enough: %s", name, len(own), suite.Lines(own))
		}
	}
	noNews(t, mark)
}

// portIsKept falsifies the allocated port in the status while no operator runs. The status is not a spec: the Service keeps
// its port, and the operator that starts corrects the status.
func portIsKept(t *suite.T) {
	truth := t.Serve("web", suite.Sample())
	port := portOf(t.Children(truth).Service)
	t.Operator.Kill()
	t.Falsify("web", fmt.Sprintf(`{"status":{"nodePort":%d}}`, t.NodePort()))
	t.Must(t.Operator.Restart(t.Ctx), "start the operator")
	t.Eventually("the status is true again", 0, func() error { return isTrue(t, truth) })
	wantPort(t, t.Web("web"), t.Children(truth), port)
}

// isTrue returns the differences between a status and an earlier status, except times.
func isTrue(t *suite.T, before *suite.Web) error {
	now := t.Web(before.Name)
	if now.Status.String() != before.Status.String() {
		return fmt.Errorf("it was %v, it is %v", before.Status, now.Status)
	}
	return nil
}

// fights is how often a check lets another client write against the operator, ten times a second.
const fights = 100

// fight lets another client write.
func fight(t *suite.T, write func(n int)) {
	for n := range fights {
		write(n)
		t.Pause(100 * time.Millisecond)
	}
	wantAlive(t)
}

// mostCorrections allows 5 corrections at once and then one in 10 s. The rest is slack for writes in progress, and
// for writes that were refused because another write was faster.
func mostCorrections(fight time.Duration) int { return 5 + 3*(1+int(fight/(10*time.Second))) }

func statusFought(t *suite.T) {
	web, _ := converged(t, t.Create("web", suite.Sample()).Name)
	t.Pause(time.Second)
	mark, begin := t.Mark(), time.Now()
	fight(t, func(n int) { t.Falsify("web", fmt.Sprintf(`{"status":{"completed":false,"readyReplicas":%d}}`, 20+n)) })
	most := mostCorrections(time.Since(begin)) // a busy machine makes the fight last longer
	own := suite.About(t.Changes(mark), status)
	if len(own) > most {
		t.Errorf("%d status writes against %d falsified ones, at most %d are enough: %s",
			len(own), fights, most, suite.Lines(own))
	}
	if recorded := t.Fixture.Ledger.Count(recordings(t, mark)); recorded > most {
		t.Errorf("%d requests about events during the fight, wanted at most %d", recorded, most)
	}
	t.Eventually("the status is true when the other one has stopped", patience, func() error { return isTrue(t, web) })
	t.AwaitQuiet(time.Second)
}
