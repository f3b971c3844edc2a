package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// neverReported shows that no status reported a fault of the API server.
func (f *fixture) neverReported() {
	f.Helper()
	for _, status := range f.statuses() {
		if meta.IsStatusConditionTrue(status.Conditions, webv1.ConditionDegraded) {
			f.Errorf("status reported what is not the MyWeb's fault: %+v", status.Conditions)
		}
	}
	if got := f.warnings(); len(got) > 0 {
		f.Errorf("warnings were recorded: %v", got)
	}
}

func TestFaultsOfTheAPIServerAreRetriedAndNeverReported(t *testing.T) {
	t.Parallel()
	refuse := func(code int, reason string, header http.Header) meddler {
		return func(request, func() (*http.Response, error)) (*http.Response, error) {
			return answer(code, reason, header.Clone()), nil
		}
	}
	wait := http.Header{"Retry-After": {"1"}}
	for name, test := range map[string]struct {
		fault meddler
		times int64 // that every kind of write meets it
	}{
		"409":                    {refuse(http.StatusConflict, "Conflict", nil), 2},
		"429":                    {refuse(http.StatusTooManyRequests, "TooManyRequests", nil), 2},
		"429 that says how long": {refuse(http.StatusTooManyRequests, "TooManyRequests", wait), 1},
		"500":                    {refuse(http.StatusInternalServerError, "InternalError", nil), 2},
		"503":                    {refuse(http.StatusServiceUnavailable, "ServiceUnavailable", nil), 2},
		"503 that says how long": {refuse(http.StatusServiceUnavailable, "ServiceUnavailable", wait), 1},
		"504":                    {refuse(http.StatusGatewayTimeout, "Timeout", nil), 2},
		"401":                    {refuse(http.StatusUnauthorized, "Unauthorized", nil), 2},
		"a connection that broke": {func(request, func() (*http.Response, error)) (*http.Response, error) {
			return nil, errors.New("connection reset by peer")
		}, 2},
		"an answer that was lost": {func(_ request, pass func() (*http.Response, error)) (*http.Response, error) {
			if response, err := pass(); err == nil {
				_ = response.Body.Close()
			}
			return nil, errors.New("connection reset by peer")
		}, 1}, // the caches show that it was done
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.start()
			met := map[string]*atomic.Int64{} // every kind of write meets the fault
			for kind := range fewest {
				met[kind] = &atomic.Int64{}
			}
			f.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
				if met[r.kind].Add(1) <= test.times {
					return test.fault(r, pass)
				}
				return pass()
			})
			f.create("site")
			f.complete("site")
			if n := int64(f.total()); n > 4*test.times+5 {
				t.Errorf("%d requests for %d faults: %v", n, 4*test.times, f.requests())
			}
			for kind, n := range met {
				if n.Load() < test.times {
					t.Errorf("%s met %d faults, want %d", kind, n.Load(), test.times)
				}
			}
			f.neverReported()
			sent := f.total()
			f.Consistently(f.total, "700ms").Should(Equal(sent))
		})
	}
}

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
	f.neverReported()
}

// fight makes somebody write a ConfigMap's page whenever it is right, until the test ends.
func (f *fixture) fight(name string) {
	f.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	f.Cleanup(func() { cancel(); <-ended })
	maps := f.kube.CoreV1().ConfigMaps(f.namespace)
	watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	f.must(err)
	go func() {
		defer close(ended)
		defer watch.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-watch.ResultChan():
				if c, ok := e.Object.(*corev1.ConfigMap); ok && c.Data[pageFile] != "mine" {
					_, _ = maps.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"index.html":"mine"}}`), metav1.PatchOptions{})
				}
			}
		}
	}()
}

func TestASecondWriterThatFights(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.create("other")
	f.complete("other")
	f.forget()
	f.fight("site")
	f.Eventually(f.requests).Should(Equal(map[string]int{"PATCH configmaps": driftBurst}))
	f.Consistently(f.requests, 4*time.Second).Should(Equal(map[string]int{"PATCH configmaps": driftBurst}))
	f.remove("ConfigMap", "other")
	f.Eventually(f.exists("ConfigMap", "other"), atOnce).Should(BeTrue(), "another MyWeb has to wait too")
	f.edit("site", func(s *webv1.MyWebSpec) { s.PageContentHTML = new("new") })
	f.Eventually(func() bool {
		return f.child("Deployment",
			"site").(*appsv1.Deployment).Spec.Template.Annotations[pageHashKey] == pageHash(f.web("site"))
	}, atOnce).Should(BeTrue(), "what the user changed has to wait too")
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
				if resource == "mywebs" && r.kind == "PATCH services" { // the MyWeb is known, its status not written yet
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
