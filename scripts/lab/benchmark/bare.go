package benchmark

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// A template holds the writes of an operator for one MyWeb.
type template struct {
	namespace, name, uid string
	bodies               []string // of the applies, in the order of children
	status               any
}

// capture records the writes of an operator for a MyWeb.
func (s *stage) capture(ctx context.Context, namespace, name string) (*template, error) {
	web, err := s.Dynamic.Resource(suite.MyWebs).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	t := &template{namespace: namespace, name: name, uid: string(web.GetUID()), status: web.Object["status"]}
	extractor, err := metav1ac.NewUnstructuredExtractor(s.Kube.Discovery())
	if err != nil {
		return nil, err
	}
	for _, r := range children {
		u, err := s.Dynamic.Resource(r).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		body := stripped(u)
		if by := applier(u); by != "" {
			if body, err = extractor.Extract(u, by); err != nil {
				return nil, err
			}
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

// stripped is the body of an apply that would create an object, defaults included.
func stripped(o *unstructured.Unstructured) *unstructured.Unstructured {
	u := o.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "spec", "clusterIP")
	unstructured.RemoveNestedField(u.Object, "spec", "clusterIPs")
	if ports, ok, _ := unstructured.NestedSlice(u.Object, "spec", "ports"); ok {
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
		_ = unstructured.SetNestedSlice(u.Object, ports, "spec", "ports")
	}
	return u
}

// bare measures a loop that sends, for each MyWeb, the writes of the template. The loop has as many writers as an
// operator has workers, and reads nothing.
func (s *stage) bare(ctx context.Context, t *template, n int) (r run, err error) {
	err = s.inNamespace(ctx, func(ns string) (err error) {
		r, err = s.measure(ctx, ns, n, func(webs []*unstructured.Unstructured, board *board, _ *run) (time.Time, error) {
			begin := time.Now()
			err := parallel(workers, n, func(i int) error { return s.write(ctx, t, webs[i]) })
			if err != nil {
				return begin, err
			}
			return begin, board.await(ctx, n, within(n), nil)
		})
		return err
	})
	return r, err
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
	_, err := s.Dynamic.Resource(suite.MyWebs).Namespace(web.GetNamespace()).
		UpdateStatus(ctx, reported, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("bare loop: status of %s: %w", web.GetName(), err)
	}
	return nil
}
