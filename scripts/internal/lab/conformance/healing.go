package conformance

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/internal/lab/suite"
)

func healing() []suite.Check {
	return []suite.Check{
		{ID: "behaviour/05-edited-page", Group: "5", Fast: true, Run: editedPage,
			Title: "the page is restored when somebody edits the ConfigMap, at the price of one write"},
	}
}

func editedPage(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	before := t.Children(web).ConfigMap
	mark := t.Mark()
	_, err := t.World.Kube.CoreV1().ConfigMaps(t.Namespace).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"data":{"index.html":"vandalism"}}`), metav1.PatchOptions{})
	t.Must(err, "edit the page")
	t.Eventually("the page is restored", 0, func() error {
		if page := t.Children(web).ConfigMap.Data["index.html"]; page != before.Data["index.html"] {
			return fmt.Errorf("index.html is %q", page)
		}
		return nil
	})
	t.AwaitQuiet(500 * time.Millisecond)
	if after := t.Children(web).ConfigMap; after.UID != before.UID {
		t.Errorf("the ConfigMap was replaced: UID %s, before %s", after.UID, before.UID)
	}
	if writes := t.Writes(mark); len(writes) != 1 {
		t.Errorf("%d writes, 1 is enough: %s", len(writes), suite.Lines(writes))
	}
}
