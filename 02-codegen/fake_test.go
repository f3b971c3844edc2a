package codegen_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clienttesting "k8s.io/client-go/testing"

	webv1ac "example.com/operator-workshop/02-codegen/pkg/generated/applyconfiguration/myweb/v1"
	"example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned/fake"
	"example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned/scheme"
	typedv1 "example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned/typed/myweb/v1"
)

// answer is how an API answered: what the caller looks at, or the reason of the refusal.
func answer(seen any, err error) string {
	if err != nil {
		if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
			return string(reason)
		}
		return err.Error()
	}
	return fmt.Sprint(seen)
}

// TestTheFakeClientset asks a real API server and the generated fake the same. Where they differ, a
// test on the fake proves nothing about the cluster.
func TestTheFakeClientset(t *testing.T) {
	type webs = typedv1.MyWebInterface
	for name, test := range map[string]struct {
		ask        func(ctx context.Context, webs webs) string
		real, fake string
	}{
		"finds by label": {
			func(ctx context.Context, webs webs) string {
				list, err := webs.List(ctx, metav1.ListOptions{LabelSelector: "tier=front"})
				return answer(len(list.Items), err)
			}, "1", "1"},
		"knows what is not there": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Get(ctx, "nobody", metav1.GetOptions{})
				return answer(web.Name, err)
			}, "NotFound", "NotFound"},
		"refuses a second of one name": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Create(ctx, newMyWeb("shop"), metav1.CreateOptions{})
				return answer(web.Name, err)
			}, "AlreadyExists", "AlreadyExists"},

		"does not check the schema": {
			func(ctx context.Context, webs webs) string {
				web := newMyWeb("many")
				web.Spec.Replicas = new(int32(11))
				web, err := webs.Create(ctx, web, metav1.CreateOptions{})
				return answer(web.Name, err)
			}, "Invalid", "many"},
		"does not run CEL": {
			func(ctx context.Context, webs webs) string {
				web := newMyWeb("spaced")
				web.Spec.Image = "not an image"
				web, err := webs.Create(ctx, web, metav1.CreateOptions{})
				return answer(web.Name, err)
			}, "Invalid", "spaced"},
		"does not check names": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Create(ctx, newMyWeb("A Name!"), metav1.CreateOptions{})
				return answer(web.Name, err)
			}, "Invalid", "A Name!"},
		"does not make a name from generateName": {
			func(ctx context.Context, webs webs) string {
				web := newMyWeb("")
				web.GenerateName = "made-"
				web, err := webs.Create(ctx, web, metav1.CreateOptions{})
				return answer(web.Name != "", err)
			}, "true", "false"},
		"does not fill in defaults": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Get(ctx, "shop", metav1.GetOptions{})
				return answer(web.Spec.Replicas != nil, err)
			}, "true", "false"},
		"does not give a UID": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Get(ctx, "shop", metav1.GetOptions{})
				return answer(web.UID != "", err)
			}, "true", "false"},
		"does not count generations": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Get(ctx, "shop", metav1.GetOptions{})
				if err != nil {
					return answer(nil, err)
				}
				web.Spec.Image = "httpd"
				web, err = webs.Update(ctx, web, metav1.UpdateOptions{})
				return answer(web.Generation, err)
			}, "2", "0"},
		"does not notice a stale write": {
			func(ctx context.Context, webs webs) string {
				stale, err := webs.Get(ctx, "shop", metav1.GetOptions{})
				if err != nil {
					return answer(nil, err)
				}
				fresh := stale.DeepCopy()
				fresh.Spec.Image = "httpd"
				if _, err := webs.Update(ctx, fresh, metav1.UpdateOptions{}); err != nil {
					return answer(nil, err)
				}
				stale.Spec.Image = "caddy"
				web, err := webs.Update(ctx, stale, metav1.UpdateOptions{})
				return answer(web.Spec.Image, err)
			}, "Conflict", "caddy"},
		"writes status through the main address": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Get(ctx, "shop", metav1.GetOptions{})
				if err != nil {
					return answer(nil, err)
				}
				web.Status.ReadyReplicas = 1
				web, err = webs.Update(ctx, web, metav1.UpdateOptions{})
				return answer(web.Status.ReadyReplicas, err)
			}, "0", "1"},
		"writes spec through the status address": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Get(ctx, "shop", metav1.GetOptions{})
				if err != nil {
					return answer(nil, err)
				}
				web.Spec.Image = "httpd"
				web, err = webs.UpdateStatus(ctx, web, metav1.UpdateOptions{})
				return answer(web.Spec.Image, err)
			}, "nginx", "httpd"},
		"does not find by field": {
			func(ctx context.Context, webs webs) string {
				list, err := webs.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=shop"})
				return answer(len(list.Items), err)
			}, "1", "2"},
		"does not look at preconditions": {
			func(ctx context.Context, webs webs) string {
				other := types.UID("another")
				return answer("deleted",
					webs.Delete(ctx, "shop", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}))
			}, "Conflict", "deleted"},
		"does not wait for finalizers": {
			func(ctx context.Context, webs webs) string {
				web := newMyWeb("held")
				web.Finalizers = []string{"example.com/hold"}
				if _, err := webs.Create(ctx, web, metav1.CreateOptions{}); err != nil {
					return answer(nil, err)
				}
				if err := webs.Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
					return answer(nil, err)
				}
				web, err := webs.Get(ctx, "held", metav1.GetOptions{})
				return answer(web.DeletionTimestamp != nil, err)
			}, "true", "NotFound"},
		"panics at its own scale methods": {
			func(ctx context.Context, webs webs) (seen string) {
				defer func() {
					if recover() != nil {
						seen = "panic"
					}
				}()
				scale, err := webs.GetScale(ctx, "shop", metav1.GetOptions{})
				return answer(scale.Spec.Replicas, err)
			}, "1", "panic"},
		"cannot create by apply": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Apply(ctx, webv1ac.MyWeb("applied", "").WithSpec(webv1ac.MyWebSpec().WithImage("nginx")),
					metav1.ApplyOptions{FieldManager: "one"})
				return answer(web.Name, err)
			}, "applied", "NotFound"},
		"does not know who owns a field": {
			func(ctx context.Context, webs webs) string {
				web, err := webs.Apply(ctx, webv1ac.MyWeb("shop", "").WithSpec(webv1ac.MyWebSpec().WithImage("httpd")),
					metav1.ApplyOptions{FieldManager: "another"})
				return answer(web.Spec.Image, err)
			}, "Conflict", "httpd"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, side := range []struct {
				name string
				webs webs
				want string
			}{
				{"the API server", newWebs(t), test.real},
				{"the fake", fake.NewSimpleClientset().OperatorV1().MyWebs("default"), test.fake},
			} {
				shop := newMyWeb("shop")
				shop.Labels = map[string]string{"tier": "front"}
				create(t, side.webs, shop)
				create(t, side.webs, newMyWeb("blog"))

				if got := test.ask(t.Context(), side.webs); got != side.want {
					t.Errorf("%s answered %q, want %q", side.name, got, side.want)
				}
			}
		})
	}
}

