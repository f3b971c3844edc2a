// Package local makes the API server call an operator outside a cluster by its address. The page in the folder
// above needs it (TestStoppingLeavesTheConfigurationsOfAnotherProcess and the tests beside it); in a cluster nothing here
// runs.
package local

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	manifests "example.com/operator-workshop/04-controller-runtime/config/webhook"
	"example.com/operator-workshop/04-controller-runtime/internal/webhook/keep"
	"example.com/operator-workshop/04-controller-runtime/internal/webhookserver"
)

// Name is the name of both webhook configurations. It differs from the shipped one, so that the configurations
// of an operator in the cluster stay as they are.
const Name = "myweb-operator-local"

var logger = ctrl.Log.WithName("webhooks")

// Install makes the API server call url, where it finds a certificate that ca signed. The calls begin when ready
// returns no error, and end when mgr stops. Except for name and address, the configurations equal the shipped
// configurations. The user of mgr needs the permission to write webhook configurations, which an operator in a cluster
// must not have.
func Install(mgr ctrl.Manager, url string, ca []byte, ready healthz.Checker) error {
	configurations, err := Shipped()
	for _, u := range configurations {
		err = errors.Join(err, CallByURL(u, url, ca))
		u.SetName(Name)
	}
	if err != nil {
		return err
	}
	plain, err := webhookserver.PlainClient(mgr)
	if err != nil {
		return err
	}
	for _, u := range configurations {
		err = errors.Join(err, keep.Object(mgr, u, func(ctx context.Context, live client.Object) error {
			return repair(ctx, plain, u, live)
		}))
	}
	if err != nil {
		return err
	}
	// A plain runnable runs in the leader only, which is the replica to call.
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		serves := func(context.Context) (bool, error) { return ready(request) == nil, nil }
		err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Second, true, serves)
		if err != nil {
			return fmt.Errorf("wait for the webhook server: %w", err)
		}
		err = install(ctx, plain, configurations)
		if err == nil {
			logger.Info("Installed the webhooks", "url", url)
			<-ctx.Done()
		}
		// The manager stops this before it stops the server: no call fails. The context has ended already.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		return errors.Join(err, remove(ctx, plain, configurations))
	}))
}

// Shipped reads the webhook configurations of config/webhook.
func Shipped() (all []*unstructured.Unstructured, err error) {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests.Manifests), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := documents.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read config/webhook: %w", err)
		}
		all = append(all, u)
	}
}

// CallByURL makes a webhook configuration call url, where the API server finds a certificate that ca signed, in
// place of a Service.
func CallByURL(configuration *unstructured.Unstructured, url string, ca []byte) error {
	hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, hook := range hooks {
		hook := hook.(map[string]any)
		path, _, err := unstructured.NestedString(hook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		hook["clientConfig"] = map[string]any{"url": url + path, "caBundle": base64.StdEncoding.EncodeToString(ca)}
	}
	return unstructured.SetNestedSlice(configuration.Object, hooks, "webhooks")
}

// install applies the configurations. It takes over configurations that a killed process left.
func install(ctx context.Context, c client.Client, configurations []*unstructured.Unstructured) error {
	for _, u := range configurations {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner(Name),
			client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("install %s %s: %w: run with --webhooks=false, or as a user who has the permission",
				u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// repair applies a configuration again when it still calls this process, but with another authority, or with none.
func repair(ctx context.Context, c client.Client, u *unstructured.Unstructured, live client.Object) error {
	url, authority := called(u)
	if now, trusted := called(live.(*unstructured.Unstructured)); now != url || trusted == authority {
		return nil
	}
	logger.Info("Another client changed the authority of the webhooks, applying it again", "kind", u.GetKind())
	return install(ctx, c, []*unstructured.Unstructured{u})
}

// called returns the URL that a configuration calls, and the authority that it trusts there.
func called(configuration *unstructured.Unstructured) (url, authority string) {
	hooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, hook := range hooks {
		url, _, _ = unstructured.NestedString(hook.(map[string]any), "clientConfig", "url")
		authority, _, _ = unstructured.NestedString(hook.(map[string]any), "clientConfig", "caBundle")
	}
	return url, authority
}

// remove deletes the configurations that still call this process: another process may use the others.
func remove(ctx context.Context, c client.Client, configurations []*unstructured.Unstructured) (err error) {
	for _, u := range configurations {
		live := u.DeepCopy()
		gone := c.Get(ctx, client.ObjectKeyFromObject(u), live)
		ours, _ := called(u)
		if url, _ := called(live); gone == nil && url == ours {
			gone = c.Delete(ctx, live, client.Preconditions{UID: new(live.GetUID()),
				ResourceVersion: new(live.GetResourceVersion())})
		}
		if !apierrors.IsConflict(gone) && client.IgnoreNotFound(gone) != nil {
			err = errors.Join(err, fmt.Errorf("remove %s %s: %w", u.GetKind(), u.GetName(), gone))
		}
	}
	return err
}
