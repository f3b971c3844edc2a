package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// options of generate.
type options struct {
	pkg, version, image, channels, output string
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.pkg, "package", "", "name of the package")
	flags.StringVar(&o.version, "version", "", "semantic version of the bundle")
	flags.StringVar(&o.image, "image", "", "image of the operator")
	flags.StringVar(&o.channels, "channels", "alpha", "channels, separated by commas; the first is the default one")
	flags.StringVar(&o.output, "output", "bundle", "folder to write, which is replaced")
}

func (o *options) check() error {
	if o.pkg == "" || o.image == "" {
		return errors.New("--package and --image must be given")
	}
	if _, err := semver.Parse(o.version); err != nil {
		return fmt.Errorf("--version is %q: it must be a semantic version such as 0.0.1: %w", o.version, err)
	}
	return nil
}

// generate writes a bundle: manifests/ with the ClusterServiceVersion and what goes beside it, metadata/
// with the annotations of the bundle's image, tests/scorecard/ with its configuration, and beside the folder
// bundle.Dockerfile, which makes an image of it.
func generate(o options, in io.Reader) error {
	if err := o.check(); err != nil {
		return err
	}
	all, err := read(in)
	if err != nil {
		return err
	}
	b, err := sorted(all)
	if err != nil {
		return err
	}
	files, err := b.files(o)
	if err != nil {
		return err
	}
	return write(o.output, files)
}

// read returns the objects of a YAML stream.
func read(in io.Reader) (all []unstructured.Unstructured, err error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096)
	for {
		var object unstructured.Unstructured
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read manifests: %w", err)
		case len(object.Object) > 0:
			all = append(all, object)
		}
	}
}

// A bundle is what was read, by what becomes of it.
type bundle struct {
	csv       *v1alpha1.ClusterServiceVersion
	scorecard *unstructured.Unstructured
	samples   []unstructured.Unstructured
	owned     []crd
	// strategy is what goes into the ClusterServiceVersion: OLM makes it.
	strategy strategy
	// beside are the objects that lie beside it: OLM applies them.
	beside []unstructured.Unstructured
}

// sorted says what becomes of each object.
func sorted(all []unstructured.Unstructured) (*bundle, error) {
	b := &bundle{}
	for _, object := range all {
		kind := object.GetKind()
		if err := b.take(kind, object); err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, object.GetName(), err)
		}
	}
	if b.csv == nil {
		return nil, errors.New("there is no ClusterServiceVersion: give what 'kustomize build config/manifests' prints")
	}
	kinds := map[string]bool{}
	for _, crd := range b.owned {
		kinds[crd.Spec.Group+"/"+crd.Spec.Names.Kind] = true
	}
	b.beside = slices.DeleteFunc(b.beside, func(object unstructured.Unstructured) bool {
		sample := kinds[object.GroupVersionKind().Group+"/"+object.GetKind()]
		if sample {
			b.samples = append(b.samples, object)
		}
		return sample
	})
	return b, b.strategy.bind(b)
}

func (b *bundle) take(kind string, object unstructured.Unstructured) error {
	switch kind {
	case "Namespace", "ServiceAccount": // OLM has the one and makes the other
		return nil
	case "ClusterServiceVersion":
		b.csv = &v1alpha1.ClusterServiceVersion{}
		return into(object, b.csv)
	case "Configuration":
		b.scorecard = &object
		return nil
	case "CustomResourceDefinition":
		var definition crd
		b.owned, b.beside = append(b.owned, definition), append(b.beside, object)
		return into(object, &b.owned[len(b.owned)-1])
	}
	taken, err := b.strategy.take(kind, object)
	if !taken {
		b.beside = append(b.beside, object)
	}
	return err
}

// into makes a typed object of an untyped one.
func into(object unstructured.Unstructured, typed any) error {
	data, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, typed)
}

