package redact

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Watch learns the data of all Secrets of a cluster, until ctx ends. It returns when it knows the existing Secrets.
func (s *Secrets) Watch(ctx context.Context, kube kubernetes.Interface) error {
	source := cache.NewListWatchFromClient(kube.CoreV1().RESTClient(), "secrets", metav1.NamespaceAll, fields.Everything())
	informer := cache.NewSharedIndexInformer(source, &corev1.Secret{}, 0, cache.Indexers{})
	learn := func(object any) {
		if secret, ok := object.(*corev1.Secret); ok {
			s.Learn(secret)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: learn, UpdateFunc: func(_, now any) { learn(now) }}
	registered, err := informer.AddEventHandler(handler)
	if err != nil {
		return err
	}
	// An experiment kills the API server, so the end of a watch is not worth a message.
	quiet := func(context.Context, *cache.Reflector, error) {}
	if err := informer.SetWatchErrorHandlerWithContext(quiet); err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registered.HasSynced) {
		return errors.Join(errors.New("the Secrets of the cluster were not read"), context.Cause(ctx))
	}
	return nil
}

// Refresh learns the current Secrets, before a text about them is written.
func (s *Secrets) Refresh(ctx context.Context, kube kubernetes.Interface) error {
	list, err := kube.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		s.Learn(&list.Items[i])
	}
	return nil
}
