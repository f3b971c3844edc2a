package controller

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// mutate changes what the controller sends of a kind, as an admission policy would.
func mutate(kind, old, new string) meddler {
	return func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.kind == kind {
			data, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			data = bytes.ReplaceAll(data, []byte(old), []byte(new))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		}
		return pass()
	}
}

func TestAMutatedChildIsReportedAndNotAppliedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	f.between(mutate("PATCH deployments", `"image":"nginx"`, `"image":"mirror/nginx"`))
	f.create("site")
	f.blocked("site", webv1.ReasonChildMutated)
	want := maps.Clone(fewest)
	want["PUT mywebs/status"] = 1
	f.sentExactly(want) // the Service is applied after the Deployment
	const path = "spec.template.spec.containers[nginx].image"
	if got := f.message("site", webv1.ConditionDegraded); !strings.Contains(got, "Deployment site") ||
		!strings.Contains(got, path) {
		t.Errorf("the message does not name the child and the field: %s", got)
	}
	f.sync("site")
	f.sentExactly(want)
	f.edit("site", func(s *webv1.MyWebSpec) { s.Replicas = new(int32(2)) })
	want["PATCH deployments"]++
	want["PUT mywebs/status"]++
	f.Eventually(f.requests).Should(Equal(want))
	f.blocked("site", webv1.ReasonChildMutated)
	if web := f.web("site"); web.Status.ObservedGeneration != web.Generation || web.Status.Completed {
		t.Errorf("status is %+v", web.Status)
	}
	f.Eventually(f.events).Should(Equal([]string{"Warning ChildMutated"}))
	f.between(nil)
	f.remove("Deployment", "site")
	f.recovered("site")
}

// falsify writes a status as somebody else.
func (f *fixture) falsify(name string) {
	f.Helper()
	web := f.web(name)
	web.Status.Completed = false
	meta.SetStatusCondition(&web.Status.Conditions, metav1.Condition{Type: webv1.ConditionDegraded,
		Status: metav1.ConditionTrue, Reason: "Lie", Message: "a lie", LastTransitionTime: metav1.Now()})
	_, err := f.webs.UpdateStatus(f.Context(), web, metav1.UpdateOptions{})
	f.must(err)
}

func TestAFalsifiedStatusIsCorrectedButNotForever(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.Eventually(f.events).Should(Equal([]string{"Normal Complete"}))
	f.forget()
	for range driftBurst {
		f.falsify("site")
		f.Eventually(f.condition("site", webv1.ConditionDegraded), atOnce).Should(Equal("False AsExpected"))
	}
	f.falsify("site")
	f.Consistently(f.requests).Should(Equal(map[string]int{"PUT mywebs/status": driftBurst}))
	if got := f.events(); len(got) != 1 {
		t.Errorf("events were recorded for corrections: %v", got)
	}
	f.create("other")
	f.complete("other") // the limit is that of one MyWeb
	f.Eventually(f.condition("site", webv1.ConditionDegraded)).Should(Equal("False AsExpected"))
}

func TestACorrectionThatMeetsAConflictIsStillOne(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.Eventually(f.events).Should(Equal([]string{"Normal Complete"}))
	f.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.kind == "PUT mywebs/status" {
			f.between(nil)
			return answer(http.StatusConflict, "Conflict", nil), nil
		}
		return pass()
	})
	f.falsify("site")
	f.Eventually(f.condition("site", webv1.ConditionDegraded), atOnce).Should(Equal("False AsExpected"))
	f.Consistently(f.events).Should(Equal([]string{"Normal Complete"}))
}
