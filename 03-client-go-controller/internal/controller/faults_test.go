package controller

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

func TestAFaultThatLastsIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	f.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.name == "site" {
			return answer(http.StatusInternalServerError, "InternalError", nil), nil
		}
		return pass()
	})
	f.create("site")
	f.create("other")
	f.complete("other") // is not held up
	f.Consistently(func() int { return f.requests()["PATCH configmaps"] }, 3*time.Second).Should(BeNumerically("<=", 12))
	f.between(nil)
	f.Eventually(f.exists("Service", "site"), 10*time.Second).Should(BeTrue())
	for _, status := range f.statuses() {
		if meta.IsStatusConditionTrue(status.Conditions, webv1.ConditionDegraded) {
			f.Errorf("status reported a problem that is not the MyWeb's fault: %+v", status.Conditions)
		}
	}
}

func TestWritesThatTheCachesDoNotShowAreNotRepeated(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"configmaps", "deployments", "services", "mywebs"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.start()
			if resource != "mywebs" {
				f.freeze(resource)
			}
			f.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
				if resource == "mywebs" && r.kind == "PATCH services" { // the cache has the MyWeb, its status is not written yet
					f.freeze("mywebs")
				}
				return pass()
			})
			f.create("site")
			want := maps.Clone(fewest)
			want["PUT mywebs/status"] = 1
			f.Eventually(f.requests).Should(Equal(want))
			for n := range 3 { // changes that the other watches deliver
				f.patch("ConfigMap", "site", fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/n","value":"%d"}]`, n))
				f.rollout("site", func(d *appsv1.Deployment) { d.Status = ready(d, 1); d.Status.CollisionCount = new(int32(n)) })
				f.patch("Service", "site", fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/n","value":"%d"}]`, n))
			}
			f.Consistently(f.requests).Should(Equal(want))
			f.thaw(resource)
			f.Eventually(f.completed("site")).Should(BeTrue())
			f.sentExactly(fewest)
		})
	}
}

func TestAWatchThatLostADeletion(t *testing.T) {
	t.Parallel()
	for kind, resource := range resources {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newServed(t)
			f.freeze(resource)
			f.remove(kind, "site")
			f.forget()
			f.Consistently(f.total, "300ms").Should(BeZero())
			f.lose(resource)
			f.Eventually(f.exists(kind, "site")).Should(BeTrue())
			f.complete("site")
			got := f.requests()
			delete(got, "PUT mywebs/status")
			if want := map[string]int{"PATCH " + resource: 1}; !maps.Equal(got, want) {
				t.Errorf("the requests are %v, want %v", got, want)
			}
		})
	}
}

func TestAWatchThatLostAMyWeb(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.freeze("mywebs")
	f.must(f.webs.Delete(t.Context(), "site", metav1.DeleteOptions{}))
	f.remove("Service", "site") // as the garbage collector would
	f.lose("mywebs")
	f.create("other")
	f.complete("other")
	f.remove("ConfigMap", "site")
	f.Consistently(f.exists("ConfigMap", "site")).Should(BeFalse())
}

func TestAWatchThatLostAChildAltogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	f.freeze("configmaps")
	f.create("site")
	f.Eventually(func() int { return f.requests()["PUT mywebs/status"] }).Should(Equal(1))
	f.remove("ConfigMap", "site")
	f.lose("configmaps") // the cache never held it: no event reports its deletion
	f.Eventually(f.exists("ConfigMap", "site")).Should(BeTrue())
	f.complete("site")
}
