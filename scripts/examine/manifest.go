package examine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// A workload is the part of an operator's manifests that describes its pods.
type workload struct {
	name, namespace string
	object          *unstructured.Unstructured // its Deployment, or another kind with a pod template
	template        corev1.PodTemplateSpec
	container       corev1.Container
	objects         []*unstructured.Unstructured // all of the manifests
}

// readManifest reads the operator's manifests, as `kustomize build` and `helm template` print them.
func (t *target) readManifest() error {
	if t.Manifest == "" {
		return nil
	}
	w := &workload{}
	err := filepath.WalkDir(t.Manifest, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path != t.Manifest && !isManifest(path) {
			return err
		}
		all, err := fixture.Objects(path)
		if chart := chartOf(path); err != nil && chart != "" {
			return fmt.Errorf("%s is a Helm chart, and its templates are not objects: run `helm template %s > manifest.yaml`, and "+
				"give this file (or the files that are not in the chart)", chart, chart)
		}
		w.objects = append(w.objects, all...)
		return err
	})
	w.objects = slices.DeleteFunc(w.objects, isNotInstalled)
	if err == nil {
		err = w.choose(nameOf(t.Program))
	}
	if err != nil {
		return fmt.Errorf("MANIFEST=%s cannot be used: %w", t.Manifest, err)
	}
	w.place()
	t.workload = w
	for _, e := range w.container.Env { // the usual name for what the manifests of many operators set
		own := e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace"
		if e.Name == "WATCH_NAMESPACE" && (own || e.Value == w.namespace) {
			t.Namespace = cmp.Or(t.Namespace, w.namespace)
		}
	}
	return nil
}

// hook is the annotation of an object that Helm creates at certain times, such as a Job before an installation.
const hook = "helm.sh/hook"

// isNotInstalled reports whether an installation does not create an object: Helm creates it for a test, or for another
// time in the life of a release. Its roles are not those of the operator.
func isNotInstalled(u *unstructured.Unstructured) bool {
	times, isHook := u.GetAnnotations()[hook]
	return isHook && !strings.Contains(times, "-install")
}

// place gives a namespace to objects without one. `helm template -n` writes the namespace only where a chart names it,
// and each binding names that of the service account. Other parts of examine compare the namespaces of these kinds.
func (w *workload) place() {
	w.namespace = cmp.Or(w.object.GetNamespace(), w.namespaceOfAccount(), metav1.NamespaceDefault)
	for _, u := range append(w.ofKinds("Role", "RoleBinding", "Service"), w.object) {
		u.SetNamespace(cmp.Or(u.GetNamespace(), w.namespace))
	}
}

// namespaceOfAccount returns the namespace that a binding names for the service account, or "".
func (w *workload) namespaceOfAccount() string {
	for _, u := range w.ofKinds("RoleBinding", "ClusterRoleBinding") {
		subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
		for _, s := range subjects {
			if s, _ := s.(map[string]any); s["kind"] == rbacv1.ServiceAccountKind && s["name"] == w.serviceAccount() {
				namespace, _ := s["namespace"].(string)
				return namespace
			}
		}
	}
	return ""
}

// isManifest reports whether a file has objects, by its name.
func isManifest(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
}

// chartOf returns the folder of the Helm chart that a file belongs to, or "".
func chartOf(file string) string {
	for folder := filepath.Dir(file); ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "Chart.yaml")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			return ""
		}
	}
}

// choose finds the workload that runs the program: the only one, or the one that names the program.
func (w *workload) choose(program string) error {
	var found, named []workload
	var names []string
	for _, u := range w.objects {
		_, isHook := u.GetAnnotations()[hook]
		if isHook || !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, u.GetKind()) {
			continue
		}
		one, err := workloadOf(u)
		if err != nil {
			return err
		}
		found, names = append(found, one), append(names, u.GetKind()+" "+u.GetName())
		text := slices.Concat(one.container.Command, []string{u.GetName(), one.container.Name, one.container.Image})
		if strings.Contains(strings.Join(text, " "), program) {
			named = append(named, one)
		}
	}
	if len(found) > 1 {
		found = named
	}
	switch {
	case len(names) == 0:
		return errors.New("it holds no Deployment: give the output of `kustomize build config/default` or `helm template`")
	case len(found) != 1:
		return fmt.Errorf("it holds %s, and the name of exactly one must have the name of the program, %s: give a file that "+
			"has only the Deployment of the program", strings.Join(names, ", "), program)
	}
	all := w.objects
	*w = found[0]
	w.objects = all
	return nil
}

