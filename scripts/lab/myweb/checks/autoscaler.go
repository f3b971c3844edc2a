package checks

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// autoscaler scales the Deployment twice a second, as a HorizontalPodAutoscaler does every 15 s.
func autoscaler(t *suite.T) {
	const manager, times, pause = "horizontal-pod-autoscaler", 40, 500 * time.Millisecond
	before := t.Children(t.Serve("web", replicas(2)))
	mark := t.Mark()
	for range times {
		_, err := t.Objects(suite.Deployments).Patch(t.Ctx, "web", types.MergePatchType,
			[]byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{FieldManager: manager}, "scale")
		t.Must(err, "scale the Deployment")
		t.Pause(pause)
	}
	writes, most := suite.About(t.Writes(mark), suite.Deployments), mostCorrections(times*pause)
	if len(writes) > most {
		t.Errorf("expected at most %d writes against an autoscaler that scales %d times in %v; but the operator sent %s: %s",
			most, times, times*pause, suite.Count(len(writes), "write"), suite.Lines(writes))
	}
	web := t.Reported("web", "FieldConflict", patience, manager, "spec.replicas", "scale of the MyWeb")
	t.Eventually("the replicas are restored when the autoscaler has stopped", 90*time.Second, func() error {
		return t.Children(web).Follow(web.Spec)
	})
	t.SameChildren(before, recovers(t))
}
