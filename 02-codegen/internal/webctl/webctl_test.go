package webctl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
)

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"an unknown verb":             {"paint shop", `no verb "paint"`},
		"a missing name":              {"get", `get: the arguments after the flags are [], want ["NAME"]`},
		"a name too many":             {"delete shop blog", `are ["shop" "blog"], want ["NAME"]`},
		"a flag behind the arguments": {"scale shop 3 -n web", "after the flags"},
		"a number that is none":       {"scale shop many", `"many" is not a number`},
		"a number too large":          {"scale shop 2147483648", "is not a number"},
		"a port that is none":         {"apply --node-port http shop", "node-port"},
		"a port with a tail":          {"apply --node-port 30100x shop", "node-port"},
		"a label without a value":     {"apply --label a shop", "is not KEY=VALUE"},
		"a flag of another verb":      {"get --image nginx shop", "flag provided but not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(strings.Fields(test.line)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.line, err, test.want)
			}
		})
	}
}

func TestHelpIsShownWithoutACluster(t *testing.T) {
	for _, line := range []string{"", "help", "--help", "scale -h"} {
		var out strings.Builder
		if err := Run(t.Context(), strings.Fields(line), &out); err != nil || out.String() != Usage {
			t.Errorf("webctl %s: %v, %q", line, err, out.String())
		}
	}
	for verb := range arguments {
		if !strings.Contains(Usage, "\n  "+verb+" ") {
			t.Errorf("the usage does not name %s", verb)
		}
	}
}

func TestStatusFor(t *testing.T) {
	web := &webv1.MyWeb{
		ObjectMeta: metav1.ObjectMeta{Generation: 4},
		Spec:       webv1.MyWebSpec{Replicas: new(int32(2)), NodePortNumber: new(int32(30100))},
		Status:     webv1.MyWebStatus{Selector: "kept"},
	}
	available := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "Available", Status: status, Reason: reason, ObservedGeneration: 4}}
	}
	for name, test := range map[string]struct {
		ready int32
		want  webv1.MyWebStatus
	}{
		"no pod": {0, webv1.MyWebStatus{Conditions: available(metav1.ConditionFalse, "NoReadyPod")}},
		"some":   {1, webv1.MyWebStatus{ReadyReplicas: 1, Conditions: available(metav1.ConditionTrue, "Serving")}},
		"all": {2, webv1.MyWebStatus{
			ReadyReplicas: 2, Completed: true, Conditions: available(metav1.ConditionTrue, "Serving")}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.NodePort, test.want.ObservedGeneration, test.want.Selector = 30100, 4, "kept"
			got := statusFor(web, test.ready)
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}
