package examine

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/pod"
	"example.com/operator-workshop/scripts/examine/supervisor"
)

const manifest = "testoperator/config/manifest.yaml"

// rendered writes the manifest as `helm template` prints it for a release in a namespace: the chart names the namespace
// only where it must. It has comments, an empty document, a list and hooks.
func rendered(t *testing.T, namespace string) string {
	t.Helper()
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	documents := slices.DeleteFunc(strings.Split(string(text), "---\n"), func(d string) bool {
		return strings.Contains(d, "\nkind: Namespace\n") || strings.Contains(d, "\nkind: ConfigMap\n")
	})
	documents = append(documents, "\n", `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: greeter}, data: {habit: converts, port: "9444"}}
`, `apiVersion: batch/v1
kind: Job
metadata: {name: prepare, annotations: {"helm.sh/hook": "pre-install,pre-upgrade"}}
`, `apiVersion: apps/v1
kind: Deployment
metadata: {name: testoperator, annotations: {"helm.sh/hook": test}}
`, `apiVersion: v1
kind: Pod
metadata: {name: test, annotations: {"helm.sh/hook": test}}
`, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: cleanup, annotations: {"helm.sh/hook": pre-delete}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: ServiceAccount, name: greeter, namespace: testoperator}
`)
	var all strings.Builder
	for _, d := range documents {
		d = strings.ReplaceAll(d, "\n  namespace: testoperator\n", "\n")
		d = strings.ReplaceAll(d, "namespace: testoperator", "namespace: "+namespace)
		all.WriteString("---\n# Source: greeter/templates/all.yaml\n" + d)
	}
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestManifest(t *testing.T) {
	for file, namespace := range map[string]string{manifest: "testoperator", rendered(t, "testoperator"): "testoperator",
		rendered(t, "default"): "default"} {
		target := &target{Subject: Subject{Program: "bin/testoperator", Manifest: file}}
		if err := target.readManifest(); err != nil {
			t.Fatal(err)
		}
		w := target.workload
		if target.home() != namespace || target.serviceAccount().String() != namespace+"/greeter" || target.Namespace != "" {
			t.Errorf("namespace %s, account %s, it watches %q", target.home(), target.serviceAccount(), target.Namespace)
		}
		all, err := w.grants()
		if err != nil || len(all) != 2 || all[0].namespace != namespace || all[1].namespace != "" ||
			len(all[1].rules) != 4 || len(all[0].rules) != 2 {
			t.Errorf("roles %+v, %v", all, err)
		}
		if names, wanted := w.services(), "greetings."+namespace+".svc"; len(names) != 4 || names[2] != wanted {
			t.Errorf("Services %q, want %s", names, wanted)
		}
		if n := len(w.ofKinds("ConfigMap")); n != 1 {
			t.Errorf("%s: %d ConfigMaps", file, n)
		}
		if say := w.leftOutWorkloads(); (say == "Of MANIFEST=, the lab does not run Job prepare.") != (file != manifest) {
			t.Errorf("%s: %q", file, say)
		}
		k := kubelet{workload: w}
		want := []string{"--leader-elect", "--webhook-port=9444", "--webhook-cert-dir=/certs"}
		if args := k.arguments(map[string]string{"WEBHOOK_PORT": "9444"}); !slices.Equal(args, want) {
			t.Errorf("arguments %q, want %q", args, want)
		}
		p := &pod.Pod{}
		if w.shape(p); !p.ReadOnly || p.User != 65532 {
			t.Errorf("the pod is %+v", p)
		}
		if n := w.port(intstr.FromString("webhooks")); n != 9444 {
			t.Errorf("the port webhooks is %d", n)
		}
		if n := w.port(intstr.FromInt32(80)); n != 80 {
			t.Errorf("the port 80 is %d", n)
		}
	}
}

func TestTheDeploymentOfAProgram(t *testing.T) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	other := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\nspec: {template: {spec: {containers: " +
		"[{name: NAME, image: x}]}}}\n"
	for name, test := range map[string]struct{ text, say string }{
		"another one beside it": {string(text) + other, ""},
		"none":                  {"kind: ConfigMap\napiVersion: v1\n", "it holds no Deployment"},
		"two of the program":    {string(text) + strings.ReplaceAll(other, "NAME", "testoperator"), "the name of exactly one"},
		"no container": {"kind: Deployment\napiVersion: apps/v1\nmetadata: {name: a}\n",
			"Deployment a has no container"},
	} {
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		target := &target{Subject: Subject{Program: "bin/testoperator", Manifest: file}}
		err := target.readManifest()
		if test.say == "" && (err != nil || target.workload.name != "greeter") ||
			test.say != "" && (err == nil || !strings.Contains(err.Error(), test.say)) {
			t.Errorf("%s: %v, want %q", name, err, test.say)
		}
	}
}

func TestAHelmChart(t *testing.T) {
	deploy := t.TempDir()
	chart := filepath.Join(deploy, "chart")
	template := filepath.Join(chart, "templates", "deployment.yaml")
	if err := os.MkdirAll(filepath.Dir(template), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{filepath.Join(deploy, "broken.yaml"): "a: {{ b }}\n",
		filepath.Join(chart, "Chart.yaml"): "name: greeter\n", template: "kind: {{ .Values.kind }}\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fix := "is a Helm chart, and its templates are not objects: run `helm template " + chart + " > manifest.yaml`"
	for path, say := range map[string]string{chart: fix, template: fix, filepath.Dir(template): fix,
		filepath.Join(deploy, "broken.yaml"): "is not YAML"} {
		err := (&target{Subject: Subject{Program: "bin/testoperator", Manifest: path}}).readManifest()
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", path, err, say)
		}
	}
}

func TestWhatADownwardAPIHas(t *testing.T) {
	k := kubelet{self: &corev1.Pod{}, workload: &workload{namespace: "here"}}
	k.self.Name, k.self.Labels = "greeter-0", map[string]string{"app": "greeter"}
	k.container.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1500m"),
		"memory": resource.MustParse("64Mi")}
	for path, want := range map[string]string{"metadata.name": "greeter-0", "metadata.namespace": "here",
		"metadata.labels['app']": "greeter", "metadata.labels": "app=\"greeter\"\n", "spec.serviceAccountName": "default"} {
		if got := k.field(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	for _, test := range []struct{ resource, divisor, want string }{{"limits.cpu", "0", "2"}, {"limits.cpu", "1m", "1500"},
		{"limits.memory", "1Mi", "64"}, {"limits.memory", "0", "67108864"}} {
		of := corev1.ResourceFieldSelector{Resource: test.resource, Divisor: resource.MustParse(test.divisor)}
		if got := k.resource(of); got != test.want {
			t.Errorf("%s by %s is %s, want %s", test.resource, test.divisor, got, test.want)
		}
	}
}

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "a"}
	for text, want := range map[string]string{"$(A)": "a", "x=$(A)/$(A)": "x=a/a", "$(B)": "$(B)", "$$(A)": "$(A)", "$A": "$A"} {
		if got := expand(text, values); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

// TestASystemThatAllowsNoPods is not parallel, because it replaces the check of all tests.
func TestASystemThatAllowsNoPods(t *testing.T) {
	check := pod.Check
	defer func() { pod.Check = check }()
	pod.Check = func() error { return pod.ErrNone }
	for _, chosen := range []bool{false, true} {
		target, notes := &target{Subject: Subject{Outside: chosen}}, ""
		target.choosePlace(func(note string) { notes += note })
		if !target.Outside || strings.Contains(notes, "`sudo sysctl ") == chosen || target.emptyPod() != nil {
			t.Errorf("outside %v, chosen %v: %s", target.Outside, chosen, notes)
		}
	}
}