// workloadOf reads a Deployment, or another kind with a pod template.
func workloadOf(u *unstructured.Unstructured) (w workload, err error) {
	w.object, w.name = u, u.GetName()
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &w.template); err != nil {
		return w, fmt.Errorf("read %s %s: %w", u.GetKind(), w.name, err)
	}
	containers := w.template.Spec.Containers
	if len(containers) == 0 {
		return w, fmt.Errorf("%s %s has no container", u.GetKind(), w.name)
	}
	main := cmp.Or(w.template.Annotations["kubectl.kubernetes.io/default-container"], "manager")
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == main })
	w.container = containers[max(at, 0)]
	return w, nil
}

// serviceAccount is the name of the service account.
func (w *workload) serviceAccount() string {
	return cmp.Or(w.template.Spec.ServiceAccountName, "default")
}

// ofKinds are the objects of some kinds.
func (w *workload) ofKinds(kinds ...string) (some []*unstructured.Unstructured) {
	if w == nil {
		return nil
	}
	for _, u := range w.objects {
		if slices.Contains(kinds, u.GetKind()) {
			some = append(some, u)
		}
	}
	return some
}

// A grant is a role that a binding gives to the service account. Without a namespace it applies everywhere.
type grant struct {
	name, namespace string
	rules           []rbacv1.PolicyRule
}

// grants are the roles that the manifests bind to the service account.
func (w *workload) grants() (all []grant, err error) {
	if w == nil {
		return nil, nil
	}
	roles := map[string][]rbacv1.PolicyRule{}
	for _, u := range w.ofKinds("Role", "ClusterRole") {
		var r rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		roles[u.GetKind()+" "+u.GetNamespace()+" "+u.GetName()] = r.Rules
	}
	for _, u := range w.ofKinds("RoleBinding", "ClusterRoleBinding") {
		var b rbacv1.RoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &b); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		if !slices.ContainsFunc(b.Subjects, w.isSubject) {
			continue
		}
		in := u.GetNamespace()
		if b.RoleRef.Kind == "ClusterRole" {
			in = ""
		}
		all = append(all, grant{b.RoleRef.Name, u.GetNamespace(), roles[b.RoleRef.Kind+" "+in+" "+b.RoleRef.Name]})
	}
	return all, nil
}

// isSubject reports whether a binding is for the service account.
func (w *workload) isSubject(s rbacv1.Subject) bool {
	group := []string{"system:serviceaccounts", "system:serviceaccounts:" + w.namespace, "system:authenticated"}
	return s.Kind == rbacv1.ServiceAccountKind && s.Name == w.serviceAccount() && cmp.Or(s.Namespace, w.namespace) == w.namespace ||
		s.Kind == rbacv1.GroupKind && slices.Contains(group, s.Name)
}

// later are kinds that the lab does not create: it runs the program itself, and installs CRDs and webhooks with its own
// address.
var later = []string{"CustomResourceDefinition", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService", "Pod"}

// installManifest creates the other objects of the manifests. The lab's cluster does not serve the kinds of other
// products, such as cert-manager.
func (r *run) installManifest() error {
	w := r.target.workload
	if w == nil {
		return nil
	}
	var unknown []string
	namespaces := w.ofKinds("Namespace")
	for _, u := range append(namespaces, w.objects...) {
		if slices.Contains(later, u.GetKind()) {
			continue
		}
		served, err := r.fixture.Create(r.ctx, u, w.namespace)
		if err != nil {
			return fmt.Errorf("MANIFEST=: create %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		if !served && !slices.Contains(unknown, u.GetKind()) {
			unknown = append(unknown, u.GetKind())
		}
	}
	if len(unknown) > 0 {
		r.report.Notes = append(r.report.Notes, fmt.Sprintf("The lab left out the objects of MANIFEST= whose kind its cluster "+
			"does not serve: %s.", strings.Join(unknown, ", ")))
	}
	return nil
}
