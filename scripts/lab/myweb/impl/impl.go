// Package impl describes the MyWeb operators that the lab examines: the workshop's own, and a reader's.
package impl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/examine/strictyaml"
)

// CRD is the file of the CustomResourceDefinition that all implementations handle, relative to the checkout.
const CRD = "04-controller-runtime/config/crd/operator.k8s-summit.org_mywebs.yaml"

// An Implementation is a MyWeb operator: a program that finds the API server by KUBECONFIG.
type Implementation struct {
	// Name is short; Title describes how the operator is written.
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	// Folder has all files that the other fields name; it is empty when the program was given as a file.
	Folder string `json:"folder,omitempty"`
	// Package is built in the module of Folder, and may belong to a module that this module requires. Besides are
	// packages whose programs are built, too. Program is a file that is run unchanged, in place of a package.
	Package string   `json:"package,omitempty"`
	Besides []string `json:"besides,omitempty"`
	Program string   `json:"program,omitempty"`
	// Carries are programs that an image must also contain for Program to run. They count for the size.
	Carries []string `json:"carries,omitempty"`
	// OnlyByName excludes the implementation when no name is given. Its failures are findings, not errors.
	OnlyByName bool `json:"onlyByName,omitempty"`
	// OnlyCompared excludes the implementation when no name is given, except from a comparison. Its failures are
	// findings, too.
	OnlyCompared bool `json:"onlyCompared,omitempty"`
	// Fails are the checks that the implementation fails, as the lab measured. An unlisted check that fails is an
	// error, and so is a listed check that passes.
	Fails []string `json:"fails,omitempty"`
	// Needs are manifests that are applied before the first start, in this order.
	Needs []string `json:"needs,omitempty"`
	// OwnCRD is for a program that installs the CRD of MyWebs itself, so that the lab does not. CRDFile is a CRD in
	// Folder that the lab installs in place of the common CRD.
	OwnCRD  bool   `json:"ownCRD,omitempty"`
	CRDFile string `json:"crdFile,omitempty"`
	// Written lists the files that the author writes and maintains: patterns of files, and, with a leading ./, Go
	// packages, which stand for all packages of this module that are linked into them. Without any it is Package, or
	// Program.
	Written []string `json:"written,omitempty"`
	// Roles and LeaseRoles are files in Folder: the operator's permissions everywhere, and in the namespace of its
	// lease. Without them it may do everything.
	Roles      []string `json:"roles,omitempty"`
	LeaseRoles []string `json:"leaseRoles,omitempty"`
	// Admission are plugins that the API server enables in addition to its defaults.
	Admission []string `json:"admission,omitempty"`
	// APIServer are flags of the API server, such as a feature gate that the program needs.
	APIServer []string `json:"apiServer,omitempty"`
	// Webhooks is a file, relative to Folder, with the operator's own webhook configurations. With it, the program
	// gets --webhook-port and --webhook-cert-dir, as with cert-manager.
	Webhooks string `json:"webhooks,omitempty"`
	// Args and Env are always passed. In both, $(FOLDER) is Folder, and $(BIN) is the folder with the programs of
	// Besides.
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	// InFolder is for a program that expects its files in its working folder: that is Folder.
	InFolder bool `json:"inFolder,omitempty"`
	// BuildArgs are additional arguments of `go build`.
	BuildArgs []string `json:"-"`
	// Path is the program, and Beside are the programs of Besides: set by Build.
	Path   string   `json:"path,omitempty"`
	Beside []string `json:"-"`
	// Flags are the flags that its --help names: set by Build.
	Flags []string `json:"-"`
}

// Listed reads the list of the checkout at root.
func Listed(root string) ([]Implementation, error) {
	var list struct{ Implementations []Implementation }
	if err := strictyaml.Read(filepath.Join(root, "scripts", "lab", "operators.yaml"), &list); err != nil {
		return nil, err
	}
	for i := range list.Implementations {
		list.Implementations[i].Folder = filepath.Join(root, list.Implementations[i].Folder)
	}
	return list.Implementations, nil
}

// MustPass reports whether a failed check of the implementation is an error, and not a finding.
func (i Implementation) MustPass() bool { return !i.OnlyByName && !i.OnlyCompared }

// Compared are the names of the implementations in a comparison when no name is given.
func Compared(root string) (names []string, err error) {
	listed, err := Listed(root)
	for _, i := range listed {
		if !i.OnlyByName {
			names = append(names, i.Name)
		}
	}
	return names, err
}

