package controller

import (
	"fmt"
	"maps"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
)

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
