package examine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/pod"
)

// A kubelet finds what a pod of the workload needs: environment, arguments, and mounts. The content of ConfigMaps and
// Secrets is that of the time when the replica was prepared.
type kubelet struct {
	*workload
	ctx     context.Context
	fixture *fixture.Fixture
	self    *corev1.Pod
	dir     string // for volumes
	served  bool   // the lab makes the certificates of webhooks
}

// dataOf is the content of a ConfigMap or a Secret, nil when it does not exist.
func (k *kubelet) dataOf(kind, name string) (data map[string][]byte, err error) {
	data = map[string][]byte{}
	if kind == "Secret" {
		secret, err := k.fixture.Kube.CoreV1().Secrets(k.namespace).Get(k.ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		return secret.Data, nil
	}
	object, err := k.fixture.Kube.CoreV1().ConfigMaps(k.namespace).Get(k.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for key, text := range object.Data {
		data[key] = []byte(text)
	}
	for key, content := range object.BinaryData {
		data[key] = content
	}
	return data, nil
}

// must is the content of a ConfigMap or a Secret, which exists unless it is optional.
func (k *kubelet) must(kind, name string, optional *bool) (map[string][]byte, error) {
	data, err := k.dataOf(kind, name)
	if err == nil && data == nil && (optional == nil || !*optional) {
		return nil, fmt.Errorf("the pod needs the %s %s, which does not exist: add it to MANIFEST=, or to NEEDS= with "+
			"`namespace: $NAMESPACE`", kind, name)
	}
	return data, err
}

// mounts writes the volumes of the container into files of the lab, and shows them in the pod.
func (k *kubelet) mounts() (all []pod.Mount, err error) {
	volumes := map[string]corev1.Volume{}
	for _, v := range k.template.Spec.Volumes {
		if wrong := validation.IsDNS1123Label(v.Name); len(wrong) > 0 { // no API server has looked at the manifest
			return nil, fmt.Errorf("the volume %s: its name is not valid: %s", v.Name, strings.Join(wrong, "; "))
		}
		volumes[v.Name] = v
	}
	for _, m := range k.container.VolumeMounts {
		if m.MountPath == fixture.ServiceAccountDir {
			continue // each pod of the lab has it
		}
		if source := k.shared(m.Name); source != "" && volumes[m.Name].EmptyDir != nil {
			if err := makeFolder(source, m.SubPath); err != nil {
				return nil, fmt.Errorf("the mount %s: %w", m.MountPath, err)
			}
			all = append(all, pod.Mount{Source: inFolder(source, m.SubPath), Target: m.MountPath, Writable: !m.ReadOnly})
			continue
		}
		source, err := k.volume(volumes[m.Name])
		if err != nil {
			return nil, fmt.Errorf("the volume %s: %w", m.Name, err)
		}
		if m.SubPath != "" && source != "" {
			source = inFolder(source, m.SubPath)
		}
		all = append(all, pod.Mount{Source: source, Target: m.MountPath})
	}
	return all, nil
}

// leftOutVolumes returns a sentence about the mounted volumes whose content the lab does not have, if there are any.
func (w *workload) leftOutVolumes() string {
	served := map[string]bool{}
	for _, v := range w.template.Spec.Volumes {
		served[v.Name] = v.EmptyDir != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil ||
			v.Projected != nil && !slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
				return s.ConfigMap == nil && s.Secret == nil && s.DownwardAPI == nil
			})
	}
	var names []string
	for _, c := range append(w.initContainers(), w.container) {
		for _, m := range c.VolumeMounts {
			if !served[m.Name] && m.MountPath != fixture.ServiceAccountDir && !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Of the pod, the lab leaves these volumes empty: %s. It has ConfigMaps, Secrets, empty folders and the "+
		"downward API, and the token of the service account only at the usual place.", strings.Join(names, ", "))
}

// volume is the folder with the content of a volume; empty for an empty folder.
func (k *kubelet) volume(v corev1.Volume) (dir string, err error) {
	sources := []corev1.VolumeProjection{}
	switch {
	case v.EmptyDir != nil:
		return "", nil
	case v.ConfigMap != nil:
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items, Optional: v.ConfigMap.Optional}})
	case v.Secret != nil:
		if k.isCertificate(v.Secret.SecretName) {
			return k.fixture.Webhooks.CertDir, nil // its files change with the Secret
		}
		sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items,
			Optional: v.Secret.Optional}})
	case v.DownwardAPI != nil:
		sources = append(sources, corev1.VolumeProjection{
			DownwardAPI: &corev1.DownwardAPIProjection{Items: v.DownwardAPI.Items}})
	case v.Projected != nil:
		sources = v.Projected.Sources
	default:
		return "", nil // leftOutVolumes names it
	}
	dir = filepath.Join(k.dir, v.Name)
	err = os.MkdirAll(dir, 0o700)
	for _, source := range sources {
		files, filesErr := k.project(source)
		err = errors.Join(err, filesErr)
		for name, content := range files {
			file := inFolder(dir, name)
			err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600))
		}
	}
	return dir, err
}

