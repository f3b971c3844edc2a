package exercises

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func deployment(t *testing.T) appsv1.Deployment {
	t.Helper()
	d := only[appsv1.Deployment](t, answer(t, "deployment.yaml", "../config/base/deployment.yaml"), "Deployment")
	if len(d.Spec.Template.Spec.Containers) != 1 {
		t.Fatal("the Deployment must have one container")
	}
	return d
}

// or returns a number of a manifest, or the API server's default when the manifest does not have it.
func or(n, byDefault int32) int32 {
	if n == 0 {
		return byDefault
	}
	return n
}

// A program says for each path whether it answers at a second after its start.
type program map[string]func(second int32) bool

func (p program) answers(probe *corev1.Probe, second int32) bool {
	answer := p[probe.HTTPGet.Path]
	return answer != nil && answer(second)
}

// killed returns the second at which the kubelet restarts a program, 0 if it does not within half an hour. It asks the
// startup probe until that passes once, then the liveness probe.
func (p program) killed(c corev1.Container) int32 {
	started, failures, since := c.StartupProbe == nil, int32(0), int32(0)
	for second := range int32(1800) {
		probe := c.LivenessProbe
		if !started {
			probe = c.StartupProbe
		}
		if probe == nil || probe.HTTPGet == nil || second-since < probe.InitialDelaySeconds ||
			second%or(probe.PeriodSeconds, 10) != 0 {
			continue
		}
		switch answered := p.answers(probe, second); {
		case answered && !started:
			started, failures, since = true, 0, second
		case answered:
			failures = 0
		default:
			if failures++; failures == or(probe.FailureThreshold, 3) {
				return max(second, 1)
			}
		}
	}
	return 0
}

func always(int32) bool                   { return true }
func after(s int32) func(int32) bool      { return func(at int32) bool { return at >= s } }
func between(a, b int32) func(int32) bool { return func(at int32) bool { return at >= a && at < b } }

func TestProbes(t *testing.T) {
	c := deployment(t).Spec.Template.Spec.Containers[0]
	if c.ReadinessProbe == nil || c.ReadinessProbe.HTTPGet == nil {
		t.Error("no readinessProbe asks by HTTP: the pod is ready before its caches have synced")
	} else if !(program{"/readyz": always}).answers(c.ReadinessProbe, 1) {
		t.Error("the caches have not synced, and the pod is ready: a rollout goes on without a working operator")
	}
	if at := (program{"/healthz": after(45), "/readyz": after(50)}).killed(c); at > 0 {
		t.Errorf("the API server is slow, and the program needs 45 s to start: it is killed after %d s, again and again", at)
	}
	if at := (program{"/healthz": after(1), "/readyz": after(600)}).killed(c); at > 0 {
		t.Errorf("the caches need ten minutes to sync: the program is killed after %d s, and begins anew", at)
	}
	if at := (program{"/healthz": between(1, 200), "/readyz": between(1, 200)}).killed(c); at == 0 || at > 400 {
		t.Error("the program hangs after 200 s: nobody restarts it within 200 s more")
	}
}

func TestRollout(t *testing.T) {
	d := deployment(t)
	pod := d.Spec.Template.Spec
	replicas := 1
	if d.Spec.Replicas != nil {
		replicas = int(*d.Spec.Replicas)
	}
	down, surge := replicas, 0
	if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		most, more := intstr.FromString("25%"), intstr.FromString("25%")
		if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil {
			if rolling.MaxUnavailable != nil {
				most = *rolling.MaxUnavailable
			}
			if rolling.MaxSurge != nil {
				more = *rolling.MaxSurge
			}
		}
		var err error
		if down, err = intstr.GetScaledValueFromIntOrPercent(&most, replicas, false); err != nil {
			t.Fatal(err)
		}
		if surge, err = intstr.GetScaledValueFromIntOrPercent(&more, replicas, true); err != nil {
			t.Fatal(err)
		}
	}
	if down >= replicas {
		t.Errorf("%d of %d replicas may be stopped before a new one is ready: "+
			"with an image that cannot be pulled, none works", down, replicas)
	}
	if down+surge == 0 {
		t.Error("none may stop and none may be added: the rollout never begins")
	}
	if surge > 0 && !slices.Contains(pod.Containers[0].Args, "--leader-elect") {
		t.Error("two replicas run during the rollout, without --leader-elect: both write")
	}
	if grace := pod.TerminationGracePeriodSeconds; grace != nil && *grace < 8 {
		t.Errorf("the program takes up to 8 s to end its work and release the lease, and is killed after %d s: "+
			"the next leader waits until the lease expires", *grace)
	}
}
