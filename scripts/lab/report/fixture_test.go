package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/operator-workshop/scripts/lab/benchmark"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// hostile is text that breaks a page that does not escape it.
const hostile = "<script>alert('x')</script> | a `tick`, ```` four, *stars* & [link](x) \\| \x1b[31mred\x1b[0m"

var behaviours = []string{
	"children appear, owned and selected by name and instance", "a changed page reaches the pods",
	"a changed image, port or replica count changes the child in place", "a removed nodePortNumber keeps the port",
	"deleted or edited children are restored, additions by others stay",
	"an object that the operator does not own is never changed",
	"a node port that is taken is reported, and recovered from", "a rollout that fails is reported, and the old pods too",
}

// fixture is a run of the named implementations: 04 fails twice, and all skip one check.
func fixture(names ...string) *Report {
	r := &Report{
		Date: time.Date(2026, 5, 4, 10, 12, 0, 0, time.UTC), Took: 17*time.Minute + 42*time.Second, Commit: "73bc340+changes",
		Machine: []string{"2 cores, 24 GB, linux/amd64"}, Versions: []string{"Kubernetes 1.37.1", "etcd 3.6.4", "Go 1.26.8"},
		Commands: []string{"make compare", "bin/lab faults --impl 03 --run 'fault/17.*'"},
	}
	titles := map[string]string{"03": "client-go by hand", "04": "controller-runtime", "mine": "your own"}
	behaviour := Family{Name: "behaviours", About: "Each of the behaviours that every MyWeb operator shows, seen from " +
		"outside.", Outcomes: map[string][]suite.Outcome{}}
	for i, title := range behaviours {
		behaviour.Groups = append(behaviour.Groups, Group{ID: fmt.Sprint(i + 1), Title: title})
	}
	crash := Family{Name: "crash points",
		About:    "The operator dies right after a write was committed, in every combination, and is started again.",
		Groups:   []Group{{"sequences", "every subset of the five writes"}, {"starts", "every state to start from"}},
		Outcomes: map[string][]suite.Outcome{}}
	for _, name := range names {
		r.Impls = append(r.Impls, Implementation{Name: name, Title: titles[name]})
		for i, title := range behaviours {
			for k := range 3 {
				o := suite.Outcome{Check: fmt.Sprintf("behaviour/%02d-check-%d", i+1, k),
					Title: title + fmt.Sprintf(", part %d", k+1),
					Group: fmt.Sprint(i + 1), Verdict: suite.Passed}
				switch {
				case i == 7 && k == 2:
					o.Verdict, o.Reason = suite.Skipped,
						"a Deployment exceeds its deadline on kind alone; "+name[:1]+" | see `make kind-test`"
				case name == "04" && i == 4 && k == 1:
					o.Verdict, o.Reason = suite.Failed,
						"the label app.kubernetes.io/name of Deployment web was not restored within 30s: "+hostile
					o.Evidence = []string{
						"12:04:01.220 patch deployments web 200 moved 1842 → 1843", hostile, "````",
						"status: {conditions: [{type: Available, status: \"True\"}]}",
						"a long line: " + fmt.Sprint(make([]int, 200)),
					}
				case name == "04" && i == 5 && k == 0:
					o.Verdict, o.Reason = suite.Failed, "two reasons:\n1. the ConfigMap was changed\n- and so was the Service"
				}
				behaviour.Outcomes[name] = append(behaviour.Outcomes[name], o)
			}
		}
		for i := range 48 {
			o := suite.Outcome{Check: fmt.Sprintf("crash/create-%05b", i), Title: "converges after these deaths",
				Group: "sequences", Verdict: suite.Passed}
			if i >= 32 {
				o.Check, o.Group = fmt.Sprintf("crash/start-%04b", i-32), "starts"
			}
			crash.Outcomes[name] = append(crash.Outcomes[name], o)
		}
	}
	r.Families = []Family{behaviour, crash}
	r.Bench = measuredBy(names)
	return r
}

func measuredBy(names []string) *benchmark.Result {
	random := rand.New(rand.NewPCG(1, 2))
	b := &benchmark.Result{Notes: []string{
		"Resident sets include pages of the program file, which the kernel may drop.",
		"10,000 MyWebs are measured on demand alone | " + hostile,
	}}
	for n, name := range names {
		f := 1 + 0.3*float64(n)
		m := benchmark.Measured{
			Name: name, Efficiency: &benchmark.Interval{Value: 0.71 / f, Low: 0.66 / f, High: 0.75 / f},
			Static: benchmark.Static{BinaryBytes: int64(46e6 * f), Modules: 71 + 13*n, Written: 1240 / (n + 1)},
		}
		m.Counts = countsOf(n)
		for i := range 101 {
			m.Curve = append(m.Curve,
				benchmark.Point{At: time.Duration(float64(i*i+40*i) * f * float64(180*time.Microsecond)), Done: i})
		}
		l := &benchmark.Latency{Rate: 20}
		for range 5000 {
			l.Samples = append(l.Samples, time.Duration(math.Exp(random.NormFloat64()*0.5+3.2)*f*float64(time.Millisecond)))
		}
		slices.Sort(l.Samples)
		l.P50, l.P99 = l.Samples[2500], l.Samples[4950]
		m.Latency = l
		for _, k := range []int{0, 1000, 5000} {
			m.Memory = append(m.Memory,
				benchmark.Memory{MyWebs: k, RSS: int64((41e6 + 21000*float64(k)) * f),
					Goroutines: 38 + 11*n, CPU: time.Duration(k) * 9 * time.Millisecond,
					APIServer: time.Duration(k) * 31 * time.Millisecond})
		}
		for range 10 {
			m.Recovery = append(m.Recovery, time.Duration((900+random.Float64()*400)*f)*time.Millisecond)
		}
		b.Implementations = append(b.Implementations, m)
	}
	if len(names) > 1 {
		quiet, noisy := benchmark.Interval{Value: 1.01, Low: 0.98, High: 1.03},
			benchmark.Interval{Value: 1.11, Low: 0.91, High: 1.24}
		for _, c := range []benchmark.Comparison{
			{Metric: "converge 100", Ratio: benchmark.Interval{Value: 1.31, Low: 1.25, High: 1.38}, Control: quiet},
			{Metric: "update 100", Ratio: benchmark.Interval{Value: 1.01, Low: 0.97, High: 1.06}, Control: quiet},
			{Metric: "recovery", Ratio: benchmark.Interval{Value: 8.7654, Low: 7.6543, High: 9.8765}, Control: noisy,
				TooNoisy: true},
		} {
			c.A, c.B, c.Pairs = names[1], names[0], 10
			b.Comparisons = append(b.Comparisons, c)
		}
	}
	return b
}

func countsOf(n int) (all []benchmark.Count) {
	for _, phase := range []string{"creation", "update", "steady state", "restart", "deletion"} {
		c := benchmark.Count{Phase: phase, Objects: 100, Requests: map[string]int{}, Watches: 4, Syncs: 413, Events: 200}
		switch phase {
		case "creation":
			c.Requests = map[string]int{"apply configmaps": 100, "apply deployments.apps": 100, "apply services": 100,
				"update mywebs/status": 197 + n}
		case "update":
			c.Requests = map[string]int{"apply configmaps": 100, "apply deployments.apps": 100 * (1 + n),
				"update mywebs/status": 200}
			c.NoOps = 3 * n
		case "restart":
			c.Requests = map[string]int{"watch mywebs": 1, "watch services": 1, "watch deployments.apps": 1,
				"watch configmaps": 1}
			c.Syncs = -1
		}
		all = append(all, c)
	}
	return all
}
