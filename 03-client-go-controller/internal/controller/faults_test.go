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

// neverTold shows that no status spoke of a fault of the API server.
func (b *bench) neverTold() {
	b.Helper()
	for _, status := range b.statuses() {
		if meta.IsStatusConditionTrue(status.Conditions, webv1.ConditionDegraded) {
			b.Errorf("status told of what is not the MyWeb's fault: %+v", status.Conditions)
		}
	}
	if got := b.warnings(); len(got) > 0 {
		b.Errorf("warnings were recorded: %v", got)
	}
}

func TestFaultsOfTheAPIServerAreRetriedAndNeverTold(t *testing.T) {
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
		}, 1}, // the caches tell that it was done
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.start(Options{})
			met := map[string]*atomic.Int64{} // every kind of write meets the fault
			for kind := range fewest {
				met[kind] = &atomic.Int64{}
			}
			b.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
				if met[r.kind].Add(1) <= test.times {
					return test.fault(r, pass)
				}
				return pass()
			})
			b.create("site")
			b.complete("site")
			if n := int64(b.total()); n > 4*test.times+5 {
				t.Errorf("%d requests for %d faults: %v", n, 4*test.times, b.requests())
			}
			for kind, n := range met {
				if n.Load() < test.times {
					t.Errorf("%s met %d faults, want %d", kind, n.Load(), test.times)
				}
			}
			b.neverTold()
			sent := b.total()
			b.Consistently(b.total, "700ms").Should(Equal(sent))
		})
	}
}

func TestAFaultThatLastsIsRetriedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(Options{})
	b.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.name == "site" {
			return answer(http.StatusInternalServerError, "InternalError", nil), nil
		}
		return pass()
	})
	b.create("site")
	b.create("other")
	b.complete("other") // is not held up
	b.Consistently(func() int { return b.requests()["PATCH configmaps"] }, 3*time.Second).Should(BeNumerically("<=", 12))
	b.between(nil)
	b.Eventually(b.exists("Service", "site"), 10*time.Second).Should(BeTrue())
	b.neverTold()
}

// fight makes somebody write a ConfigMap's page whenever it is right, until the test ends.
func (b *bench) fight(name string) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	b.Cleanup(func() { cancel(); <-ended })
	maps := b.kube.CoreV1().ConfigMaps(b.namespace)
	watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	b.must(err)
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
	b := newServed(t)
	b.create("other")
	b.complete("other")
	b.forget()
	b.fight("site")
	b.Eventually(b.requests).Should(Equal(map[string]int{"PATCH configmaps": restoreBurst}))
	b.Consistently(b.requests, 4*time.Second).Should(Equal(map[string]int{"PATCH configmaps": restoreBurst}))
	b.remove("ConfigMap", "other")
	b.Eventually(b.exists("ConfigMap", "other"), atOnce).Should(BeTrue(), "another MyWeb has to wait too")
	b.edit("site", func(s *webv1.MyWebSpec) { s.PageContentHTML = new("new") })
	b.Eventually(func() bool {
		return b.child("Deployment", "site").(*appsv1.Deployment).Spec.Template.Annotations[annotationPageHash] == pageHash(b.web("site"))
	}, atOnce).Should(BeTrue(), "what the user changed has to wait too")
}

func TestOwnWritesThatTheCachesDoNotShowAreNotRepeated(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"configmaps", "deployments", "services", "mywebs"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.start(Options{})
			if resource != "mywebs" {
				b.freeze(resource)
			}
			b.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
				if resource == "mywebs" && r.kind == "PATCH services" { // the MyWeb is known, its status not written yet
					b.freeze("mywebs")
				}
				return pass()
			})
			b.create("site")
			want := maps.Clone(fewest)
			want["PUT mywebs/status"] = 1
			b.Eventually(b.requests).Should(Equal(want))
			for n := range 3 { // changes that the other watches tell
				b.patch("ConfigMap", "site", fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/n","value":"%d"}]`, n))
				b.rollout("site", func(d *appsv1.Deployment) { d.Status = ready(d, 1); d.Status.CollisionCount = new(int32(n)) })
				b.patch("Service", "site", fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/n","value":"%d"}]`, n))
			}
			b.Consistently(b.requests).Should(Equal(want))
			b.thaw(resource)
			b.Eventually(b.completed("site")).Should(BeTrue())
			b.sentExactly(fewest)
		})
	}
}

func TestAWatchThatLostADeletion(t *testing.T) {
	t.Parallel()
	for kind, resource := range resources {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newServed(t)
			b.freeze(resource)
			b.remove(kind, "site")
			b.forget()
			b.Consistently(b.total, "300ms").Should(BeZero())
			b.lose(resource)
			b.Eventually(b.exists(kind, "site")).Should(BeTrue())
			b.complete("site")
			got := b.requests()
			delete(got, "PUT mywebs/status")
			if want := map[string]int{"PATCH " + resource: 1}; !maps.Equal(got, want) {
				t.Errorf("the requests are %v, want %v", got, want)
			}
		})
	}
}

func TestAWatchThatLostAMyWeb(t *testing.T) {
	t.Parallel()
	b := newServed(t)
	b.freeze("mywebs")
	b.must(b.webs.Delete(t.Context(), "site", metav1.DeleteOptions{}))
	b.remove("Service", "site") // as the garbage collector would
	b.lose("mywebs")
	b.create("other")
	b.complete("other")
	b.remove("ConfigMap", "site")
	b.Consistently(b.exists("ConfigMap", "site")).Should(BeFalse())
}

func TestAWatchThatLostAChildAltogether(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(Options{})
	b.freeze("configmaps")
	b.create("site")
	b.Eventually(func() int { return b.requests()["PUT mywebs/status"] }).Should(Equal(1))
	b.remove("ConfigMap", "site")
	b.lose("configmaps") // the cache never saw it: there is no event that tells of its end
	b.Eventually(b.exists("ConfigMap", "site")).Should(BeTrue())
	b.complete("site")
}
