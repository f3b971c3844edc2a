package controller

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// BenchmarkIsUpToDate compares two ways to find out whether a Deployment is up to date.
func BenchmarkIsUpToDate(b *testing.B) {
	f := newFixture(b)
	f.reconcile()
	f.deploy()
	live := get(f, &appsv1.Deployment{})
	child := myweb.DesiredChildren(get(f, &webv1.MyWeb{}))[1]
	b.Run("differences", func(b *testing.B) {
		for b.Loop() {
			if d, err := hardening.Differences(child.Fields, live); err != nil || len(d) > 0 {
				b.Fatal(hardening.Paths(d), err)
			}
		}
	})
	b.Run("extract", func(b *testing.B) {
		fields, err := json.Marshal(live.ManagedFields)
		f.must(err)
		for b.Loop() {
			owned, err := appsv1ac.ExtractDeployment(live, myweb.FieldOwner)
			f.must(err)
			got, err := json.Marshal(owned)
			f.must(err)
			want, err := json.Marshal(child.Desired)
			f.must(err)
			if string(got) != string(want) {
				b.Fatalf("got  %s\nwant %s", got, want)
			}
		}
		b.ReportMetric(float64(len(fields)), "bytes-of-managedFields")
	})
}
