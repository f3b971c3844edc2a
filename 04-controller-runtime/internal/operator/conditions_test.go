package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

func TestMyWebsAreCountedByCondition(t *testing.T) {
	reported := func(status map[string]metav1.ConditionStatus) webv1.MyWeb {
		var web webv1.MyWeb
		for kind, s := range status {
			web.Status.Conditions = append(web.Status.Conditions, metav1.Condition{Type: kind, Status: s})
		}
		return web
	}
	served := map[string]metav1.ConditionStatus{"Available": "True", "Progressing": "False",
		"Degraded": "False", "OfOthers": "True"}
	for name, test := range map[string]struct {
		webs []webv1.MyWeb
		want map[[2]string]int
	}{
		"no MyWeb": {nil, map[[2]string]int{}},
		"one that nothing was reported of": {[]webv1.MyWeb{{}}, map[[2]string]int{
			{"Available", "Unknown"}: 1, {"Progressing", "Unknown"}: 1, {"Degraded", "Unknown"}: 1}},
		"two, and one of them degraded": {
			[]webv1.MyWeb{reported(served), reported(map[string]metav1.ConditionStatus{"Degraded": "True"})}, map[[2]string]int{
				{"Available", "True"}: 1, {"Available", "Unknown"}: 1, {"Progressing", "False"}: 1, {"Progressing", "Unknown"}: 1,
				{"Degraded", "False"}: 1, {"Degraded", "True"}: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, countConditions(test.webs)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
