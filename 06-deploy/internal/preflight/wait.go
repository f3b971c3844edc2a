package preflight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/internal/manifests"
)

// Wait waits until the Deployments of manifests are rolled out. It stops early when waiting cannot help, and returns
// the reason.
func Wait(ctx context.Context, cfg *rest.Config, all []*unstructured.Unstructured, out io.Writer) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // the pauses below are enough
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	deployments, err := manifests.Only[appsv1.Deployment](all, "Deployment")
	if err != nil {
		return err
	}
	for _, d := range deployments {
		if err := rollout(ctx, c, kube, &d); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s is ready: %d of %d replicas\n", client.ObjectKeyFromObject(&d),
			d.Status.ReadyReplicas, *d.Spec.Replicas); err != nil {
			return err
		}
	}
	return nil
}

// rollout waits for one Deployment.
func rollout(ctx context.Context, c client.Client, kube kubernetes.Interface, d *appsv1.Deployment) error {
	key, last := client.ObjectKeyFromObject(d), ""
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, d)
		if apierrors.IsNotFound(err) {
			return false, fmt.Errorf("the Deployment %s is not there: make deploy", key)
		}
		if err == nil && rolledOut(d) {
			return true, nil
		}
		says, final := fmt.Sprint(err), false
		if err == nil {
			says, final = rolloutBlocker(ctx, c, kube, d)
		}
		if final {
			return false, errors.New(says)
		}
		if ctx.Err() == nil { // otherwise the error only says that the time is over
			last = says
		}
		return false, nil
	})
	if !wait.Interrupted(err) {
		return err
	}
	if last == "" {
		last = fmt.Sprintf("%d of %d replicas are updated, %d pods are ready", d.Status.UpdatedReplicas,
			*d.Spec.Replicas, d.Status.ReadyReplicas)
	}
	return fmt.Errorf("the operator is not ready in time: %s: see kubectl -n %s describe pods", last, d.Namespace)
}

// rolledOut reports whether all replicas are of the current template and ready.
func rolledOut(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas &&
		d.Status.AvailableReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
}

// rolloutBlocker returns the problem that blocks a rollout, empty when none is known; final when waiting cannot help.
func rolloutBlocker(ctx context.Context, c client.Client, kube kubernetes.Interface,
	d *appsv1.Deployment) (says string, final bool) {
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return fmt.Sprintf("the namespace %s takes no pod of the operator: %s: change its policy or quota", d.Namespace,
				condition.Message), true
		}
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(d.Namespace),
		client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return err.Error(), false
	}
	for _, pod := range pods.Items {
		if pod.Spec.Containers[0].Image != d.Spec.Template.Spec.Containers[0].Image {
			continue // a pod of the previous version
		}
		if says, final = podBlocker(&pod); says == "" {
			continue
		}
		if line := lastLine(ctx, kube, &pod); line != "" && strings.Contains(says, "ended") {
			says += ". It said: " + line
		}
		return says, final
	}
	return "", false
}

// podBlocker returns the problem that blocks a pod.
func podBlocker(pod *corev1.Pod) (says string, final bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			return fmt.Sprintf("no node takes the pod %s: %s", pod.Name, condition.Message), false
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		waiting := container.State.Waiting
		if waiting == nil {
			continue
		}
		image := fmt.Sprintf("the image %s cannot be had (%s)", container.Image, waiting.Reason)
		switch waiting.Reason {
		case "ErrImageNeverPull":
			return image + ": it is not on the node, and imagePullPolicy Never forbids to look elsewhere: make image load IMG=" +
				container.Image, true
		case "ImagePullBackOff":
			return image + ": " + waiting.Message + ": push it (make docker-push), check its name, or give the namespace an " +
				"imagePullSecret; on kind load it (make image load) and deploy with CONFIG=kind", true
		case "InvalidImageName":
			return image + ": IMG must be name:tag without spaces and capitals", true
		case "CrashLoopBackOff":
			code := int32(0)
			if last := container.LastTerminationState.Terminated; last != nil {
				code = last.ExitCode
			}
			return fmt.Sprintf("the program ended %d times, last with code %d: see kubectl -n %s logs %s --previous",
				container.RestartCount, code, pod.Namespace, pod.Name), true
		case "CreateContainerConfigError", "CreateContainerError":
			return fmt.Sprintf("the container of pod %s cannot be made: %s", pod.Name, waiting.Message), false
		}
	}
	return "", false
}

// lastLine is the last line that the program printed before it ended, empty when it is not known.
func lastLine(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod) string {
	data, err := kube.CoreV1().Pods(pod.Namespace).
		GetLogs(pod.Name, &corev1.PodLogOptions{Previous: true, TailLines: new(int64(1))}).DoRaw(ctx)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// Unused returns an error while there are MyWebs: they and their websites would be deleted with the CRD.
func Unused(ctx context.Context, cfg *rest.Config) error {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return fmt.Errorf("use the API server %s: %w", cfg.Host, err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(myWeb.GroupVersion().WithKind("MyWebList"))
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("look for MyWebs: %w: the CRD is gone already when it is not found", err)
	}
	var names []string
	for _, web := range list.Items {
		names = append(names, web.GetNamespace()+"/"+web.GetName())
	}
	if len(names) == 0 {
		return nil
	}
	if more := len(names) - 5; more > 0 {
		names = append(names[:5], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("there are %d MyWebs (%s), and their websites go with the CRD: delete them first (kubectl delete "+
		"web -A --all), or say FORCE=1", len(list.Items), strings.Join(names, ", "))
}
