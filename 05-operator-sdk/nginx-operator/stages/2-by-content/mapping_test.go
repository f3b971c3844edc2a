package nginx

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
)

func TestMapping(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := proxyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	nginx := func(namespace, name, content string) *proxyv1alpha1.Nginx {
		n := &proxyv1alpha1.Nginx{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if content != "" {
			n.Spec.ContentRef = &proxyv1alpha1.ContentReference{Name: content}
		}
		return n
	}
	for content, want := range map[string][]string{"page": {"page"}, "": nil} {
		if got := Content(nginx("shop", "front", content)); !slices.Equal(got, want) {
			t.Errorf("Content returns %q for an Nginx that serves %q, the index needs %q", got, content, want)
		}
	}
	store := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&proxyv1alpha1.Nginx{}, ContentIndex, Content).
		WithObjects(
			nginx("shop", "front", "page"), nginx("shop", "mirror", "page"), nginx("shop", "other", "notes"),
			nginx("shop", "page", ""), nginx("bank", "front", "page")).Build()
	scans := false
	cache := interceptor.NewClient(store, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, all client.ObjectList, opts ...client.ListOption) error {
			fields := (&client.ListOptions{}).ApplyOptions(opts).FieldSelector
			scans = scans || fields == nil || fields.Empty()
			return c.List(ctx, all, opts...)
		},
	})
	for name, want := range map[string][]string{
		"page":  {"shop/front", "shop/mirror"},
		"notes": {"shop/other"},
		"loose": nil,
	} {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		var got []string
		for _, request := range (Mapper{cache}).ByContent(t.Context(), configMap) {
			got = append(got, request.String())
		}
		slices.Sort(got)
		for _, one := range want {
			if !slices.Contains(got, one) {
				t.Errorf("the ConfigMap shop/%s changed: Nginx %s serves it, and is not enqueued", name, one)
			}
		}
		for _, one := range got {
			if !slices.Contains(want, one) {
				t.Errorf("the ConfigMap shop/%s changed: %s does not serve it, and is enqueued", name, one)
			}
		}
	}
	if scans && !t.Failed() {
		t.Error("the right Nginxes are enqueued, but the list reads every Nginx (without MatchingFields), not the index")
	}
}
