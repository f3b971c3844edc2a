package difference

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// solution is a program that a reader should write.
const solution = `package main

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	web := &webv1.MyWeb{}
	if err := r.Get(ctx, req.NamespacedName, web); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, r.createChild(ctx, web, NewConfigMap(web))
}

func (r *Reconciler) createChild(ctx context.Context, web *webv1.MyWeb, child client.Object) error {
	err := r.Get(ctx, client.ObjectKeyFromObject(child), child)
	if !apierrors.IsNotFound(err) {
		return err
	}
	log.FromContext(ctx).Info("Creating child")
	if err := ctrl.SetControllerReference(web, child, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, child)
}

func run() error {
	return ctrl.NewControllerManagedBy(mgr).For(&webv1.MyWeb{}).Owns(&corev1.ConfigMap{}).Complete(&Reconciler{})
}
`

func TestDifferences(t *testing.T) {
	for _, test := range []struct {
		name, old, text, want string
	}{
		{"the same", "", "", ""},
		{"another function", "createChild", "ensure", ""},
		{"a name for a value", "\terr := r.Get(ctx, client.ObjectKeyFromObject(child), child)", "\tkey := client.ObjectKeyFromObject(child)\n\terr := r.Get(ctx, key, child)", ""},
		{"another value with a name", "\terr := r.Get(ctx, client.ObjectKeyFromObject(child), child)", "\tkey := types.NamespacedName{Name: child.GetName()}\n\terr := r.Get(ctx, key, child)",
			"17: types.NamespacedName{Name: child.GetName()} | client.ObjectKeyFromObject(child)"},
		{"a read that nothing uses", "client.ObjectKeyFromObject(child), child)", "client.ObjectKeyFromObject(child), found)\n\tfound := &corev1.ConfigMap{}",
			"16: found | child unread\n17: found := &corev1.ConfigMap{} |"},
		{"a function that returns a value", "Owns(&corev1.ConfigMap{})", "Owns(&corev1.ConfigMap{}, func() bool { return false })", "28: func() bool { return false } |"},
		{"another receiver", "(r *", "(rec *", ""},
		{"another name of a variable", "", "", ""},
		{"a variable for a result", "return r.Create(ctx, child)", "created := r.Create(ctx, child)\n\treturn created", ""},
		{"a copy in place of the object", "\tif err := ctrl.SetControllerReference(web, child,", "\towned := child.DeepCopy()\n\tif err := ctrl.SetControllerReference(web, owned,",
			"21: owned := child.DeepCopy() |\n22: owned | child"},
		{"a builder with a name", "return ctrl.NewControllerManagedBy(mgr).For(&webv1.MyWeb{}).Owns(&corev1.ConfigMap{}).Complete(&Reconciler{})",
			"b := ctrl.NewControllerManagedBy(mgr).For(&webv1.MyWeb{})\n\tb = b.Owns(&corev1.ConfigMap{})\n\treturn b.Complete(&Reconciler{})", ""},
		{"a condition the other way round", "if !apierrors", "if apierrors", ""},
		{"another way to ask", "client.IgnoreNotFound(err)\n", "client.IgnoreNotFound(err)\n\t}\n\tif web.GetDeletionTimestamp() != nil && true {\n\t\treturn ctrl.Result{}, nil\n",
			"12: if web.GetDeletionTimestamp() != nil && true | ends"},
		{"a field of a variable in a loop", "return r.Create(ctx, child)", "for _, c := range all {\n\t\tr.Create(ctx, c.Live.(client.Object))\n\t}\n\treturn r.Create(ctx, child)",
			"25: r.Create(ctx, c.Live.(client.Object)) |"},
		{"a return in a loop", "\treturn r.Create(ctx, child)", "\tfor _, c := range all {\n\t\terr := r.Create(ctx, c)\n\t\tif err == nil {\n\t\t\treturn nil\n\t\t}\n\t}\n\treturn nil",
			"26: if err == nil | ends loop"},
		{"a loop that returns an error", "\treturn r.Create(ctx, child)", "\tfor _, c := range all {\n\t\tif err := r.Create(ctx, c); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n\treturn nil", ""},
		{"the name of a function in ctrl", "ctrl.SetControllerReference", "controllerutil.SetControllerReference", ""},
		{"another name of a package", "apierrors", "errors", ""},
		{"an error that is handed on in another way", "return r.Create(ctx, child)",
			"if err := r.Create(ctx, child); err != nil {\n\t\treturn fmt.Errorf(\"create: %w\", err)\n\t}\n\treturn nil", ""},
		{"another argument", "client.ObjectKeyFromObject(child)", "types.NamespacedName{Name: child.GetName()}",
			"16: types.NamespacedName{Name: child.GetName()} | client.ObjectKeyFromObject(child)"},
		{"more in a statement", "&webv1.MyWeb{}).Owns", "&webv1.MyWeb{}, builder.OnlyMetadata).Owns", "28: builder.OnlyMetadata |"},
		{"an argument that is missing", "(web, child, r.Scheme())", "(web, child)", "21:  | r.Scheme()"},
		{"variables alone are no relation", "return r.Create(ctx, child)", "r.Other(ctx, child)\n\treturn nil", "24: r.Other(ctx, child) |\n0:  | r.Create(ctx, child)"},
		{"swapped arguments", "(web, child, r.Scheme())", "(child, web, r.Scheme())", "21: child, web | web, child"},
		{"a return", "\treturn ctrl.Result{}, r.createChild", "\tif web.Status.Done {\n\t\treturn ctrl.Result{}, nil\n\t}\n\treturn ctrl.Result{}, r.createChild",
			"12: if web.Status.Done | ends"},
		{"an error that is dropped", "\tif err := ctrl.SetControllerReference(web, child, r.Scheme()); err != nil {\n\t\treturn err\n\t}\n",
			"\t_ = ctrl.SetControllerReference(web, child, r.Scheme())\n", "21: _ = ctrl.SetControllerReference(web, child, r.Scheme()) | drops"},
		{"a result that nothing uses", "\treturn r.Create(ctx, child)", "\tr.Create(ctx, child)\n\treturn nil", "24: r.Create(ctx, child) | drops"},
		{"an error after which it goes on", "\tif err := ctrl.SetControllerReference(web, child, r.Scheme()); err != nil {\n\t\treturn err\n\t}\n",
			"\tif err := ctrl.SetControllerReference(web, child, r.Scheme()); err != nil {\n\t\tlog.FromContext(ctx).Error(err, \"no\")\n\t}\n",
			"21: if err := ctrl.SetControllerReference(web, child, r.Scheme()); err != nil | drops"},
		{"a watch that is missing", ".Owns(&corev1.ConfigMap{})", "", "0:  | Owns(&corev1.ConfigMap{})"},
		{"another order", "\tif err := ctrl.SetControllerReference(web, child, r.Scheme()); err != nil {\n\t\treturn err\n\t}\n\treturn r.Create(ctx, child)",
			"\tif err := r.Create(ctx, child); err != nil {\n\t\treturn err\n\t}\n\treturn ctrl.SetControllerReference(web, child, r.Scheme())",
			"21: r.Create(ctx, child) | ctrl.SetControllerReference(web, child, r.Scheme()) before"},
		{"a program that does not compile", "func run() error {", "func run( error {", ""},
	} {
		mine := strings.ReplaceAll(solution, test.old, test.text)
		switch test.name {
		case "another receiver":
			mine = regexp.MustCompile(`\br\.`).ReplaceAllString(mine, "rec.")
		case "another name of a variable":
			mine = regexp.MustCompile(`\bweb\b`).ReplaceAllString(mine, "site")
		}
		var got []string
		for _, d := range Of(Sources{"main.go": []byte(mine)}, Sources{"main.go": []byte(solution)}, nil) {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%d: %s | %s", d.Line, d.Mine, strings.TrimSpace(d.Other+" "+string(d.Kind)))))
		}
		if is := strings.Join(got, "\n"); is != test.want {
			t.Errorf("%s:\n%s\nwant:\n%s", test.name, is, test.want)
		}
	}
}