// Choose returns the implementations that the words name: names of the list, or name=path of a program; without words
// all of the list, except those that run only by name, or are only compared.
func Choose(root string, words ...string) ([]Implementation, error) {
	listed, err := Listed(root)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return slices.DeleteFunc(listed, func(i Implementation) bool { return !i.MustPass() }), nil
	}
	var names []string
	for _, i := range listed {
		names = append(names, i.Name)
	}
	var chosen []Implementation
	for _, word := range words {
		name, path, own := strings.Cut(word, "=")
		at := slices.Index(names, name)
		switch {
		case own && (!regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$`).MatchString(name) || path == ""):
			return nil, fmt.Errorf("%q is not name=path/to/binary with a name of at most 20 of a-z, 0-9 and '-'", word)
		case own && at >= 0:
			return nil, fmt.Errorf("%s is the name of one of the workshop's own: choose another name for %s", name, path)
		case own:
			if path, err = filepath.Abs(path); err != nil {
				return nil, err
			}
			chosen = append(chosen, Implementation{Name: name, Title: "your own", Path: path})
		case at < 0:
			return nil, fmt.Errorf("there is no implementation %q: there are %s; your own is name=path/to/binary",
				word, strings.Join(names, ", "))
		default:
			chosen = append(chosen, listed[at])
		}
	}
	return chosen, nil
}

// Build compiles the programs into a folder, unless there is a file to run, and reads the flags of the program.
func (i Implementation) Build(ctx context.Context, into string) (Implementation, error) {
	bin := filepath.Join(into, i.Name+".bin")
	for _, name := range i.Besides {
		path := filepath.Join(bin, filepath.Base(name))
		if err := i.compile(ctx, name, into, path); err != nil {
			return i, err
		}
		i.Beside = append(i.Beside, path)
	}
	switch {
	case i.Package != "":
		i.Path = filepath.Join(into, i.Name)
		if err := i.compile(ctx, i.Package, into, i.Path); err != nil {
			return i, err
		}
	case i.Program != "":
		i.Path = filepath.Join(i.Folder, i.Program)
	}
	place := strings.NewReplacer("$(FOLDER)", i.Folder, "$(BIN)", bin)
	for _, list := range []*[]string{&i.Args, &i.Env} {
		*list = slices.Clone(*list)
		for n := range *list {
			(*list)[n] = place.Replace((*list)[n])
		}
	}
	info, err := os.Stat(i.Path)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = fmt.Errorf("%s is not an executable file", i.Path)
	}
	if err != nil {
		return i, fmt.Errorf("the program of %s: %w", i.Name, err)
	}
	i.Flags = fixture.FlagsOf(ctx, i.Path, i.Args, nil)
	return i, nil
}

// Overlay makes Build use other files in place of some, or beside them. It writes the overlay file of the go command
// into a folder.
func (i *Implementation) Overlay(dir string, replace map[string]string) error {
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "overlay.json")
	i.BuildArgs = append(i.BuildArgs, "-overlay", file)
	return os.WriteFile(file, data, 0o600)
}

// compile builds a package in Folder. Files that the go command leaves behind at Ctrl-C are in the folder into.
func (i Implementation) compile(ctx context.Context, name, into, program string) error {
	args := slices.Concat([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", program}, i.BuildArgs,
		[]string{name})
	cmd := process.Command(ctx, time.Minute, "go", args...)
	cmd.Dir = i.Folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly -trimpath", "GOWORK=off", "CGO_ENABLED=0", "GOTMPDIR="+into)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", name, i.Folder, err, out)
	}
	return nil
}

// CRDs are the files that the lab installs before the program runs.
func (i Implementation) CRDs(root string) []string {
	switch {
	case i.OwnCRD:
		return nil
	case i.CRDFile != "":
		return []string{filepath.Join(i.Folder, i.CRDFile)}
	default:
		return []string{filepath.Join(root, CRD)}
	}
}

// WithCRD calls do while a file replaces the common CRD in a cluster; an empty name means the common CRD.
func WithCRD(ctx context.Context, w *fixture.Fixture, file string, do func() error) error {
	if file == "" {
		return do()
	}
	root, err := Here()
	if err != nil {
		return err
	}
	if err = w.ReplaceCRD(ctx, file); err == nil {
		err = do()
	}
	return errors.Join(err, w.ReplaceCRD(context.WithoutCancel(ctx), filepath.Join(root, CRD)))
}

// AnotherCRD reports whether no other implementation can run beside this one, because it has a different CRD for
// MyWebs.
func (i Implementation) AnotherCRD() bool { return i.OwnCRD || i.CRDFile != "" }

// Has reports whether the program has a flag.
func (i Implementation) Has(flag string) bool { return slices.Contains(i.Flags, flag) }

// With returns those of the given settings, as --flag=value, for which the program has the flag.
func (i Implementation) With(settings ...string) (args []string) {
	for _, s := range settings {
		flag, _, _ := strings.Cut(strings.TrimPrefix(s, "--"), "=")
		if i.Has(flag) {
			args = append(args, s)
		}
	}
	return args
}
