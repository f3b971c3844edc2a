package examine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// podOfData has a ConfigMap and a Secret as variables and as volumes, with and without items, and optional objects that do
// not exist. The lab does not have the content of the last two volumes.
const podOfData = `
containers:
- name: manager
  envFrom:
  - {prefix: IN_, configMapRef: {name: settings}}
  - secretRef: {name: password}
  - configMapRef: {name: none, optional: true}
  env:
  - {name: PASSWORD, valueFrom: {secretKeyRef: {name: password, key: word}}}
  - {name: MISSING, valueFrom: {secretKeyRef: {name: none, key: word, optional: true}}}
  - {name: GREETING, value: hello $(IN_who)}
  volumeMounts:
  - {name: settings, mountPath: /settings}
  - {name: chosen, mountPath: /chosen.conf, subPath: in/chosen.conf}
  - {name: password, mountPath: /password}
  - {name: all, mountPath: /all}
  - {name: optional, mountPath: /optional}
  - {name: token, mountPath: /token}
  - {name: socket, mountPath: /socket}
volumes:
- {name: settings, configMap: {name: settings}}
- {name: chosen, configMap: {name: settings, items: [{key: who, path: in/chosen.conf}]}}
- {name: password, secret: {secretName: password}}
- name: all
  projected:
    sources:
    - configMap: {name: settings, items: [{key: raw, path: in/raw}]}
    - secret: {name: password}
    - downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}
- {name: optional, secret: {secretName: none, optional: true}}
- {name: token, projected: {sources: [{serviceAccountToken: {path: token}}]}}
- {name: socket, hostPath: {path: /run}}
`

// TestWhatAPodGetsOfItsObjects reads the objects from an API server.
func TestWhatAPodGetsOfItsObjects(t *testing.T) {
	t.Parallel()
	f, err := fixture.Start(t.Context(), fixture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Stop() }()
	api := f.Kube.CoreV1()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"who": "you"},
		BinaryData: map[string][]byte{"raw": {0xff}}}
	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}, StringData: map[string]string{"word": "hunter2"}}
	_, err = api.ConfigMaps("default").Create(t.Context(), settings, metav1.CreateOptions{})
	_, secretErr := api.Secrets("default").Create(t.Context(), password, metav1.CreateOptions{})
	if err := errors.Join(err, secretErr); err != nil {
		t.Fatal(err)
	}
	k := &kubelet{workload: &workload{namespace: "default"}, ctx: t.Context(), fixture: f, dir: t.TempDir(),
		self: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "greeter-0"}}}
	if err := yaml.UnmarshalStrict([]byte(podOfData), &k.template.Spec); err != nil {
		t.Fatal(err)
	}
	k.container = k.template.Spec.Containers[0]
	env, _, err := k.environment()
	slices.Sort(env)
	if diff := cmp.Diff([]string{"GREETING=hello you", "IN_raw=\xff", "IN_who=you", "PASSWORD=hunter2", "word=hunter2"},
		env); err != nil || diff != "" {
		t.Error(err, diff)
	}
	mounts, err := k.mounts()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range mounts {
		if m.Source == "" {
			got[m.Target] = "an empty folder"
		}
		_ = filepath.WalkDir(m.Source, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				content, _ := os.ReadFile(path)
				got[m.Target+strings.TrimPrefix(path, m.Source)] = string(content)
			}
			return nil
		})
	}
	if diff := cmp.Diff(map[string]string{"/settings/who": "you", "/settings/raw": "\xff", "/chosen.conf": "you",
		"/password/word": "hunter2", "/all/in/raw": "\xff", "/all/word": "hunter2", "/all/name": "greeter-0",
		"/socket": "an empty folder"}, got); diff != "" {
		t.Error(diff)
	}
	if all := k.leftOut(); len(all) != 1 || !strings.Contains(all[0], "empty: token, socket.") {
		t.Errorf("%q", all)
	}
	k.template.Spec.Volumes[4].Secret.Optional, k.container.EnvFrom[2].ConfigMapRef.Optional = nil, nil
	const missing = " none, which does not exist: add it to MANIFEST=, or to NEEDS= with `namespace: $NAMESPACE`"
	if _, err := k.mounts(); err == nil || err.Error() != "the volume optional: the pod needs the Secret"+missing {
		t.Error(err)
	}
	if _, _, err := k.environment(); err == nil || err.Error() != "the pod needs the ConfigMap"+missing {
		t.Error(err)
	}
}