// TestTheStarterIsNoDifference: what the reader has not written is not the reader's mistake.
func TestTheStarterIsNoDifference(t *testing.T) {
	starter := "package main\n\nfunc main() {\n\tcontrollerutil.CreateOrUpdate(ctx, a)\n}\n"
	mine := strings.Replace(starter, "OrUpdate", "OrPatch", 1)
	all := Of(Sources{"main.go": []byte(starter)}, Sources{"main.go": []byte(solution)}, Sources{"main.go": []byte(starter)})
	for _, d := range all {
		if d.Line > 0 {
			t.Errorf("the starter has %+v", d)
		}
	}
	all = Of(Sources{"main.go": []byte(mine)}, Sources{"main.go": []byte(solution)}, Sources{"main.go": []byte(starter)})
	if len(all) == 0 || all[0].Statement != "controllerutil.CreateOrPatch(ctx, a)" {
		t.Errorf("%+v", all)
	}
}

// TestTheSameInAnotherForm: a reader may keep the old status in several ways, and may write the value of a constant. A copy
// that shares its conditions with the object is another program.
func TestTheSameInAnotherForm(t *testing.T) {
	const status = "old := web.Status\n\tweb.Status = statusFor(web)\n\tif equality.Semantic.DeepEqual(old, web.Status) {\n\t\treturn nil\n\t}"
	const inPlace = "old := web.DeepCopy()\n\tmeta.SetStatusCondition(&web.Status.Conditions, ready)\n" +
		"\tif equality.Semantic.DeepEqual(old.Status, web.Status) {\n\t\treturn nil\n\t}"
	const value = `const FieldOwner = "myweb-operator"`
	if file := testkit.Read(t, "../../../04-controller-runtime/internal/myweb/desired.go"); !strings.Contains(file, value) {
		t.Errorf("the constant is not %s", value)
	}
	const apply = "err := r.Apply(ctx, desired, client.FieldOwner(myweb.FieldOwner))"
	for _, test := range []struct {
		name, mine, solution string
		same                 bool
	}{
		{"a copy of the object", strings.NewReplacer("old := web.Status", "was := web.DeepCopy()", "(old,", "(was.Status,").Replace(status), status, true},
		{"a copy of the status", strings.NewReplacer("old := web.Status", "old := web.Status.DeepCopy()", "(old,", "(*old,").Replace(status), status, true},
		{"a copy of another object", strings.Replace(status, "old := web", "old := other", 1), status, false},
		{"a copy that is used as a whole", strings.NewReplacer("old := web.Status", "old := web.DeepCopy()", "(old,", "(old.Status, old,").Replace(status), status, false},
		{"a copy that shares the conditions", strings.NewReplacer("web.DeepCopy()", "web.Status", "old.Status", "old").Replace(inPlace), inPlace, false},
		{"the value of a constant", strings.Replace(apply, "myweb.FieldOwner", `"myweb-operator"`, 1), apply, true},
		{"another value", strings.Replace(apply, "myweb.FieldOwner", `"other"`, 1), apply, false},
	} {
		program := func(body string) Sources {
			return Sources{"main.go": []byte("package main\n\nfunc (r *Reconciler) update(ctx context.Context, web *webv1.MyWeb) error {\n\t" + body + "\n}\n")}
		}
		if all := Of(program(test.mine), program(test.solution), nil); len(all) == 0 != test.same {
			t.Errorf("%s: %+v", test.name, all)
		}
	}
}
