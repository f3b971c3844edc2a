package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	manifests "example.com/operator-workshop/04-controller-runtime/config/webhook"
)

// localName is the name of both webhook configurations that a process outside a cluster installs. It
// differs from configurationName, so that the ones of an operator in the cluster stay as they are.
const localName = "myweb-operator-local"

// installByURL serves with a throw-away certificate and, while the operator runs, makes the API server
// call this process by its address. That needs the permission to write webhook configurations, which an
// operator in a cluster must not have.
func (w *Webhooks) installByURL(mgr ctrl.Manager) error {
	cert, key, err := certutil.GenerateSelfSignedCertKey(w.options.Host, nil, nil)
	if err != nil {
		return fmt.Errorf("make a certificate for %s: %w", w.options.Host, err)
	}
	if err := w.certificate.set(cert, key); err != nil {
		return err
	}
	url := "https://" + net.JoinHostPort(w.options.Host, strconv.Itoa(w.options.Port))
	configurations, err := localConfigurations(url, cert)
	if err != nil {
		return err
	}
	plain, err := plainClient(mgr)
	if err != nil {
		return err
	}
	// A runnable without further words runs in the leader only: that is who shall be called.
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			return w.ready(nil) == nil, nil
		})
		if err != nil {
			return fmt.Errorf("wait for the webhook server: %w", err)
		}
		err = install(ctx, plain, configurations)
		if err == nil {
			logger.Info("Installed the webhooks", "url", url)
			<-ctx.Done()
		}
		// The manager ends this before it ends the server: no call finds nobody. The context is over.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		return errors.Join(err, remove(ctx, plain, configurations))
	}))
}

// localConfigurations returns the shipped webhook configurations for a process at url.
func localConfigurations(url string, ca []byte) ([]*unstructured.Unstructured, error) {
	all, err := shippedConfigurations()
	for _, u := range all {
		err = errors.Join(err, byURL(u, url, ca))
		u.SetName(localName)
	}
	return all, err
}

// shippedConfigurations reads config/webhook.
func shippedConfigurations() (all []*unstructured.Unstructured, err error) {
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

// byURL changes a webhook configuration: the API server shall call url, where it finds a certificate
// that ca signed. When nobody answers there, nobody is refused: a process that is killed cannot remove
// its configurations.
func byURL(configuration *unstructured.Unstructured, url string, ca []byte) error {
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
		hook["failurePolicy"] = "Ignore"
	}
	return unstructured.SetNestedSlice(configuration.Object, hooks, "webhooks")
}

// install applies the configurations, and leaves in them what the API server answered. What a killed
// process left is taken over.
func install(ctx context.Context, c client.Client, configurations []*unstructured.Unstructured) error {
	for _, u := range configurations {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(localName), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("install %s %s: %w: run with --webhooks=false, or as somebody who may", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// remove deletes the configurations, except those that somebody changed since: they may be in use by
// another process.
func remove(ctx context.Context, c client.Client, configurations []*unstructured.Unstructured) (err error) {
	for _, u := range configurations {
		if u.GetUID() == "" {
			continue // never installed
		}
		gone := c.Delete(ctx, u, client.Preconditions{UID: new(u.GetUID()), ResourceVersion: new(u.GetResourceVersion())})
		if !apierrors.IsConflict(gone) && client.IgnoreNotFound(gone) != nil {
			err = errors.Join(err, fmt.Errorf("remove %s %s: %w", u.GetKind(), u.GetName(), gone))
		}
	}
	return err
}