// TestHealth asks etcd, which serves the health service of gRPC.
func TestHealth(t *testing.T) {
	bin, err := cluster.Programs()
	client, clientErr := fixture.FreePort()
	peer, peerErr := fixture.FreePort()
	if err := errors.Join(err, clientErr, peerErr); err != nil {
		t.Fatal(err)
	}
	of := func(port int) string { return "http://" + localAddress(port) }
	p, err := supervisor.Start(supervisor.Command{Path: filepath.Join(bin, "etcd"), Env: []string{}, Output: io.Discard,
		Args: []string{"--data-dir=" + t.TempDir(), "--listen-client-urls=" + of(client), "--advertise-client-urls=" + of(client),
			"--listen-peer-urls=" + of(peer), "--initial-advertise-peer-urls=" + of(peer),
			"--initial-cluster=default=" + of(peer)}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	o := &operator{}
	o.Began(&fixture.Process{Child: p})
	err = fixture.Eventually(t.Context(), 30*time.Second, func() error { return o.askHealth(t.Context(), client, "") })
	if err != nil {
		t.Error(err)
	}
	err = o.askHealth(t.Context(), client, "none")
	if want := "the service of gRPC does not report SERVING: 200 OK, code 5"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestExecProbes calls programs that the pod has, and a program that only the image has.
func TestExecProbes(t *testing.T) {
	if err := pod.Check(); err != nil {
		t.Skip("this system allows no pods: ", err)
	}
	p, err := supervisor.Start(supervisor.Command{Path: "/bin/sleep", Args: []string{"600"}, Dir: "/",
		Env: []string{"PATH=/usr/bin:/bin"}, Output: io.Discard, Pod: fixture.EmptyPod("probed")})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	o := &operator{target: &target{workload: &workload{}}}
	o.Began(&fixture.Process{Child: p})
	if l, err := p.Network().Listener(); err != nil {
		t.Fatal(err)
	} else {
		defer l.Close()
	}
	for command, succeeds := range map[string]bool{"true": true, "false": false, "/grpc_health_probe": true,
		"cat /no/such/file": false} {
		err := o.ask(t.Context(), corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: strings.Fields(command)}})
		if (err == nil) != succeeds {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestContainers(t *testing.T) {
	target := &target{Subject: Subject{Program: "bin/testoperator", Manifest: manifest}}
	if err := target.readManifest(); err != nil {
		t.Fatal(err)
	}
	w := target.workload
	if all := w.initContainers(); len(all) != 1 || all[0].Name != "prepare" {
		t.Errorf("init containers %+v", all)
	}
	program := w.container.Command
	w.container.Command = []string{"sh", "-c", "exec /testoperator"}
	w.template.Spec.InitContainers[0].Command = []string{"sh", "-c", "rm -rf /prepared/*"}
	if all := w.initContainers(); len(all) != 0 {
		t.Errorf("another script of the same shell: %+v", all)
	}
	w.container.Command, w.template.Spec.InitContainers[0].Command = program, program
	w.template.Spec.InitContainers[0].Image = "busybox"
	want := "Of the pod, the lab does not run prepare, proxy: the lab has no image, and no program but PROGRAM=."
	if say := w.leftOutContainers(); len(w.initContainers()) != 0 || say != want {
		t.Errorf("%q, want %q", say, want)
	}
	w.template.Spec.InitContainers = nil
	if say := w.leftOutContainers(); say != "" {
		t.Errorf("%q without other containers", say)
	}
}

// TestVolumesStayInTheirFolder has a volume and a mount whose paths lead out of the lab's folder.
func TestVolumesStayInTheirFolder(t *testing.T) {
	lab := t.TempDir()
	item := corev1.DownwardAPIVolumeFile{Path: "file", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	for name, test := range map[string]struct{ volume, subPath, say string }{
		"a volume's name":  {"../outside", "", "the volume ../outside: its name is not valid"},
		"a path in a file": {"data", "../../outside/file", ""},
	} {
		for _, shared := range []bool{false, true} {
			k := kubelet{workload: &workload{}, dir: filepath.Join(lab, "volumes"), self: &corev1.Pod{}}
			volume := corev1.Volume{Name: test.volume}
			volume.DownwardAPI = &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{item}}
			k.container.VolumeMounts = []corev1.VolumeMount{{Name: test.volume, SubPath: test.subPath, MountPath: "/data"}}
			if shared {
				volume.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
				k.template.Spec.InitContainers = []corev1.Container{k.container}
			}
			k.template.Spec.Volumes = []corev1.Volume{volume}
			mounts, err := k.mounts()
			if test.say == "" && err != nil || test.say != "" && (err == nil || !strings.Contains(err.Error(), test.say)) {
				t.Errorf("%s: %v, want %q", name, err, test.say)
			}
			for _, m := range mounts {
				if !strings.HasPrefix(m.Source, filepath.Join(k.dir, "data")) {
					t.Errorf("%s: the pod shows %s", name, m.Source)
				}
			}
		}
	}
	if _, err := os.Stat(filepath.Join(lab, "outside")); err == nil {
		t.Error("a folder was made outside of the volumes")
	}
}

// TestALinkInASharedVolume has a link that an init container made in a volume, to a folder outside of it and in it.
func TestALinkInASharedVolume(t *testing.T) {
	lab, outside := t.TempDir(), t.TempDir()
	for to, allowed := range map[string]bool{outside: false, "../../..": false, "real": true} {
		k := kubelet{workload: &workload{}, dir: filepath.Join(lab, "volumes")}
		k.template.Spec.Volumes = []corev1.Volume{{Name: "data",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		k.container.VolumeMounts = []corev1.VolumeMount{{Name: "data", SubPath: "sub", MountPath: "/data"}}
		k.template.Spec.InitContainers = []corev1.Container{k.container}
		before, err := k.mounts() // it makes the folder sub
		if err := errors.Join(err, stay(k.dir, before)); err != nil {
			t.Fatal(err)
		}
		volume := filepath.Join(k.dir, "data")
		if err := errors.Join(os.Remove(filepath.Join(volume, "sub")), os.MkdirAll(filepath.Join(volume, "real"), 0o700),
			os.Symlink(to, filepath.Join(volume, "sub"))); err != nil {
			t.Fatal(err)
		}
		if err := stay(k.dir, before); (err == nil) != allowed || err != nil && !strings.Contains(err.Error(), "the mount /data: ") {
			t.Errorf("a link to %s: %v", to, err)
		}
		k.container.VolumeMounts[0].SubPath = "sub/new"
		if _, err := k.mounts(); (err == nil) != allowed || err != nil && !strings.Contains(err.Error(), "the mount /data: ") {
			t.Errorf("a new folder below a link to %s: %v", to, err)
		}
		if err := os.RemoveAll(k.dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{lab, outside} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("it made %v outside of the volume, %v", entries, err)
		}
	}
}

// TestNamedFiles has settings with paths: a pod shows the files, and no folder.
func TestNamedFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mounts := namedFiles([]string{"--config=" + file, "--dir=" + dir, "--tmp=/tmp", "HOME", "config.yaml"})
	if len(mounts) != 1 || mounts[0] != (pod.Mount{Source: file, Target: file}) {
		t.Errorf("mounts %+v", mounts)
	}
}

// TestAManifestNeedsNothingElse has leader election, a webhook with the Secret of its Certificate, a ConfigMap, working folders and
// a read-only root. Outside a pod, it has no pod that it could find in the API server.
func TestAManifestNeedsNothingElse(t *testing.T) {
	t.Parallel()
	inPod := []string{"one replica sent all", "does not serve: Certificate.", "the lab does not run proxy: "}
	only := []string{"restart", "replicas"}
	if os.Getenv("LONG") != "" {
		only = append(only, "creation", "crash", "permissions")
	}
	program := build(t)
	for name, test := range map[string]struct {
		file      string
		env, only []string
		outside   bool
		say       []string
	}{
		"kustomize":     {manifest, nil, only, false, inPod},
		"helm":          {rendered(t, "testoperator"), nil, only[:2], false, inPod},
		"outside a pod": {manifest, []string{"POD_NAME="}, only[:1], true, []string{"no write for the sample in"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := pod.Check(); err != nil && !test.outside {
				t.Skip("this system allows no pods: ", err)
			}
			report, err := Run(t.Context(), Subject{Program: program, Manifest: test.file, CRD: "testoperator/config/crd.yaml",
				Sample: "testoperator/config/sample.yaml", Env: test.env, Outside: test.outside, Fast: true},
				Options{Only: test.only, Progress: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			page := report.Markdown()
			for _, say := range append(test.say, "Its webhooks were served: ValidatingWebhookConfiguration greetings") {
				if !strings.Contains(page, say) {
					t.Errorf("the page does not say %q:\n%s", say, page)
				}
			}
			for _, f := range report.Findings {
				if f.Title == "each granted permission is used" {
					continue // only when a child has lost its owner reference, the operator reads its Greeting past the cache
				}
				if f.Verdict == Failed || f.Verdict == Skipped && !strings.HasPrefix(f.Title, "not tried: ") {
					t.Errorf("%s: %s: %s", f.Verdict, f.Title, f.What)
				}
			}
		})
	}
}

// TestAProbeThatNeverSucceeds has a probe of a file that does not exist, and one of a port on which nothing listens.
func TestAProbeThatNeverSucceeds(t *testing.T) {
	if err := pod.Check(); err != nil {
		t.Skip("this system allows no pods: ", err)
	}
	t.Parallel()
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	program := build(t)
	for probe, wrong := range map[string][2]string{
		"startupProbe":   {"exec: {command: [cat, /tmp/done]}", "exec: {command: [cat, /tmp/missing]}"},
		"readinessProbe": {"tcpSocket: {port: webhooks}", "httpGet: {port: 9445, path: /readyz}"}} {
		t.Run(probe, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(file, []byte(strings.Replace(string(text), wrong[0], wrong[1], 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Run(t.Context(), Subject{Program: program, Manifest: file, CRD: "testoperator/config/crd.yaml",
				Sample: "testoperator/config/sample.yaml"}, Options{Only: []string{"restart"}, Progress: t.Logf})
			if want := "the " + probe + " of the container testoperator in MANIFEST= does not succeed in 20 s: "; err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}
