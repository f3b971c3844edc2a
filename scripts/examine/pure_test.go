package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/frame"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/state"
	"example.com/operator-workshop/scripts/examine/wire"
)

// object reads YAML as the API's clients do: integers are int64.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func TestSettingsAreRelativeToTheirFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "examine.yaml")
	settings := "crd: crds\nargs: [--config=$FOLDER/config.yaml, --kubeconfig=$KUBECONFIG]\nenv: [FILE=$FOLDER/a]\n"
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSubject(file)
	want := Subject{CRD: filepath.Join(dir, "crds"), Env: []string{"FILE=" + filepath.Join(dir, "a")},
		Args: []string{"--config=" + filepath.Join(dir, "config.yaml"), "--kubeconfig=$KUBECONFIG"}}
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestTheCRDOfAnotherProduct has a sample that needs an object of another product's kind: without its CRD, and with it.
func TestTheCRDOfAnotherProduct(t *testing.T) {
	const missing = "the CRD of cert-manager.io/v1 Issuer is missing"
	for text, want := range map[string]string{
		`no matches for kind "Issuer" in version "cert-manager.io/v1"`:                 missing,
		`{"error":"no matches for kind \"Issuer\" in version \"cert-manager.io/v1\""}`: missing,
		"no matches": "",
	} {
		err := notCreated(&unstructured.Unstructured{}, errors.New(text))
		if got := missingCRD(text); !strings.HasPrefix(got, want) || (got == "") != (want == "") ||
			!strings.Contains(err.Error(), cmp.Or(want, text)) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	s := Subject{Program: "/bin/true", CRD: "testoperator/config/crd.yaml", Sample: "testoperator/config/sample.yaml",
		Needs: []string{"testoperator/config/crd_cluster.yaml", "testoperator/config/defaults.yaml"}}
	read, err := s.resolve()
	if err != nil {
		t.Fatal(err)
	}
	isCRD := func(u *unstructured.Unstructured) bool { return u.GetKind() == "CustomResourceDefinition" }
	if len(read.crds) != 2 || len(read.kinds) != 1 || len(read.needs) == 0 || slices.ContainsFunc(read.needs, isCRD) {
		t.Errorf("%d CRDs of %d kinds, and the sample needs %v", len(read.crds), len(read.kinds), read.needs)
	}
}

func TestAListIsInBrackets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "examine.yaml")
	if err := os.WriteFile(file, []byte("role: config/rbac/role.yaml\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReadSubject(file)
	want := "role must be a list, in brackets also when it has one item: role: [VALUE]"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

func TestVariations(t *testing.T) {
	for name, test := range map[string]struct{ schema, spec, want string }{
		"an enum: its other values": {"properties: {mode: {type: string, enum: [a, b, c]}}\nrequired: [mode]",
			"mode: a", `spec.mode becomes "b", spec.mode becomes "c"`},
		"a number: inside the bounds": {"properties: {size: {type: integer, minimum: 0, maximum: " +
			"3}}\nrequired: [size]", "size: 2", "spec.size becomes 3, spec.size becomes 0"},
		"a number at its maximum: the other": {
			"properties: {size: {type: integer, minimum: 1, maximum: 3}}\nrequired: [size]", "size: 3", "spec.size becomes 1"},
		"a boolean that is not set": {"properties: {open: {type: boolean}}", "{}", "spec.open becomes true"},
		"an optional field is removed too": {
			"properties: {image: {type: string}}", "image: nginx", `spec.image becomes "nginxx", spec.image is removed`},
		"a string with a pattern stays": {"properties: {id: {type: string, pattern: '^a$'}}\nrequired: [id]", "id: a", ""},
		"a free string that is not set": {"properties: {image: {type: string}}", "{}", ""},
		"fields of an object": {
			"properties: {tls: {type: object, required: [on], properties: {open: {type: boolean}}}}\nrequired: [tls]",
			"tls: {open: true}", "spec.tls.open becomes false, spec.tls.open is removed"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			schema := map[string]any{"properties": map[string]any{"spec": object(t, test.schema)}}
			read := &target{servedKind: servedKind{schema: schema},
				sample: &unstructured.Unstructured{Object: map[string]any{"spec": object(t, test.spec)}}}
			all, _ := read.variations(usual)
			for _, v := range all {
				got = append(got, v.String())
			}
			if diff := gocmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestASampleOfAScaffold has a spec with a comment and nothing else, which is null for YAML.
func TestASampleOfAScaffold(t *testing.T) {
	dir := t.TempDir()
	sample, crd := filepath.Join(dir, "sample.yaml"), filepath.Join(dir, "crd.yaml")
	for file, text := range map[string]string{
		sample: "apiVersion: example.com/v1\nkind: Guestbook\nmetadata: {name: guestbook}\nspec:\n  # TODO(user): Add fields here\n",
		crd: "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: guestbooks.example.com}\n" +
			"spec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Guestbook, plural: guestbooks}\n" +
			"  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: " +
			"{spec: {type: object, properties: {foo: {type: string}, open: {type: boolean}}}}}}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read, err := Subject{Program: "/bin/false", CRD: crd, Sample: sample}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	all, names := read.variations(usual)
	if len(all) != 1 || all[0].String() != "spec.open becomes true" || looked(names) != "spec.foo, spec.open" {
		t.Fatalf("%v of %s", all, looked(names))
	}
	if u, err := all[0].in(read.sample); err != nil || text(u.Object["spec"]) != `{"open":true}` {
		t.Errorf("%v, %v", u, err)
	}
}

// TestVariationsOutsideSpec has a custom resource with fields at its root, and objects of built-in kinds.
func TestVariationsOutsideSpec(t *testing.T) {
	const root = "properties: {apiVersion: {type: string}, status: {type: object}, metadata: {type: object}, " +
		"immutable: {type: boolean}, data: {type: object, additionalProperties: {type: string}}, " +
		"secret: {type: object, additionalProperties: {type: string, format: byte}}}"
	for name, test := range map[string]struct {
		builtIn             bool
		sample, want, names string
	}{
		"a custom resource": {false, "metadata: {annotations: {a: b}}\ndata: {key: a}",
			`data.examine becomes "x", data.key becomes "ax", data.key is removed, data is removed, ` +
				"immutable becomes true", "data.key data immutable secret"},
		"a built-in kind": {true, "metadata: {name: x, annotations: {a/b: c}}\ndata: {key: a}\nstatus: {a: b}",
			`data.examine becomes "x", data.key becomes "ax", data.key is removed, data is removed, ` +
				`metadata.annotations.a/b becomes "cx", metadata.annotations.a/b is removed`,
			"data.key data metadata.annotations.a/b"},
		"data in base64": {true, "secret: {key: YQ==}",
			"secret.examine changes, secret.key changes, secret.key is removed, secret is removed", "secret.key secret"},
		"nothing": {true, "{}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			read := &target{servedKind: servedKind{schema: object(t, root), builtIn: test.builtIn},
				sample: &unstructured.Unstructured{Object: object(t, test.sample)}}
			all, names := read.variations(usual)
			var got []string
			for _, v := range all {
				got = append(got, v.String())
			}
			if diff := gocmp.Diff([]string{test.want, test.names},
				[]string{strings.Join(got, ", "), strings.Join(names, " ")}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAnOperatorThatObserves has requests for the sample's kind: a watch, or lists without a watch.
func TestAnOperatorThatObserves(t *testing.T) {
	for name, test := range map[string]struct {
		verbs []string
		code  int
		want  bool
	}{
		"a watch":           {[]string{wire.List, wire.Watch}, 200, true},
		"one list":          {[]string{wire.List}, 200, false},
		"it polls":          {[]string{wire.List, wire.List}, 200, true},
		"a forbidden list":  {[]string{wire.List, wire.List}, 403, false},
		"it reads one name": {[]string{wire.Get, wire.Get}, 200, false},
	} {
		o := &operator{target: &target{}, user: &fixture.User{Name: "op"}, fixture: &fixture.Fixture{Ledger: ledger.New(nil)}}
		o.target.gvr.Resource = "configmaps"
		for _, verb := range test.verbs {
			id := o.fixture.Ledger.Begin("op", wire.Request{Verb: verb, Resource: "configmaps"}, nil)
			o.fixture.Ledger.Change(id, func(e *ledger.Entry) { e.Served = []int{test.code} })
		}
		if err := o.observes(0); (err == nil) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTextsOfASecret(t *testing.T) {
	u := &unstructured.Unstructured{Object: object(t, "stringData: {a: b}\ndata: {c: ZA==}")}
	if err := storeTexts(u); err != nil || text(u.Object) != `{"data":{"a":"Yg==","c":"ZA=="}}` {
		t.Errorf("%s, %v", text(u.Object), err)
	}
}

func TestAVariationOfASample(t *testing.T) {
	sample := &unstructured.Unstructured{Object: object(t, "metadata: {annotations: {a/b: c}}\ndata: {key: a}")}
	for _, test := range []struct {
		v         variation
		want, own string
	}{
		{variation{path: []string{"metadata", "annotations", "a/b"}, value: "d"},
			`{"data":{"key":"a"},"metadata":{"annotations":{"a/b":"d"}}}`, "configmaps/x.metadata.annotations.a/b"},
		{variation{path: []string{"data", "key"}}, `{"data":{},"metadata":{"annotations":{"a/b":"c"}}}`,
			"configmaps/x.data.other"},
	} {
		now, err := test.v.in(sample)
		if err != nil || text(now.Object) != test.want {
			t.Errorf("%s: %s, %v, want %s", test.v, text(now.Object), err, test.want)
		}
		if test.v.at(now) == test.v.at(sample) {
			t.Errorf("%s changes nothing: %s", test.v, test.v.at(now))
		}
		of := &trial{run: &run{target: &target{sample: &unstructured.Unstructured{}}}}
		of.target.sample.SetName("x")
		of.target.gvr.Resource = "configmaps"
		if !of.isPartOf(test.v, test.own) || of.isPartOf(test.v, "configmaps/x.metadata.annotations.a/bc") ||
			of.isPartOf(test.v, "configmaps/xy.data.other") {
			t.Errorf("%s: a wrong part of the sample", test.v)
		}
	}
}

// TestSchemaOf has a schema with references, of which one leads to itself.
func TestSchemaOf(t *testing.T) {
	schemas := object(t, `
a.Kind: {x-kubernetes-group-version-kind: [{group: "", version: v1, kind: Kind}],
  properties: {part: {allOf: [{$ref: "#/components/schemas/a.Part"}], default: {}}}}
a.Part: {properties: {size: {type: integer}, inner: {$ref: "#/components/schemas/a.Part"}}}
`)
	got := schemaOf(schema.GroupVersionKind{Version: "v1", Kind: "Kind"}, schemas)
	if kind, _, _ := unstructured.NestedString(got, "properties", "part", "properties", "size", "type"); kind != "integer" {
		t.Errorf("the schema has no part: %v", got)
	}
	if none := schemaOf(schema.GroupVersionKind{Version: "v2", Kind: "Kind"}, schemas); none != nil {
		t.Errorf("a schema of another version: %v", none)
	}
}

// TestASampleOfABuiltInKind chooses the sample among the objects of a file.
func TestASampleOfABuiltInKind(t *testing.T) {
	const namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
	object := func(name, annotations string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + annotations + "}}\n"
	}
	for name, test := range map[string]struct{ file, crd, want, fails string }{
		"the only object":                    {object("a", ""), "", "a", ""},
		"the only object with an annotation": {namespace + object("a", "") + object("b", "x: z"), "", "b", ""},
		"two objects with annotations":       {object("a", "x: z") + object("b", "x: z"), "", "", "holds no sample"},
		"an operator that also has a CRD":    {object("a", "x: z"), "testoperator/config/crd.yaml", "a", ""},
		"a wrong file beside a CRD":          {object("a", ""), "testoperator/config/crd.yaml", "", "the CRDs are for"},
		"a kind that no API server has":      {"apiVersion: a/v1\nkind: B\n", "", "", "it has a/v1 B, and no CRD was given"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sample.yaml")
			if err := os.WriteFile(file, []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			read, err := Subject{Program: "/bin/true", CRD: test.crd, Sample: file}.resolve()
			switch {
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("%v, want %q", err, test.fails)
			case test.fails == "" && err != nil:
				t.Error(err)
			case err == nil && (read.sample.GetName() != test.want || !read.builtIn):
				t.Errorf("the sample is %s", read.sample.GetName())
			case err == nil && slices.Contains(read.needs, read.sample):
				t.Error("the sample needs itself")
			}
		})
	}
}

// TestACRDWithoutAStatusSubresource reads the operator's CRD, with its status subresource and without it.
func TestACRDWithoutAStatusSubresource(t *testing.T) {
	crd, err := os.ReadFile("testoperator/config/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	without := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(without, []byte(strings.Replace(string(crd), "{status: {}}", "{}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"testoperator/config/crd.yaml": false, without: true} {
		read, err := Subject{Program: "/bin/true", CRD: file, Sample: "testoperator/config/sample.yaml"}.resolve()
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(newReport(read).Notes, "\n"); strings.Contains(notes, "has no status subresource: ") != want {
			t.Errorf("%s: %q", file, notes)
		}
	}
}

// TestCRDsOfSeveralKinds has a CRD with two versions, which is one kind, and a folder with CRDs of two kinds. The
// operator of the first one needs a CRD of another product.
func TestCRDsOfSeveralKinds(t *testing.T) {
	dir := t.TempDir()
	crd, err := os.ReadFile("testoperator/config/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer("greetings", "farewells", "Greeting", "Farewell").Replace(string(crd))
	for name, text := range map[string]string{"crd.yaml": string(crd), "other.yaml": other} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for crds, want := range map[string]bool{"testoperator/config/crd_versions.yaml": false, dir: true} {
		read, err := Subject{Program: "/bin/true", CRD: crds, Sample: "testoperator/config/sample.yaml",
			Needs: []string{filepath.Join(dir, "other.yaml")}}.resolve()
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(newReport(read).Notes, "\n"); strings.Contains(notes, "The CRDs are for several kinds") != want {
			t.Errorf("%s: %q", crds, notes)
		}
	}
}

// TestTitlesOfExtremeValues has the values of a field with a long path.
func TestTitlesOfExtremeValues(t *testing.T) {
	path := strings.Split("spec.template.spec.aFieldWithALongName.anotherFieldWithALongName", ".")
	titles := map[string]bool{}
	values := []any{0, 2147483647, "", strings.Repeat("a", 1000), "日本-ünï", []any{}}
	for _, value := range values {
		title := variation{path: path, value: value}.title()
		titles[title] = true
		if !strings.HasPrefix(title, strings.Join(path, ".")+" becomes ") || len(title) > 110 {
			t.Errorf("%q", title)
		}
	}
	if len(titles) != len(values) {
		t.Errorf("%d titles for %d values: %v", len(titles), len(values), titles)
	}
}

// TestConditionsThatAreFalse removes a status, and looks at the status that comes back.
func TestConditionsThatAreFalse(t *testing.T) {
	want := state.State{"a.spec.x": "1", "a.status.conditions[Ready].status": "True", "a.status.conditions[Ready].reason": "Done",
		"a.status.conditions[Busy].status": "False", "a.status.conditions[Busy].reason": "Idle"}
	for name, test := range map[string]struct {
		gone []string
		back bool
	}{
		"a condition that is False":           {[]string{"Busy"}, true},
		"a condition that is True":            {[]string{"Ready"}, false},
		"all conditions, so the whole status": {[]string{"Busy", "Ready"}, false},
	} {
		got := maps.Clone(want)
		for _, condition := range test.gone {
			maps.DeleteFunc(got, func(path, _ string) bool { return strings.Contains(path, "["+condition+"]") })
		}
		if back := maps.Equal(withFalse(got, want, "a.status."), want); back != test.back {
			t.Errorf("%s: %v, want %v", name, back, test.back)
		}
	}
}

// TestAConversion has CRDs with a conversion webhook: the API server calls it when there are two versions.
func TestAConversion(t *testing.T) {
	version := func(name string) any { return map[string]any{"name": name} }
	for name, versions := range map[string][]any{"one": {version("v1")}, "two": {version("v1"), version("v2")}} {
		crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": versions,
			"conversion": map[string]any{"strategy": "Webhook"}}}}
		read := &target{kinds: map[schema.GroupVersionKind]servedKind{}, conversions: map[string]map[string]any{}}
		read.addCRD(crd)
		_, kept, _ := unstructured.NestedMap(crd.Object, "spec", "conversion")
		if len(read.conversions) != len(versions)-1 || len(read.kinds) != len(versions) || kept {
			t.Errorf("%s: conversions %v, kinds %v, CRD %v", name, read.conversions, read.kinds, crd)
		}
	}
}

// TestTheTimeOfATrialIsNoFailure has trials that end in their time and after it.
func TestTheTimeOfATrialIsNoFailure(t *testing.T) {
	over, cancel := context.WithTimeoutCause(t.Context(), 0, errOver)
	defer cancel()
	wrong := differenceError{"a is missing"}
	for name, test := range map[string]struct {
		ctx  context.Context
		end  error // what the trial reports
		want Verdict
	}{
		"in time":                               {t.Context(), wrong, Failed},
		"the time was over during a comparison": {over, wrong, Skipped},
		"the time was over, and the trial does not report it": {over, nil, Skipped},
	} {
		if got := failedBy(inTime(test.ctx, test.end)); got.Verdict != test.want ||
			test.want == Skipped && got.What != "the time was over" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if err := inTime(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestATimeoutOfTheLabIsNoFailure has an API server that is too slow for a request of the lab, and one whose etcd is. They
// end a trial, or the wait in it.
func TestATimeoutOfTheLabIsNoFailure(t *testing.T) {
	etcd := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request timed out"}}
	for want, errs := range map[Verdict][]error{
		Skipped: {fmt.Errorf("%w: the policy denies no probe", fixture.ErrNotInForce), apierrors.NewTimeoutError("request did not complete within requested timeout", 0), etcd,
			&url.Error{Op: "Post", URL: "https://127.0.0.1", Err: os.ErrDeadlineExceeded}}, // as a TLS handshake
		Failed: {apierrors.NewBadRequest("a webhook refuses it"), apierrors.NewInternalError(errors.New("no etcd")),
			&url.Error{Op: "Get", URL: "https://127.0.0.1", Err: context.DeadlineExceeded}}, // of a wait of the lab
	} {
		for _, err := range errs {
			err = fmt.Errorf("get the child: %w", err)
			for _, got := range []Finding{failedBy(err), failed("it is not back 6 s later: %v", err)} {
				if got.Verdict != want || (got.Left == 1) != (want == Skipped) {
					t.Errorf("%v: %+v", err, got)
				}
			}
		}
	}
}

// TestAPortThatNoServiceHas has the words of kube-apiserver, whose fault does not come on demand.
func TestAPortThatNoServiceHas(t *testing.T) {
	refused := []ledger.Entry{{Message: `Service "hello" is invalid: spec.ports[0].nodePort: Invalid value: 30401: provided ` +
		"port is already allocated"}, {Message: "the object has been modified"}}
	has := func(port int32) []corev1.Service {
		return []corev1.Service{{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: port}}}}}
	}
	for want, got := range map[string]string{"30401": strandedPort(refused, has(30402)), "": strandedPort(refused, has(30401)) +
		strandedPort(refused[1:], nil)} {
		if got != want {
			t.Errorf("the port that no Service has is %q, want %q", got, want)
		}
	}
}

func TestTheNameOfAReplicaSetIsNoReport(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "greetings"}
	tr := &trial{run: &run{target: &target{servedKind: servedKind{gvr: gvr}, sample: &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "hello"}}}}}}
	status := func(message string) state.State {
		return tr.statusIn(state.State{tr.own().String() + ".status.message": message, tr.own().String() + ".spec.text": message})
	}
	before := goal{state: status(`ReplicaSet "hello-5d8f7c9b6d" is progressing`)}
	if err := before.isReached(status(`ReplicaSet "hello-7b9c4d6f8c" is progressing`)); err != nil {
		t.Error(err)
	}
	if err := before.isReached(status("a policy refuses it")); err == nil {
		t.Error("another message is no report")
	}
}

// TestNothingLagsBeforeTheDisturbance has a sample that does not get ready, on an API server that does not lag yet.
func TestNothingLagsBeforeTheDisturbance(t *testing.T) {
	notReady := past{"notReady", func(*trial) (string, error) { return "", errors.New("the sample is not ready") }, true}
	if got, err := (&trial{}).lags(notReady); err != nil || got.Verdict != Skipped || got.Left != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMaskedPaths(t *testing.T) {
	for path, want := range map[string]bool{
		".metadata.generation":                                    true,
		".metadata.annotations.generation":                        false,
		".spec.template.metadata.annotations.uid":                 false,
		".data.resourceVersion":                                   false,
		".status.conditions[Ready].lastTransitionTime":            true,
		".metadata.annotations.deployment.kubernetes.io/revision": true,
		".spec.selector.generation":                               false,
		".spec.ports[http].nodePort":                              true,
		".status.children[0].observedGeneration":                  true,
	} {
		if got := isMasked(path, masked); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

func TestVariationPatch(t *testing.T) {
	data, err := variation{path: []string{"spec", "tls", "on"}}.patch(nil)
	if want := `{"spec":{"tls":{"on":null}}}`; string(data) != want || err != nil {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
}

func TestChildrenOf(t *testing.T) {
	const group = "test.example.com"
	entry := func(group, resource, namespace, name string) ledger.Entry {
		return ledger.Entry{Request: wire.Request{
			Group: group, Version: "v1", Resource: resource, Namespace: namespace, Name: name}}
	}
	sample := schema.GroupVersionResource{Group: group, Version: "v2", Resource: "greetings"}
	for cluster, test := range map[bool]struct {
		changes []ledger.Entry
		want    string
	}{
		false: {[]ledger.Entry{entry("apps", "deployments", "a", "x"), entry("apps", "deployments", "a", "x"),
			entry(group, "greetings", "a", "x"), entry(group, "greetings", "a", "y"), entry(group, "greetings", "team", "x"),
			entry("rbac.authorization.k8s.io", "clusterroles", "", "x")},
			"deployments.apps/x greetings.test.example.com/y greetings.test.example.com/team/x " +
				"clusterroles.rbac.authorization.k8s.io/x"},
		true: {[]ledger.Entry{entry("apps", "deployments", "a", "x"), entry("apps", "deployments", "b", "x"),
			entry("", "namespaces", "a", "a"), entry("", "namespaces", "", "a"), entry(group, "greetings", "", "x")},
			"deployments.apps/a/x deployments.apps/b/x namespaces/a"},
	} {
		r := &run{target: &target{sample: &unstructured.Unstructured{}}}
		r.target.gvr, r.target.cluster = sample, cluster
		r.target.sample.SetName("x")
		here := &trial{run: r, Trial: &frame.Trial{Namespace: "a"}}
		if got := joined(here.childrenOf(test.changes)); strings.ReplaceAll(got, ",", "") != test.want {
			t.Errorf("cluster %v: %q, want %q", cluster, got, test.want)
		}
	}
}

// TestCopiesWithoutAChild has samples with two separate children, and with one child that all samples share.
func TestCopiesWithoutAChild(t *testing.T) {
	r := &run{target: &target{sample: &unstructured.Unstructured{}}}
	r.target.sample.SetName("x")
	for _, name := range []string{"x", "x-peers", "shared"} {
		r.children = append(r.children, child{GVR: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Name: name})
	}
	var writes []ledger.Entry
	for n := range copies {
		for _, name := range []string{fmt.Sprintf("x-%d", n), fmt.Sprintf("x-%d-peers", n)} {
			writes = append(writes, ledger.Entry{Served: []int{http.StatusCreated}, Request: wire.Request{
				Version: "v1", Resource: "services", Verb: wire.Create, Namespace: "a", Name: name}})
		}
	}
	if err := r.missingOf(writes); err != nil {
		t.Error(err)
	}
	if err := r.missingOf(writes[1:]); err == nil || err.Error() != "199 of 200 services exist" {
		t.Errorf("%v, want 199 of 200", err)
	}
}

// TestAConflictThatOthersCaused has a write that was refused after the operator's own last write, or after a change by others.
func TestAConflictThatOthersCaused(t *testing.T) {
	write := func(n int, version string, effect ledger.Effect) ledger.Entry {
		return ledger.Entry{N: n, ResourceVersion: version, Effect: effect, Request: wire.Request{Verb: wire.Update,
			Group: "apps", Resource: "deployments", Namespace: "a", Name: "x"}}
	}
	event := func(name, version string) loop.Record {
		return loop.Record{Is: loop.Event, Group: "apps", Resource: "deployments", Namespace: "a", Name: name,
			ResourceVersion: version}
	}
	refused := write(3, "", ledger.None)
	writes := []ledger.Entry{write(1, "5", ledger.Moved), refused, write(4, "8", ledger.Moved)}
	for name, test := range map[string]struct {
		records []loop.Record
		want    bool
	}{
		"its own last write":                {[]loop.Record{event("x", "5"), event("x", "8")}, false},
		"a change by others":                {[]loop.Record{event("x", "5"), event("x", "7"), event("x", "8")}, true},
		"an earlier change by others":       {[]loop.Record{event("x", "4")}, false},
		"a later change by others":          {[]loop.Record{event("x", "9")}, false},
		"a change of another object":        {[]loop.Record{event("y", "7")}, false},
		"no event, as of an unwatched kind": {nil, false},
	} {
		if got := causedByOthers(refused, writes, test.records); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCreated(t *testing.T) {
	entry := func(verb string, served ...int) ledger.Entry {
		return ledger.Entry{Request: wire.Request{Verb: verb, Resource: "configmaps"}, Served: served}
	}
	for name, test := range map[string]struct {
		write ledger.Entry
		want  bool
	}{
		"a create":                             {entry("create", 201), true},
		"a create of what exists":              {entry("create", 409), false},
		"a create that the lab refused":        {entry("create"), false},
		"an apply that created":                {entry("apply", 201), true},
		"an apply of what exists":              {entry("apply", 200), false},
		"a create that was sent a second time": {entry("create", 201, 409), true},
	} {
		if got := created([]ledger.Entry{test.write}); (len(got) == 1) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLeaves(t *testing.T) {
	fields := object(
		t, `{"f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:ownerReferences": {".": {}, 'k:{"uid":"1"}': {}}},
  "f:spec": {"f:ports": {'k:{"port":80}': {"f:name": {}, "f:port": {}}}}}`)
	var got []string
	for _, p := range leaves(fields, nil) {
		got = append(got, p.String())
	}
	slices.Sort(got)
	want := []string{".metadata.labels.app", ".metadata.ownerReferences", `.spec.ports[{"port":80}].name`,
		`.spec.ports[{"port":80}].port`}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMetadataIsChangedLast(t *testing.T) {
	at := func(fields ...string) (p path) {
		for _, f := range fields {
			p = append(p, element{field: f})
		}
		return p
	}
	var got []string
	for _, p := range lastMetadata([]path{
		at("metadata", "ownerReferences"), at("metadata", "labels", "a"), at("spec", "replicas")}) {
		got = append(got, p.String())
	}
	if diff := gocmp.Diff([]string{".spec.replicas", ".metadata.labels.a", ".metadata.ownerReferences"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFind(t *testing.T) {
	o := object(t, "spec: {ports: [{port: 1, name: a}, {port: 80, name: b}]}\nmetadata: {labels: {a/b: c}}")
	p := path{{field: "spec"}, {field: "ports"}, {keys: map[string]any{"port": 80.0}}, {field: "name"}}
	if pointer, value, ok := p.find(o); pointer != "/spec/ports/1/name" || value != "b" || !ok {
		t.Error(pointer, value, ok)
	}
	if pointer, _, _ := (path{{field: "metadata"}, {field: "labels"}, {field: "a/b"}}).
		find(o); pointer != "/metadata/labels/a~1b" {
		t.Error(pointer)
	}
	if _, _, ok := (path{{field: "spec"}, {field: "none"}}).find(o); ok {
		t.Error("found what is not there")
	}
}

func TestIsReady(t *testing.T) {
	for name, test := range map[string]struct{ ready, object, want string }{
		"the condition Ready": {"", "status: {conditions: [{type: Ready, status: 'True'}]}", ""},
		"a condition that is not true": {"", "status: {conditions: [{type: Available, status: 'False', reason: Waits}]}",
			"the condition Available is False: Waits"},
		"without conditions": {"", "status: {}", ""},
		"an old generation": {
			"", `{"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}`, "status.observedGeneration is 1"},
		"a condition by name": {
			"Synced", "status: {conditions: [{type: Ready, status: 'True'}]}", "it has no condition Synced"},
		"a path": {"{.status.phase}=Running", "status: {phase: Running}", ""},
		"a path that is elsewhere": {
			"{.status.phase}=Running", "status: {phase: Pending}", `{.status.phase} is "Pending", not "Running"`},
	} {
		err := isReady(test.ready, &unstructured.Unstructured{Object: object(t, test.object)})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestPermissions(t *testing.T) {
	entry := func(verb, resource string, served ...int) ledger.Entry {
		return ledger.Entry{Request: wire.Request{Verb: verb, Resource: resource}, Served: served,
			AuditIDs: []string{verb + " " + resource}}
	}
	used, denied := uses([]ledger.Entry{entry("apply", "services", 201), entry("watch", "services", 200),
		entry("delete", "pods", 403), entry("get", "secrets")},
		map[string]bool{"delete pods": true})
	if got, want := strings.Join(texts(used), ", "), "create services, patch services, watch services"; got != want {
		t.Errorf("used: %s, want %s", got, want)
	}
	if got := strings.Join(texts(denied), ", "); got != "delete pods" {
		t.Errorf("denied: %s", got)
	}
	if got, want := strings.Join(texts(union(used, append(denied, used...))), ", "),
		"create services, delete pods, patch services, watch services"; got != want {
		t.Errorf("together: %s, want %s", got, want)
	}
	if got := missing(denied, []permission{{"*", "", "pods"}}); len(got) != 0 {
		t.Errorf("missing though it is granted: %v", got)
	}
	reached, not := byReach([]permission{{"create", "", "services"}, {"create", "", "pods"}, {"watch", "", "pods"},
		{"get", "", "nodes"}}, []permission{{"list", "", "pods"}, {"patch", "", "services"}})
	if got, want := strings.Join(texts(reached), ", "), "create services, watch pods"; got != want {
		t.Errorf("reached: %s, want %s", got, want)
	}
	if got, want := strings.Join(texts(not), ", "), "create pods, get nodes"; got != want {
		t.Errorf("not reached: %s, want %s", got, want)
	}
	_, everything, err := new(target).granted()
	if got := missing(denied, everything); len(got) != 0 || err != nil {
		t.Errorf("missing though there is no role, and everything is granted: %v, %v", got, err)
	}
	if got := missing([]permission{{"delete", "", "pods"}},
		[]permission{{"delete", "apps", "pods"}, {"get", "", "pods"}}); len(got) != 1 {
		t.Errorf("granted is another one: missing %v", got)
	}
	granted := []permission{{"list", "", "services"}, {"patch", "", "services"}, {"delete", "", "services"},
		{"list", "", "*"}, {"patch", "", "*"}, {"delete", "", "*"}, {"delete", "", "secrets"}}
	if got, want := strings.Join(texts(unused(granted, used)), ", "),
		"delete *, delete secrets, list *, patch *"; got != want {
		t.Errorf("unused: %s, want %s", got, want)
	}
}

// TestAReconcileThatDoesNotEnd looks at an operator several times in a second.
func TestAReconcileThatDoesNotEnd(t *testing.T) {
	const began = -5 * time.Second // before the first look
	for name, test := range map[string]struct {
		metrics   func(at time.Duration) string
		connected string
		hangs     bool // at the last look, after 4 seconds
	}{
		"idle": {func(time.Duration) string { return "" }, "", false},
		"one reconcile all the time": {func(at time.Duration) string {
			return fmt.Sprintf("controller_runtime_active_workers{controller=\"a\"} 1\n"+
				"workqueue_longest_running_processor_seconds{name=\"a\"} %g\n", at.Seconds())
		}, "", true},
		"only the work queue has metrics": {func(at time.Duration) string {
			return fmt.Sprintf("workqueue_longest_running_processor_seconds{name=\"a\"} %g\n", at.Seconds())
		}, "", true},
		"short reconciles all the time": {func(time.Duration) string {
			return "controller_runtime_active_workers{controller=\"a\"} 1\n" +
				"workqueue_longest_running_processor_seconds{name=\"a\"} 0.01\n"
		}, "", false},
		"a reconcile of before, in another queue": {func(at time.Duration) string {
			return fmt.Sprintf("controller_runtime_active_workers{controller=\"b\"} 1\n"+
				"workqueue_longest_running_processor_seconds{name=\"b\"} %g\n", (at + time.Minute).Seconds())
		}, "", false},
		"a connection to a pod between reconciles": {func(time.Duration) string {
			return "workqueue_longest_running_processor_seconds{name=\"a\"} 0\n"
		}, "the pod a (10.244.0.2:6379)", false},
		"a connection to a pod, without metrics": {func(time.Duration) string { return "" }, "the pod a (10.244.0.2:6379)", true},
	} {
		t.Run(name, func(t *testing.T) {
			first := time.Now()
			r := reconciling{began: first.Add(began)}
			var err error
			for at := time.Duration(0); at <= 4*time.Second; at += 200 * time.Millisecond {
				err = r.look(first.Add(at), readMetrics(strings.NewReader(test.metrics(at))), test.connected)
			}
			if (err != nil) != test.hangs || test.hangs && !strings.Contains(err.Error(), "under way for 4s") {
				t.Error(err)
			}
		})
	}
}

func TestOnlyAnnotations(t *testing.T) {
	for line, want := range map[string]bool{
		`configmaps/a.metadata.annotations.hash is "2"; undisturbed it is "1"`:                     true,
		`deployments.apps/a.spec.template.metadata.annotations.hash is "2"; undisturbed it is "1"`: false,
		`configmaps/a.metadata.labels.hash is "2"; undisturbed it is "1"`:                          false,
	} {
		annotation := `configmaps/b.metadata.annotations.hash is "2"; undisturbed it is "1"`
		if got := (differenceError{annotation, line}).onlyAnnotations(); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// TestValuesThatLiveAsLongAsAProcess restarts an operator once or twice: the first state is that of before.
func TestValuesThatLiveAsLongAsAProcess(t *testing.T) {
	varying := map[string]bool{".status.id": true, ".status.pods[0]": true, ".status.pods[1]": true}
	of := func(id string, pods ...string) state.State {
		s := state.State{".status.id": id, ".status.ready": "true"}
		for n, pod := range pods {
			s[fmt.Sprintf(".status.pods[%d]", n)] = pod
		}
		return s
	}
	other := of("1")
	other[".status.ready"] = "false"
	for name, test := range map[string]struct {
		states []state.State
		want   bool
	}{
		"a new value":                        {[]state.State{of("1"), of("2")}, true},
		"a new value each time":              {[]state.State{of("1"), of("2"), of("3")}, true},
		"nothing differs":                    {[]state.State{of("1"), of("1")}, false},
		"a value comes back":                 {[]state.State{of("1"), of("2"), of("1")}, false},
		"the order of a list alone":          {[]state.State{of("1", "a", "b"), of("1", "b", "a")}, false},
		"the order of a list, and a value":   {[]state.State{of("1", "a", "b"), of("2", "b", "a")}, false},
		"an item of a sorted list is new":    {[]state.State{of("1", "a", "b"), of("1", "b", "c")}, true},
		"a value that varies in no two runs": {[]state.State{of("1"), other}, false},
	} {
		last := len(test.states) - 1
		if got := renewed(test.states[last], test.states[:last], varying); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTheGreatestRiskComesFirst has the experiments about what stops an operator before those about labels and costs.
func TestTheGreatestRiskComesFirst(t *testing.T) {
	var got []string
	for _, id := range IDs() {
		if slices.Contains([]string{"faults", "crash", "replicas", "drift", "permissions"}, id) {
			got = append(got, id)
		}
	}
	if want := "faults crash replicas drift permissions"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for want, s := range map[time.Duration]Subject{
		9 * time.Minute:  {},
		85 * time.Second: {Fast: true},
		20 * time.Minute: {Fast: true, Time: metav1.Duration{Duration: 20 * time.Minute}},
	} {
		if got := s.time(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

func TestAResyncDoesNotLookLikeAReaction(t *testing.T) {
	r := run{slowest: 10 * time.Second, target: &target{Subject: Subject{Fast: true}}}
	if got := r.patience(); got != 12*time.Second {
		t.Errorf("without a period: %v", got)
	}
	r.target.Period.Duration = 8 * time.Second
	if got := r.patience(); got != 4*time.Second {
		t.Errorf("with a period of 8 s: %v", got)
	}
}

// TestWhoDeletedAnObject has requests of the operator about an object that is gone.
func TestWhoDeletedAnObject(t *testing.T) {
	entry := func(verb, name string) ledger.Entry {
		return ledger.Entry{Request: wire.Request{Verb: verb, Name: name}}
	}
	for name, test := range map[string]struct {
		changes []ledger.Entry
		want    Verdict
	}{
		"none":                       {nil, Skipped},
		"an update":                  {[]ledger.Entry{entry(wire.Update, "a")}, Skipped},
		"a deletion of another one":  {[]ledger.Entry{entry(wire.Delete, "b")}, Skipped},
		"a deletion":                 {[]ledger.Entry{entry(wire.Update, "a"), entry(wire.Delete, "a")}, Failed},
		"a deletion of a collection": {[]ledger.Entry{entry(wire.DeleteCollection, "")}, Failed},
	} {
		if f := deletedBy(test.changes, "a"); f.Verdict != test.want {
			t.Errorf("%s: %s: %s", name, f.Verdict, f.What)
		}
	}
}

// TestTheTimeOfAFindingIsRound has a period that the lab measured.
func TestTheTimeOfAFindingIsRound(t *testing.T) {
	r := run{period: 1359596111}
	if got := r.untilResync(2*time.Second, time.Minute); got != 3400*time.Millisecond {
		t.Errorf("until a resync: %v", got)
	}
	if got := r.afterRestart(); got != 3700*time.Millisecond {
		t.Errorf("after a restart: %v", got)
	}
}

// TestTheCostOfAnAddition has writes before and after an addition.
func TestTheCostOfAnAddition(t *testing.T) {
	added := time.Now()
	for name, test := range map[string]struct {
		seconds  []int
		progress string
		want     Verdict
	}{
		"no write":                          {nil, "", Passed},
		"only those of the creation":        {[]int{-9, -8}, "it made progress", Passed},
		"one after the addition":            {[]int{-9, 1}, "", Failed},
		"one for progress":                  {[]int{-9, 1}, "it made progress", Skipped},
		"one each second, also without one": {[]int{-2, -1, 0, 1}, "", Skipped},
	} {
		var writes []ledger.Entry
		for _, s := range test.seconds {
			writes = append(writes, ledger.Entry{Start: added.Add(time.Duration(s) * time.Second)})
		}
		if got := costOfAddition(writes, added, test.progress); got.Verdict != test.want {
			t.Errorf("%s: %s, want %s", name, got.Verdict, test.want)
		}
	}
}

// TestNamesThatAreNotTaken has a cluster-scoped child.
func TestNamesThatAreNotTaken(t *testing.T) {
	r := newRun(t.Context(), &target{sample: &unstructured.Unstructured{}}, Options{Progress: t.Logf})
	classes := schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"}
	r.current, r.children = experimentOf("ownership"), []child{{GVR: classes, Name: "hello", Cluster: true}}
	err := ownership(r)
	want := "1 of 1 names of children outside the namespace of the sample; "
	if got := r.report.NotTried(); err != nil || !strings.HasPrefix(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestABrokenLabIsNoFinding has a control plane of which no component runs, and one that does not start again.
func TestABrokenLabIsNoFinding(t *testing.T) {
	r := newRun(t.Context(), &target{sample: &unstructured.Unstructured{}}, Options{Progress: t.Logf})
	r.fixture = &fixture.Fixture{Cluster: cluster.New(t.TempDir(), t.TempDir(), t.Logf)}
	err := r.judge("a removed status comes back", func() (Finding, error) { return failed("it stayed removed"), nil })
	if err == nil || !strings.Contains(err.Error(), "etcd does not run") || len(r.report.Findings) > 0 {
		t.Errorf("%v, %v", err, r.report.Findings)
	}
	r.fixture = nil
	err = r.judge("recovers", func() (Finding, error) { return Finding{}, fmt.Errorf("%w: it is late", errBroken) })
	if !errors.Is(err, errBroken) || len(r.report.Findings) > 0 {
		t.Errorf("%v, %v", err, r.report.Findings)
	}
}

// TestMostRepeated has messages that differ in an attempt, a time, a duration and a UID, and lines about other objects.
func TestMostRepeated(t *testing.T) {
	line := func(n int, namespace string) string {
		return fmt.Sprintf("2026-11-28T16:41:%02d.12Z retry %d of %s/hello in %dms, reconcileID=%08x-0000-4000-8000-000000000000\n",
			n, n, namespace, n*n, n)
	}
	var early, late strings.Builder
	for n := range 20 {
		late.WriteString(line(n, "examine-7"))
		late.WriteString(line(n, "examine-77"))
		if n < 5 {
			early.WriteString(line(n, "examine-7"))
		}
		late.WriteString("another message about examine-7/" + strings.Repeat("x", n) + "\n")
	}
	most := mostRepeated(early.String(), late.String(), "examine-7")
	if most.early != 5 || most.late != 20 || !strings.Contains(most.line, "retry 19 of examine-7/hello") {
		t.Errorf("%+v", most)
	}
	for want, all := range map[bool][]repeated{
		true: {most, {"ten in a second", 20, 20}}, // longer than the window, as fast as in its first half
		// the tries of a work queue, each with five tries at once; a burst at the beginning of the work
		false: {{"retry", 45, 10}, {"a work queue", 9, 2}, {"a burst", 500, 20}, {}},
	} {
		for _, r := range all {
			if r.tooOften() != want {
				t.Errorf("%+v: too often is %v", r, !want)
			}
		}
	}
	retries := failureLog{repeated{"retry", 9, 2}, repeated{"retry", 0, 11}} // with backoff
	for name, test := range map[string]struct {
		logs        []failureLog
		short, once Verdict
	}{
		"one line for each try":    {[]failureLog{{}, retries}, Passed, Failed},
		"one line, and one later":  {[]failureLog{{repeated{"one", 1, 0}, repeated{"one", 0, 2}}}, Passed, Passed},
		"many lines in one window": {[]failureLog{retries, {window: most}}, Failed, ""},
	} {
		if short, once := judgeLogs(test.logs); short.Verdict != test.short || once.Verdict != test.once {
			t.Errorf("%s: %+v, %+v", name, short, once)
		}
	}
}

// TestFightWords has texts of a status that report another client, and those of a usual rollout.
func TestFightWords(t *testing.T) {
	for text, want := range map[string]bool{
		"FieldConflict": true, "autoscaler sets spec.replicas again and again": true, "Another client edits the Deployment": true,
		"MinimumReplicasUnavailable": false, "2 of 3 replicas are ready": false, "the Deployment is progressing": false,
	} {
		if fightWord.MatchString(text) != want {
			t.Errorf("%q is a report of another client: %v", text, !want)
		}
	}
}