// inFolder joins a folder and a path of the manifest, which cannot leave the folder by "..".
func inFolder(dir, path string) string { return filepath.Join(dir, filepath.Clean("/"+path)) }

// makeFolder makes a folder in a volume. It follows no link that a container has made to a place outside the volume.
func makeFolder(volume, path string) error {
	if err := os.MkdirAll(volume, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(volume)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.MkdirAll(inFolder(".", path), 0o700)
}

// stay returns an error when a mount of a folder below dir shows a file outside dir. A container can replace a folder of
// a shared volume by a link, which the mount of a subPath in the next container would follow (CVE-2017-1002101).
func stay(dir string, mounts []pod.Mount) error {
	for _, m := range mounts {
		if !isBelow(dir, m.Source) {
			continue
		}
		top, topErr := filepath.EvalSymlinks(dir)
		source, err := filepath.EvalSymlinks(m.Source)
		if err := errors.Join(topErr, err); err != nil {
			return fmt.Errorf("the mount %s: %w", m.Target, err)
		}
		if !isBelow(top, source) {
			return fmt.Errorf("the mount %s: a link leads out of the pod's volumes, to %s", m.Target, source)
		}
	}
	return nil
}

func isBelow(dir, path string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }

// isCertificate reports whether the lab makes the certificate in a Secret: cert-manager would make it, or something else
// that the lab's cluster does not have.
func (k *kubelet) isCertificate(secret string) bool {
	for _, u := range k.ofKinds("Certificate") {
		if name, _, _ := unstructured.NestedString(u.Object, "spec", "secretName"); name == secret {
			return true
		}
	}
	data, err := k.dataOf("Secret", secret)
	return err == nil && data == nil && k.served
}

// project are the files of a source, by name.
func (k *kubelet) project(source corev1.VolumeProjection) (files map[string][]byte, err error) {
	switch {
	case source.ConfigMap != nil:
		data, err := k.must("ConfigMap", source.ConfigMap.Name, source.ConfigMap.Optional)
		return chosen(data, source.ConfigMap.Items), err
	case source.Secret != nil:
		data, err := k.must("Secret", source.Secret.Name, source.Secret.Optional)
		return chosen(data, source.Secret.Items), err
	case source.DownwardAPI != nil:
		files = map[string][]byte{}
		for _, item := range source.DownwardAPI.Items {
			if item.FieldRef != nil {
				files[item.Path] = []byte(k.field(item.FieldRef.FieldPath))
			} else if item.ResourceFieldRef != nil {
				files[item.Path] = []byte(k.resource(*item.ResourceFieldRef))
			}
		}
		return files, nil
	}
	return nil, nil
}

// chosen are the keys that items name, with their paths; without items all.
func chosen(data map[string][]byte, items []corev1.KeyToPath) map[string][]byte {
	if len(items) == 0 {
		return data
	}
	files := map[string][]byte{}
	for _, item := range items {
		if content, ok := data[item.Key]; ok {
			files[item.Path] = content
		}
	}
	return files
}

// port is the number of a port of the container.
func (w *workload) port(of intstr.IntOrString) int {
	for _, p := range w.container.Ports {
		if of.Type == intstr.String && p.Name == of.StrVal {
			return int(p.ContainerPort)
		}
	}
	return of.IntValue()
}

// shape adds the container's rights to a pod.
func (w *workload) shape(p *pod.Pod) {
	if c := w.template.Spec.SecurityContext; c != nil && c.RunAsUser != nil {
		p.User = int(*c.RunAsUser)
	}
	if c := w.container.SecurityContext; c != nil {
		if c.RunAsUser != nil {
			p.User = int(*c.RunAsUser)
		}
		p.ReadOnly = c.ReadOnlyRootFilesystem != nil && *c.ReadOnlyRootFilesystem
	}
}