// files are the bundle's, by path; a path that begins with ../ lies beside it.
func (b *bundle) files(o options) (map[string][]byte, error) {
	if err := b.complete(o); err != nil {
		return nil, err
	}
	files := map[string][]byte{
		"metadata/annotations.yaml": []byte("annotations:\n" + annotations(o, "  ", ": ")),
		"../bundle.Dockerfile": []byte("FROM scratch\n\n" + annotations(o, "LABEL ", "=") +
			"\nCOPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\n" +
			"COPY bundle/tests/scorecard /tests/scorecard/\n"),
	}
	var err error
	if files["manifests/"+o.pkg+".clusterserviceversion.yaml"], err = csvYAML(b.csv); err != nil {
		return nil, err
	}
	if b.scorecard != nil {
		if files["tests/scorecard/config.yaml"], err = yaml.Marshal(b.scorecard.Object); err != nil {
			return nil, err
		}
	}
	for _, object := range b.beside {
		object.SetNamespace("") // OLM says which
		name := object.GetName() + "_" + strings.ReplaceAll(strings.ToLower(object.GroupVersionKind().Group), "/", "_") +
			"_" + object.GroupVersionKind().Version + "_" + strings.ToLower(object.GetKind()) + ".yaml"
		if object.GetKind() == "CustomResourceDefinition" {
			names := strings.SplitN(object.GetName(), ".", 2)
			name = names[1] + "_" + names[0] + ".yaml"
		}
		name = strings.ReplaceAll(name, "__", "_")
		if files["manifests/"+name], err = yaml.Marshal(object.Object); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// annotations tell OLM, and the tools that make catalogs, what is in the image.
func annotations(o options, before, between string) string {
	channel, _, _ := strings.Cut(o.channels, ",")
	var text strings.Builder
	for _, a := range [][2]string{
		{"operators.operatorframework.io.bundle.mediatype.v1", "registry+v1"},
		{"operators.operatorframework.io.bundle.manifests.v1", "manifests/"},
		{"operators.operatorframework.io.bundle.metadata.v1", "metadata/"},
		{"operators.operatorframework.io.bundle.package.v1", o.pkg},
		{"operators.operatorframework.io.bundle.channels.v1", o.channels},
		{"operators.operatorframework.io.bundle.channel.default.v1", channel},
		{"operators.operatorframework.io.test.config.v1", "tests/scorecard/"},
		{"operators.operatorframework.io.test.mediatype.v1", "scorecard+v1"},
	} {
		text.WriteString(before + a[0] + between + a[1] + "\n")
	}
	return text.String()
}

// complete fills in what the ClusterServiceVersion's base, which is written by hand, cannot say.
func (b *bundle) complete(o options) error {
	examples := make([]any, 0, len(b.samples))
	for _, sample := range b.samples {
		examples = append(examples, sample.Object)
	}
	text, err := json.MarshalIndent(examples, "", "  ")
	if err != nil {
		return err
	}
	if b.csv.Annotations == nil {
		b.csv.Annotations = map[string]string{}
	}
	b.csv.Annotations["alm-examples"] = string(text)
	b.csv.Annotations["containerImage"] = o.image
	b.csv.Namespace, b.csv.Name = "", o.pkg+".v"+o.version
	b.csv.Spec.Version = version.OperatorVersion{Version: semver.MustParse(o.version)}
	if err := describe(b.csv, b.owned); err != nil {
		return err
	}
	return b.strategy.fill(b.csv, o.image)
}

// csvYAML leaves out what only a running cluster fills in.
func csvYAML(csv *v1alpha1.ClusterServiceVersion) ([]byte, error) {
	data, err := json.Marshal(csv)
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	delete(tree, "status")
	prune(tree)
	return yaml.Marshal(tree)
}

// prune removes what Go types print although it is not set: null times, empty status.
func prune(tree map[string]any) {
	for key, value := range tree {
		switch value := value.(type) {
		case nil:
			delete(tree, key)
		case map[string]any:
			prune(value)
		case []any:
			for _, element := range value {
				if element, ok := element.(map[string]any); ok {
					prune(element)
				}
			}
		}
	}
}

// write replaces a folder in one go: whoever looks sees the old bundle or the new one, and a failure keeps
// the old one.
func write(folder string, files map[string][]byte) error {
	tmp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(folder)), ".bundle-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	inside := filepath.Join(tmp, "bundle")
	for name, data := range files {
		path := filepath.Join(inside, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, bytes.TrimLeft(data, "\n"), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(folder), os.Rename(inside, folder),
		os.Rename(filepath.Join(tmp, "bundle.Dockerfile"),
			filepath.Join(filepath.Dir(filepath.Clean(folder)), "bundle.Dockerfile")))
}
