package webctl

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
	webv1ac "example.com/operator-workshop/02-codegen/pkg/generated/applyconfiguration/myweb/v1"
	"example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned"
	typedv1 "example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned/typed/myweb/v1"
)

// verbs has the commands of webctl, for one namespace.
type verbs struct {
	client    versioned.Interface
	namespace string
	out       io.Writer
}

func (v *verbs) webs() typedv1.MyWebInterface {
	return v.client.OperatorV1().MyWebs(v.namespace)
}

// applyOptions are the fields that apply can set. A nil field is not sent, and so not owned.
type applyOptions struct {
	image, page *string
	nodePort    *int32
	labels      map[string]string
	manager     string
	force       bool
}

func (o *applyOptions) addFlags(fs *flag.FlagSet) {
	fs.Func("image", "container image", func(s string) error { o.image = &s; return nil })
	fs.Func("page", "the page, in HTML", func(s string) error { o.page = &s; return nil })
	fs.Func("node-port", "port on every node", func(s string) error {
		n, err := strconv.ParseInt(s, 10, 32)
		o.nodePort = new(int32(n))
		return err
	})
	fs.Func("label", "a label KEY=VALUE, may be repeated", func(s string) error {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("%q is not KEY=VALUE", s)
		}
		if o.labels == nil {
			o.labels = map[string]string{}
		}
		o.labels[key] = value
		return nil
	})
	fs.StringVar(&o.manager, "manager", "webctl", "who owns the fields")
	fs.BoolVar(&o.force, "force", false, "take over fields that others own")
}

// desired is the apply configuration: it has only the fields that the user named.
func desired(name, namespace string, o applyOptions) *webv1ac.MyWebApplyConfiguration {
	spec := webv1ac.MyWebSpec()
	spec.Image, spec.PageContentHTML, spec.NodePortNumber = o.image, o.page, o.nodePort
	return webv1ac.MyWeb(name, namespace).WithLabels(maps.Clone(o.labels)).WithSpec(spec)
}

// apply creates or changes the MyWeb, by server-side apply. The manager owns the fields that it sends. It
// no longer owns a field that it sent before and does not send now. A field of another manager with
// another value is a conflict, unless the request forces it.
func (v *verbs) apply(ctx context.Context, name string, o applyOptions) error {
	web, err := v.webs().Apply(ctx, desired(name, v.namespace, o),
		metav1.ApplyOptions{FieldManager: o.manager, Force: o.force})
	if err != nil {
		return fmt.Errorf("apply %s as %s: %w", name, o.manager, err)
	}
	return v.print(web)
}

func (v *verbs) get(ctx context.Context, name string) error {
	web, err := v.webs().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get %s: %w", name, err)
	}
	return v.print(web)
}

// print prints a MyWeb as a table.
func (v *verbs) print(web *webv1.MyWeb) error {
	w := tabwriter.NewWriter(v.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tGENERATION\tIMAGE\tREADY\tLABELS")
	fmt.Fprintf(w, "%s\t%d\t%s\t%d/%d\t%s\n", web.Name, web.Generation, web.Spec.Image,
		web.Status.ReadyReplicas, replicas(web), metav1.FormatLabelSelector(metav1.SetAsLabelSelector(web.Labels)))
	return w.Flush()
}

// replicas is the desired number of pods of a MyWeb. The API server sets the default; an object that
// was not read from an API server may have none.
func replicas(web *webv1.MyWeb) int32 {
	if web.Spec.Replicas == nil {
		return 1
	}
	return *web.Spec.Replicas
}
