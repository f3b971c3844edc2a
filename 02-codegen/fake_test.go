package codegen_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
	webv1ac "example.com/operator-workshop/02-codegen/pkg/generated/applyconfiguration/myweb/v1"
	"example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned/fake"
	typedv1 "example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned/typed/myweb/v1"
)

// answer is the answer of an API as text: the value that the caller reads, or the reason of the refusal.
func answer(seen any, err error) string {
	if err != nil {
		if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
			return string(reason)
		}
		return err.Error()
	}
	return fmt.Sprint(seen)
}

type webs = typedv1.MyWebInterface

// question is a request of a test, with the answers of the real API and of the fake.
type question struct {
	ask        func(ctx context.Context, webs webs) string
	real, fake string
}

// TestTheFakeClientset sends the same requests to a real API server and to the generated fake. Where the answers
// differ, a test on the fake proves nothing about the cluster.
func TestTheFakeClientset(t *testing.T) {
	for _, questions := range []map[string]question{answeredAlike, unchecked, unfilled, mixedUp, unowned} {
		for name, test := range questions {
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
}

// getting reads one MyWeb.
func getting(name string, look func(*webv1.MyWeb) any) func(context.Context, webs) string {
	return func(ctx context.Context, webs webs) string {
		web, err := webs.Get(ctx, name, metav1.GetOptions{})
		return answer(look(web), err)
	}
}

// creating makes a MyWeb, changed.
func creating(name string, change func(*webv1.MyWeb)) func(context.Context, webs) string {
	return func(ctx context.Context, webs webs) string {
		web := newMyWeb(name)
		change(web)
		web, err := webs.Create(ctx, web, metav1.CreateOptions{})
		return answer(web.Name, err)
	}
}

// changing reads the MyWeb shop, and writes it changed.
func changing(write func(context.Context, webs, *webv1.MyWeb) (any, error)) func(context.Context, webs) string {
	return func(ctx context.Context, webs webs) string {
		web, err := webs.Get(ctx, "shop", metav1.GetOptions{})
		if err != nil {
			return answer(nil, err)
		}
		return answer(write(ctx, webs, web))
	}
}

// listing counts the MyWebs that match.
func listing(options metav1.ListOptions) func(context.Context, webs) string {
	return func(ctx context.Context, webs webs) string {
		list, err := webs.List(ctx, options)
		return answer(len(list.Items), err)
	}
}

func unchanged(*webv1.MyWeb) {}

var answeredAlike = map[string]question{
	"finds by label": {listing(metav1.ListOptions{LabelSelector: "tier=front"}), "1", "1"},
	"reports a missing MyWeb": {
		getting("absent", func(web *webv1.MyWeb) any { return web.Name }), "NotFound", "NotFound"},
	"merges a patch": {
		func(ctx context.Context, webs webs) string {
			web, err := webs.Patch(ctx, "shop", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
			if err != nil {
				return answer(nil, err)
			}
			return answer(*web.Spec.Replicas, nil)
		}, "3", "3"},
	"deletes": {
		func(ctx context.Context, webs webs) string {
			if err := webs.Delete(ctx, "shop", metav1.DeleteOptions{}); err != nil {
				return answer(nil, err)
			}
			_, err := webs.Get(ctx, "shop", metav1.GetOptions{})
			return answer("still there", err)
		}, "NotFound", "NotFound"},
	"refuses a second of one name": {creating("shop", unchanged), "AlreadyExists", "AlreadyExists"},
}

// unchecked are the checks that the fake does not have.
var unchecked = map[string]question{
	"does not check the schema": {
		creating("many", func(web *webv1.MyWeb) { web.Spec.Replicas = new(int32(11)) }), "Invalid", "many"},
	"does not run CEL": {
		creating("spaced", func(web *webv1.MyWeb) { web.Spec.Image = "not an image" }), "Invalid", "spaced"},
	"does not check names": {creating("A Name!", unchanged), "Invalid", "A Name!"},
	"does not notice a stale write": {
		changing(func(ctx context.Context, webs webs, stale *webv1.MyWeb) (any, error) {
			fresh := stale.DeepCopy()
			fresh.Spec.Image = "httpd"
			if _, err := webs.Update(ctx, fresh, metav1.UpdateOptions{}); err != nil {
				return nil, err
			}
			stale.Spec.Image = "caddy"
			web, err := webs.Update(ctx, stale, metav1.UpdateOptions{})
			return web.Spec.Image, err
		}), "Conflict", "caddy"},
	"does not look at preconditions": {
		func(ctx context.Context, webs webs) string {
			other := types.UID("another")
			return answer("deleted",
				webs.Delete(ctx, "shop", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}))
		}, "Conflict", "deleted"},
}

// unfilled are the fields that the fake does not fill in.
var unfilled = map[string]question{
	"does not make a name from generateName": {
		func(ctx context.Context, webs webs) string {
			web := newMyWeb("")
			web.GenerateName = "made-"
			web, err := webs.Create(ctx, web, metav1.CreateOptions{})
			return answer(web.Name != "", err)
		}, "true", "false"},
	"does not fill in defaults": {
		getting("shop", func(web *webv1.MyWeb) any { return web.Spec.Replicas != nil }), "true", "false"},
	"does not give a UID": {getting("shop", func(web *webv1.MyWeb) any { return web.UID != "" }), "true", "false"},
	"does not count generations": {
		changing(func(ctx context.Context, webs webs, web *webv1.MyWeb) (any, error) {
			web.Spec.Image = "httpd"
			web, err := webs.Update(ctx, web, metav1.UpdateOptions{})
			return web.Generation, err
		}), "2", "0"},
}

// mixedUp are the requests that the fake handles in another way.
var mixedUp = map[string]question{
	"writes status through the main address": {
		changing(func(ctx context.Context, webs webs, web *webv1.MyWeb) (any, error) {
			web.Status.ReadyReplicas = 1
			web, err := webs.Update(ctx, web, metav1.UpdateOptions{})
			return web.Status.ReadyReplicas, err
		}), "0", "1"},
	"writes spec through the status address": {
		changing(func(ctx context.Context, webs webs, web *webv1.MyWeb) (any, error) {
			web.Spec.Image = "httpd"
			web, err := webs.UpdateStatus(ctx, web, metav1.UpdateOptions{})
			return web.Spec.Image, err
		}), "nginx", "httpd"},
	"does not find by field": {listing(metav1.ListOptions{FieldSelector: "metadata.name=shop"}), "1", "2"},
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
			if err != nil {
				return answer(nil, err)
			}
			scale.Spec.Replicas = 3
			scale, err = webs.UpdateScale(ctx, "shop", scale, metav1.UpdateOptions{})
			return answer(scale.Spec.Replicas, err)
		}, "3", "panic"},
}

// unowned shows that server-side apply does not work without field owners.
var unowned = map[string]question{
	"cannot create by apply": {
		func(ctx context.Context, webs webs) string {
			web, err := apply(ctx, webs, "applied", "nginx")
			return answer(web.Name, err)
		}, "applied", "NotFound"},
	"does not know who owns a field": {
		func(ctx context.Context, webs webs) string {
			web, err := apply(ctx, webs, "shop", "httpd")
			return answer(web.Spec.Image, err)
		}, "Conflict", "httpd"},
}

func apply(ctx context.Context, webs webs, name, image string) (*webv1.MyWeb, error) {
	return webs.Apply(ctx, webv1ac.MyWeb(name, "").WithSpec(webv1ac.MyWebSpec().WithImage(image)),
		metav1.ApplyOptions{FieldManager: "another"})
}
