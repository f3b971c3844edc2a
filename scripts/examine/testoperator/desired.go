package main

import (
	"encoding/base64"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// childrenOf are the resources of a Greeting's children. A Greeting without a namespace has a namespace as its first
// child, and another child in that namespace.
func childrenOf(greeting *unstructured.Unstructured) []schema.GroupVersionResource {
	if greeting.GetNamespace() == "" {
		return []schema.GroupVersionResource{namespaces, children[0]}
	}
	all := slices.Clone(children)
	if os.Getenv("SECRET") != "" {
		all = append(all, secrets)
	}
	if os.Getenv("MORE") != "" {
		all = append(all, moreChildren...)
	}
	return all
}

// secretData is the content of the Secret. A part of it is in stringData, which the API server puts into data.
func secretData(value, namespace string) map[string]any {
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	return map[string]any{"data": map[string]any{"password": encoded(value), "pin": encoded("77"),
		"host": encoded("db." + namespace + ".svc")},
		"stringData": map[string]any{"address": "db://me:" + value + "@example.com"}}
}

// version is in the pod template when the linker sets it: an upgrade then restarts the pods.
var version string

// desired is the desired state of a child.
func desired(greeting *unstructured.Unstructured, gvr schema.GroupVersionResource) *unstructured.Unstructured {
	name := greeting.GetName()
	text, _, _ := unstructured.NestedString(greeting.Object, "spec", "text")
	replicas, _, _ := unstructured.NestedInt64(greeting.Object, "spec", "replicas")
	labels := map[string]any{"app": name}
	var kind string
	content := map[string]any{}
	switch gvr.Resource {
	case "namespaces":
		kind = "Namespace"
	case "secrets":
		kind, content = "Secret", secretData(os.Getenv("SECRET"), greeting.GetNamespace())
	case "configmaps":
		kind, content["data"] = "ConfigMap", map[string]any{"text": text}
	case "serviceaccounts":
		kind, content["automountServiceAccountToken"] = "ServiceAccount", false
	case "networkpolicies":
		kind, content["spec"] = "NetworkPolicy", map[string]any{"podSelector": map[string]any{"matchLabels": labels},
			"policyTypes": []any{"Ingress"}}
	case "poddisruptionbudgets":
		kind, content["spec"] = "PodDisruptionBudget", map[string]any{"minAvailable": int64(1),
			"selector": map[string]any{"matchLabels": labels}}
	case "services":
		port := map[string]any{"name": "http", "port": int64(80), "protocol": "TCP"}
		n, asked, _ := unstructured.NestedInt64(greeting.Object, "spec", "nodePort")
		if asked && !slices.Contains([]string{unused, packs}, os.Getenv("FAULT")) {
			port["nodePort"] = n
		}
		kind, content["spec"] = "Service", map[string]any{"type": "NodePort", "selector": labels, "ports": []any{port}}
	case "deployments":
		kind, content["spec"] = "Deployment", map[string]any{"replicas": replicas,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": "nginx:1.29"}}}}}
	}
	if kind == "Deployment" && version != "" {
		_ = unstructured.SetNestedField(content, version, "spec", "template", "metadata", "annotations", "version")
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
	if u.SetNamespace(greeting.GetNamespace()); greeting.GetNamespace() == "" && gvr != namespaces {
		u.SetNamespace(name)
	}
	u.SetName(name)
	u.SetLabels(map[string]string{"app": name})
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(greeting, greeting.GroupVersionKind())})
	return u
}
