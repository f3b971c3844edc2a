package hook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// request decodes a request that a controller would send.
func request(t *testing.T, text string) (r Request) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

const parent = `"parent": {"metadata": {"name": "web", "generation": 2},
	"spec": {"image": "nginx", "pageContentHtml": "<h1>Hello</h1>", "nodePortNumber": 30100, "replicas": 2}}`

// observed returns a request that contains the children of an earlier answer, as they would be in a cluster.
func observed(t *testing.T, r Request, deploymentStatus string) Request {
	t.Helper()
	kinds := map[string]map[string]any{}
	for _, child := range Sync(r, now).Children {
		d := child.(Desired)
		metadata := d["metadata"].(fields)
		metadata["uid"], metadata["generation"] = "1", 7
		object := fields{"metadata": metadata, "spec": d["spec"]}
		if d["kind"] == "Deployment" {
			object["status"] = json.RawMessage(deploymentStatus)
		}
		kinds[d["kind"].(string)+"."+d["apiVersion"].(string)] = map[string]any{"web": object}
	}
	data, err := json.Marshal(map[string]any{"children": kinds})
	if err != nil {
		t.Fatal(err)
	}
	r.Children = request(t, string(data)).Children
	return r
}

func paused(r *Request) {
	d := r.Children.Deployments["web"]
	d.Spec.Paused = true
	r.Children.Deployments["web"] = d
}

func conditionsOf(s Status) string {
	var words []string
	for _, c := range s.Conditions {
		words = append(words, c.Type+"="+c.Status+" "+c.Reason)
	}
	return strings.Join(words, ", ")
}

func TestStatus(t *testing.T) {
	const served = `{"observedGeneration": 7, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
		"availableReplicas": 2}`
	for name, test := range map[string]struct {
		parent, deployment string
		change             func(*Request)
		completed          bool
		conditions         string
	}{
		"nothing is there": {parent, "", nil, false,
			"Available=False NoReadyPod, Progressing=True RollingOut, Degraded=False AsExpected"},
		"all is served": {parent, served, nil, true,
			"Available=True Serving, Progressing=False Complete, Degraded=False AsExpected"},
		"the Deployment has not seen its spec": {parent, strings.Replace(served, "7", "6", 1), nil, false,
			"Available=True Serving, Progressing=True RollingOut, Degraded=False AsExpected"},
		"the children are of the spec before": {parent, served,
			func(r *Request) { r.Parent.Spec.PageContentHTML = "changed" }, false,
			"Available=True Serving, Progressing=True RollingOut, Degraded=False AsExpected"},
		"another replica count is wanted": {parent, served,
			func(r *Request) { r.Parent.Spec.Replicas = new(int32(3)) }, false,
			"Available=True Serving, Progressing=True RollingOut, Degraded=False AsExpected"},
		"scaled to zero": {strings.Replace(parent, `"replicas": 2`, `"replicas": 0`, 1),
			`{"observedGeneration": 7}`, nil, true,
			"Available=False ScaledToZero, Progressing=False Complete, Degraded=False AsExpected"},
		"the rollout takes too long": {parent, `{"observedGeneration": 7, "readyReplicas": 1,
			"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}`, nil, false,
			"Available=True Serving, Progressing=False ProgressDeadlineExceeded, Degraded=True ProgressDeadlineExceeded"},
		"pods are refused, and the rollout takes too long": {parent, `{"observedGeneration": 7, "readyReplicas": 1,
			"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
			{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}]}`, nil, false,
			"Available=True Serving, Progressing=False ReplicaFailure, Degraded=True ReplicaFailure"},
		"a ReplicaSet is refused": {parent, `{"observedGeneration": 6, "readyReplicas": 1,
			"conditions": [{"type": "Progressing", "status": "False", "reason": "ReplicaSetCreateError"}]}`, nil, false,
			"Available=True Serving, Progressing=False ReplicaFailure, Degraded=True ReplicaFailure"},
		"paused, and a rollout waits": {parent, strings.Replace(served, `"updatedReplicas": 2`, `"updatedReplicas": 0`, 1),
			paused, false,
			"Available=True Serving, Progressing=False DeploymentPaused, Degraded=True DeploymentPaused"},
		"paused, and all is served": {parent, served, paused, true,
			"Available=True Serving, Progressing=False Complete, Degraded=False AsExpected"},
	} {
		r := request(t, "{"+test.parent+"}")
		if test.deployment != "" {
			r = observed(t, r, test.deployment)
		}
		if test.change != nil {
			test.change(&r)
		}
		s := Sync(r, now).Status
		if got := conditionsOf(s); got != test.conditions || s.Completed != test.completed {
			t.Errorf("%s: completed %v and %s, want %v and %s", name, s.Completed, got, test.completed, test.conditions)
		}
	}
}

func TestTheTimeOfAConditionMovesWithItsStatus(t *testing.T) {
	r := request(t, "{"+parent+"}")
	r.Parent.Status.Conditions = Sync(r, now).Status.Conditions
	r = observed(t, r, `{"readyReplicas": 1}`)
	for _, c := range Sync(r, now.Add(time.Hour)).Status.Conditions {
		want := now
		if c.Type == "Available" {
			want = now.Add(time.Hour)
		}
		if !c.LastTransitionTime.Equal(want) {
			t.Errorf("%s: %v, want %v", c.Type, c.LastTransitionTime, want)
		}
	}
}

func TestTheAllocatedPortComesBack(t *testing.T) {
	r := request(t, "{"+strings.Replace(parent, `"nodePortNumber": 30100, `, "", 1)+"}")
	ports := func() any {
		return Sync(r, now).Children[2].(Desired)["spec"].(fields)["ports"].([]any)[0].(fields)["nodePort"]
	}
	if got := ports(); got != nil {
		t.Errorf("the hook names port %v, and the MyWeb does not", got)
	}
	r.Parent.Status.NodePort = 31234
	if got := ports(); got != int32(31234) {
		t.Errorf("a deleted Service comes back with port %v", got)
	}
	before := Sync(r, now).Children[2].(Desired)["metadata"]
	r = observed(t, r, "{}")
	if got := ports(); got != nil {
		t.Errorf("a Service that exists is asked for port %v", got)
	}
	if diff := cmp.Diff(before, Sync(r, now).Children[2].(Desired)["metadata"]); diff != "" {
		t.Errorf("its digest changed, so that it is written once more:\n%s", diff)
	}
}
