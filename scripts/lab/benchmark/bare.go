package benchmark

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb"
)

// A template holds the writes of an operator for one MyWeb.
type template struct {
	namespace, name, uid string
	bodies               []string // of the applies, in the order of children
	status               any
}

// capture records the writes of an operator for a MyWeb.
func (s *stage) capture(ctx context.Context, namespace, name string) (*template, error) {
	web, err := s.Dynamic.Resource(myweb.MyWebs).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	t := &template{namespace: namespace, name: name, uid: string(web.GetUID()), status: web.Object["status"]}
	cm, err := s.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	deployment, err := s.Kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	service, err := s.Kube.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	applied := []func() (any, error){
		func() (any, error) { return corev1ac.ExtractConfigMap(cm, applier(cm)) },
		func() (any, error) { return appsv1ac.ExtractDeployment(deployment, applier(deployment)) },
		func() (any, error) { return corev1ac.ExtractService(service, applier(service)) },
	}
	for i, o := range []runtime.Object{cm, deployment, service} {
		extract := applied[i]
		if applier(o.(metav1.Object)) == "" { // the operator created or updated it
			extract = func() (any, error) { return stripped(o, children[i].GroupVersion().String()) }
		}
		body, err := extract()
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		t.bodies = append(t.bodies, string(data))
	}
	return t, nil
}

// applier is the field manager that applied an object; empty when no field manager applied it.
func applier(o metav1.Object) string {
	for _, m := range o.GetManagedFields() {
		if m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" {
			return m.Manager
		}
	}
	return ""
}

// stripped turns an object into the body of an apply that would create it, defaults included.
func stripped(o runtime.Object, apiVersion string) (map[string]any, error) {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	kinds := map[string]string{"*v1.ConfigMap": "ConfigMap", "*v1.Deployment": "Deployment", "*v1.Service": "Service"}
	u["apiVersion"], u["kind"] = apiVersion, kinds[fmt.Sprintf("%T", o)]
	delete(u, "status")
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(u, "metadata", field)
	}
	unstructured.RemoveNestedField(u, "spec", "clusterIP")
	unstructured.RemoveNestedField(u, "spec", "clusterIPs")
	if ports, ok, _ := unstructured.NestedSlice(u, "spec", "ports"); ok {
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
		_ = unstructured.SetNestedSlice(u, ports, "spec", "ports")
	}
	return u, nil
}

// bare makes MyWebs, and returns how long a loop takes to send, for each, the writes of the template. The loop has as
// many writers as an operator has workers, and reads nothing. The second duration is the API server's processor time.
func (s *stage) bare(ctx context.Context, t *template, n int) (took, apiServer time.Duration, err error) {
	err = s.inNamespace(ctx, func(ns string) error {
		board, err := newBoard(ctx, s.Fixture, ns, converged)
		if err != nil {
			return err
		}
		defer board.close()
		webs, err := create(ctx, s.Fixture, ns, 0, n)
		if err != nil {
			return err
		}
		before, err := fixture.CPU(s.apiServer)
		if err != nil {
			return err
		}
		begin := time.Now()
		if err := parallel(workers, n, func(i int) error { return s.write(ctx, t, webs[i]) }); err != nil {
			return err
		}
		if err := board.await(ctx, n, within(n), nil); err != nil {
			return err
		}
		took = board.took(begin)
		after, err := fixture.CPU(s.apiServer)
		apiServer = after - before
		return err
	})
	return took, apiServer, err
}

// write makes the children of one MyWeb and writes its status.
func (s *stage) write(ctx context.Context, t *template, web *unstructured.Unstructured) error {
	clients := []rest.Interface{s.Kube.CoreV1().RESTClient(), s.Kube.AppsV1().RESTClient(), s.Kube.CoreV1().RESTClient()}
	own := strings.NewReplacer(t.uid, string(web.GetUID()), t.namespace, web.GetNamespace(), t.name, web.GetName())
	for i, c := range clients {
		err := c.Patch(types.ApplyPatchType).Namespace(web.GetNamespace()).Resource(children[i].Resource).Name(web.GetName()).
			SetHeader("Accept", "application/vnd.kubernetes.protobuf, application/json").
			Param("fieldManager", "bench").Param("force", "true").
			Body([]byte(own.Replace(t.bodies[i]))).Do(ctx).Error()
		if err != nil {
			return fmt.Errorf("bare loop: apply %s %s: %w", children[i].Resource, web.GetName(), err)
		}
	}
	reported := web.DeepCopy()
	reported.Object["status"] = t.status
	_, err := s.Dynamic.Resource(myweb.MyWebs).Namespace(web.GetNamespace()).
		UpdateStatus(ctx, reported, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("bare loop: status of %s: %w", web.GetName(), err)
	}
	return nil
}
