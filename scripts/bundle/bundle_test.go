package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stream is a small operator, as kustomize prints it.
const stream = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: x.v0.0.0, annotations: {description: Does x}}
spec:
  displayName: X
  description: Does x
  minKubeVersion: 1.33.0
  provider: {name: Us}
  keywords: [x]
  maturity: alpha
  maintainers: [{name: Us, email: us@example.com}]
  links: [{name: Us, url: "https://example.com"}]
  icon: [{base64data: eA==, mediatype: image/svg+xml}]
  installModes: [{type: AllNamespaces, supported: true}]
  customresourcedefinitions:
    owned: [{name: xs.example.com, version: v1, kind: X, displayName: X, description: An x}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: xs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: X, plural: xs, singular: x, listKind: XList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              maxSize: {type: integer, description: "maxSize is\n  how many."}
              source: {type: object, properties: {name: {type: string, description: whose}}}
---
{apiVersion: example.com/v1, kind: X, metadata: {name: sample}, spec: {maxSize: 3}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: x-system}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: x, namespace: x-system}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: x, namespace: x-system}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec: {serviceAccountName: x, containers: [{name: manager, image: "controller:latest"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x},
  rules: [{apiGroups: [example.com], resources: [xs], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: people},
  rules: [{apiGroups: [example.com], resources: [xs], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x},
  rules: [{apiGroups: [""], resources: [secrets], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x},
  roleRef: {kind: ClusterRole, name: x}, subjects: [{kind: ServiceAccount, name: x}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x},
  roleRef: {kind: Role, name: x}, subjects: [{kind: ServiceAccount, name: x}]}
---
{apiVersion: v1, kind: Service, metadata: {name: hooks}, spec: {ports: [{port: 443, targetPort: webhooks}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: metrics, namespace: x-system}, spec: {ports: [{port: 8443}]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: x}
webhooks:
- name: validate.example.com
  clientConfig: {service: {name: hooks, namespace: x-system, path: /validate}}
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [xs]}]
---
{apiVersion: scorecard.operatorframework.io/v1alpha3, kind: Configuration, metadata: {name: config}, stages: []}
`

// made returns the files of a bundle that was generated from a stream.
func made(t *testing.T, text string) map[string]string {
	t.Helper()
	t.Chdir(t.TempDir())
	err := run([]string{"generate", "--package", "x", "--version", "1.2.3", "--image", "example.com/x:v1", "--channels",
		"stable,alpha"},
		strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err = filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestGenerateSaysOfEachObjectWhatBecomesOfIt(t *testing.T) {
	files := made(t, stream)
	for _, name := range []string{
		"bundle.Dockerfile", "bundle/metadata/annotations.yaml", "bundle/tests/scorecard/config.yaml",
		"bundle/manifests/x.clusterserviceversion.yaml", "bundle/manifests/example.com_xs.yaml",
		"bundle/manifests/people_rbac.authorization.k8s.io_v1_clusterrole.yaml", "bundle/manifests/metrics_v1_service.yaml",
	} {
		if files[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if len(files) != 7 {
		t.Errorf("there are %d files: what OLM makes itself does not lie beside the CSV", len(files))
	}
	csv := files["bundle/manifests/x.clusterserviceversion.yaml"]
	for what, text := range map[string]string{
		"the version":                  "name: x.v1.2.3",
		"the image":                    "image: example.com/x:v1",
		"the example":                  `"maxSize": 3`,
		"a field of the spec":          "displayName: Max Size",
		"its description, in one line": "description: maxSize is how many.",
		"a field inside another":       "path: source.name",
		"permissions of the ClusterRole": "clusterPermissions:\n      - rules:\n        - apiGroups:\n          " +
			"- example.com\n",
		"permissions of the Role":  "permissions:\n      - rules:\n        - apiGroups:\n          - \"\"\n",
		"the webhook":              "webhookPath: /validate",
		"the webhook's Deployment": "deploymentName: x",
		"the webhook's port":       "targetPort: webhooks",
	} {
		if !strings.Contains(csv, text) {
			t.Errorf("%s is missing: %q in\n%s", what, text, csv)
		}
	}
	if strings.Contains(files["bundle/manifests/metrics_v1_service.yaml"], "namespace") {
		t.Error("OLM says in which namespace a Service lies")
	}
	for _, name := range []string{"bundle.Dockerfile", "bundle/metadata/annotations.yaml"} {
		if !strings.Contains(files[name], "channel.default.v1") || !strings.Contains(files[name], "stable,alpha") {
			t.Errorf("%s does not name the channels:\n%s", name, files[name])
		}
	}
}

func TestABundleIsValidUntilSomethingIsMissing(t *testing.T) {
	for name, test := range map[string]struct{ old, new, want string }{
		"whole": {"", "", ""},
		"no example": {"{apiVersion: example.com/v1, kind: X, metadata: {name: sample}, spec: {maxSize: 3}}", "{}",
			"example annotation"},
		"no least version": {"minKubeVersion: 1.33.0", "", "minKubeVersion"},
		"no install mode":  {"supported: true", "supported: false", "InstallModeTypes"},
		"a file cut off":   {"", "", "read the bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			made(t, strings.Replace(stream, test.old, test.new, 1))
			if name == "a file cut off" {
				if err := os.WriteFile("bundle/manifests/x.clusterserviceversion.yaml", []byte("kind: Cluster"),
					0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			err := run([]string{"validate"}, nil, &out)
			if test.want == "" {
				if err != nil || !strings.Contains(out.String(), "no error, no warning") {
					t.Errorf("%v\n%s", err, &out)
				}
			} else if err == nil || !strings.Contains(out.String()+err.Error(), test.want) {
				t.Errorf("got %v, want %q in\n%s", err, test.want, &out)
			}
		})
	}
}

func TestBadInputIsNamedAndTheOldBundleStays(t *testing.T) {
	good := []string{"generate", "--package", "x", "--version", "1.2.3", "--image", "i"}
	for name, test := range map[string]struct {
		args []string
		in   string
		want string
	}{
		"no verb":                {nil, "", "usage"},
		"a verb that is none":    {[]string{"make"}, "", `"make" is no verb`},
		"an unknown flag":        {append(good, "--colour"), "", "colour"},
		"no package":             {[]string{"generate", "--version", "1.2.3", "--image", "i"}, "", "--package"},
		"a version that is none": {[]string{"generate", "--package", "x", "--version", "v1", "--image", "i"}, "", `"v1"`},
		"no CSV":                 {good, "kind: X", "there is no ClusterServiceVersion"},
		"no YAML":                {good, "{", "read manifests"},
		"a CRD that nobody owns": {good, strings.Replace(stream, "owned: [{name: xs.", "owned: [{name: ys.", 1),
			"does not say that it owns xs.example.com"},
		"a binding without its role": {good, strings.Replace(stream, "kind: Role, name: x}", "kind: Role, name: other}", 1),
			"Role other, which is not there"},
		"two Deployments": {good, stream + "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: " +
			"other}, spec: {template: {spec: {containers: [{name: other}]}}}}", "2 Deployments"},
	} {
		t.Run(name, func(t *testing.T) {
			made(t, stream)
			before, err := os.ReadFile("bundle/manifests/x.clusterserviceversion.yaml")
			if err != nil {
				t.Fatal(err)
			}
			err = run(test.args, strings.NewReader(test.in), &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if after, err := os.ReadFile("bundle/manifests/x.clusterserviceversion.yaml"); err != nil ||
				!bytes.Equal(before, after) {
				t.Errorf("the old bundle is gone: %v", err)
			}
		})
	}
}