// TestTheFakeWithFieldManagementNeedsASchema: NewClientset keeps track of field owners, but only of
// types whose OpenAPI schema was given to applyconfiguration-gen. Nobody publishes one for MyWeb.
func TestTheFakeWithFieldManagementNeedsASchema(t *testing.T) {
	webs := fake.NewClientset().OperatorV1().MyWebs("default")
	_, err := webs.Create(t.Context(), newMyWeb("shop"), metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "no type found matching") {
		t.Errorf("create: %v, want: no type found matching", err)
	}
}

// TestAFakeThatApplies: with a tracker that deduces the schema from the objects, the generated fake
// has field owners. It takes every list for one value, and still checks nothing else.
func TestAFakeThatApplies(t *testing.T) {
	tracker := clienttesting.NewFieldManagedObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder(),
		managedfields.NewDeducedTypeConverter())
	clientset := &fake.Clientset{}
	clientset.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
	webs := clientset.OperatorV1().MyWebs("default")

	apply := func(manager, image string) string {
		web, err := webs.Apply(t.Context(), webv1ac.MyWeb("shop", "default").WithSpec(webv1ac.MyWebSpec().WithImage(image)),
			metav1.ApplyOptions{FieldManager: manager})
		return answer(web.Spec.Image, err)
	}
	got := []string{apply("one", "nginx"), apply("another", "httpd"), apply("one", "not an image")}
	if diff := cmp.Diff([]string{"nginx", "Conflict", "not an image"}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
