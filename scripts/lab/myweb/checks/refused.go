package checks

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

type fields = map[string]any

// badFields are specs that differ from a good spec in one field. says is part of the message of the refusal.
var badFields = []struct {
	name, path, says string
	change           fields
}{
	{"no image", "spec.image", "required", fields{"image": nil}},
	{"empty image", "spec.image", "at least 1", fields{"image": ""}},
	{"image with a space", "spec.image", "image reference", fields{"image": "nginx latest"}},
	{"image in capitals", "spec.image", "image reference", fields{"image": "Nginx"}},
	{"image that is a number", "spec.image", "string", fields{"image": 1}},
	{"port below the range", "spec.nodePortNumber", "30000", fields{"nodePortNumber": 29999}},
	{"port above the range", "spec.nodePortNumber", "32767", fields{"nodePortNumber": 32768}},
	{"port 80", "spec.nodePortNumber", "30000", fields{"nodePortNumber": 80}},
	{"port in words", "spec.nodePortNumber", "integer", fields{"nodePortNumber": "thirty"}},
	{"fewer than no replicas", "spec.replicas", "0", fields{"replicas": -1}},
	{"too many replicas", "spec.replicas", "10", fields{"replicas": 11}},
	{"replicas in words", "spec.replicas", "integer", fields{"replicas": "two"}},
	{"page too long", "spec.pageContentHtml", "40000", fields{"pageContentHtml": strings.Repeat("x", 40001)}},
	{"page that is a list", "spec.pageContentHtml", "string", fields{"pageContentHtml": []any{"a"}}},
}

// with is a good spec with some fields changed; nil removes a field.
func with(change fields) fields {
	spec := fields{"image": "nginx", "pageContentHtml": "<h1>Hello</h1>"}
	for field, value := range change {
		if spec[field] = value; value == nil {
			delete(spec, field)
		}
	}
	return spec
}

// dryRun creates a MyWeb with the given fields beside its metadata in a dry run: it is not stored.
func dryRun(t *suite.T, object fields, validation string) error {
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(suite.WebKind)
	u.SetName("try")
	_, err := t.Objects(suite.Resource).Create(t.Ctx, u,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: validation})
	return err
}

// wantRefusal fails the check unless the error is a refusal that names the field and contains the words.
func wantRefusal(t *suite.T, name string, err error, path, says string) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code/100 != 4 {
		t.Errorf("%s: got error %v, want a refusal that blames %s", name, err, path)
		return
	}
	var blamed []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Field == path && strings.Contains(strings.ToLower(cause.Message), says) {
				return
			}
			blamed = append(blamed, cause.Field+": "+cause.Message)
		}
	}
	if text := err.Error(); len(blamed) == 0 && strings.Contains(text, path) && strings.Contains(text, says) {
		return // a refusal without a list of causes
	}
	t.Errorf("%s: refused with %q, want %s blamed, and %q said", name, blamed, path, says)
}

// wantSchema is wantRefusal for a refusal by the schema.
func wantSchema(t *suite.T, name string, object fields, path string) {
	err := dryRun(t, object, "")
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || len(status.Status().Details.Causes) == 0 {
		t.Errorf("%s was answered with %v, not with a refusal by the schema", name, err)
		return
	}
	wantRefusal(t, name, err, path, "")
}

func noSpec(t *suite.T) {
	wantSchema(t, "a MyWeb without spec", fields{}, "spec")
	wantSchema(t, "a MyWeb whose spec is null", fields{"spec": nil}, "spec")
	wantSchema(t, "a MyWeb whose spec is empty", fields{"spec": fields{}}, "spec.image")
}

func wrongTypes(t *suite.T) {
	wantSchema(t, "a spec that is a text", fields{"spec": "x"}, "spec")
	wantSchema(t, "a spec that is a list", fields{"spec": []any{"x"}}, "spec")
	wrong := fields{"image": int64(5), "nodePortNumber": "thirty", "replicas": "two", "pageContentHtml": []any{"x"}}
	for field, value := range wrong {
		spec := fields{"image": "nginx", field: value}
		wantSchema(t, field+" of a wrong type", fields{"spec": spec}, "spec."+field)
		spec["pageContentHtml"] = fields{"x": "y"}
		wantSchema(t, "a page and "+field+" of wrong types", fields{"spec": spec}, "spec.pageContentHtml")
	}
}

func badSpecs(t *suite.T) {
	for _, bad := range badFields {
		err := dryRun(t, fields{"spec": with(bad.change)}, metav1.FieldValidationStrict)
		wantRefusal(t, bad.name, err, bad.path, bad.says)
	}
}

func badUpdates(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	for _, bad := range badFields {
		_, err := t.Objects(suite.Resource).Patch(t.Ctx, "web", types.MergePatchType,
			[]byte(suite.JSON(fields{"spec": bad.change})), metav1.PatchOptions{})
		wantRefusal(t, bad.name, err, bad.path, bad.says)
	}
	_, err := t.Objects(suite.Resource).Patch(t.Ctx, "web", types.MergePatchType,
		[]byte(`{"spec":{"replicas":11}}`), metav1.PatchOptions{}, "scale")
	wantRefusal(t, "scaled too far", err, "spec.replicas", "10")
	if now := t.Completed("web"); now.Generation != web.Generation {
		t.Errorf("the generation is %d, want %d: all changes were refused", now.Generation, web.Generation)
	}
	t.StaysQuiet(time.Second)
}

func goodSpecs(t *suite.T) {
	page := "<html>\n  <body>\n    <h1>Hello, World!</h1>\n  </body>\n</html>\n"
	for name, change := range map[string]fields{
		"the sample":                 {"nodePortNumber": 30100, "pageContentHtml": page},
		"no page":                    {"pageContentHtml": nil},
		"an empty page":              {"pageContentHtml": ""},
		"a page as long as allowed":  {"pageContentHtml": strings.Repeat("ü", 40000)},
		"a registry with a port":     {"image": "registry:5000/x@sha256:" + strings.Repeat("0a", 32)},
		"a registry, tag and digest": {"image": "[::1]:5000/team/web:1.2_3@sha256:" + strings.Repeat("f", 64)},
		"the lowest port":            {"nodePortNumber": 30000},
		"the highest port":           {"nodePortNumber": 32767},
		"no replicas":                {"replicas": 0},
		"ten replicas":               {"replicas": 10},
	} {
		if err := dryRun(t, fields{"spec": with(change)}, metav1.FieldValidationStrict); err != nil {
			t.Errorf("%s: refused: %v", name, err)
		}
	}
}
