package controller

import (
	"errors"
	"flag"
	"fmt"
	"path"
	"strings"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// Allowed limits the images, Services and stores that users may choose. The Job of a DatabaseBackup or DatabaseRestore
// gets every Secret that the object names, so its image and the hosts to which it connects decide what happens to their
// values.
type Allowed struct {
	// Image is for DatabaseBackups that name no image; it may be empty. It is always allowed.
	Image string
	// Images are patterns of more images, Services are patterns of NAMESPACE/SERVICE, Stores are patterns of HOST or
	// HOST:PORT. Without Services, all Services of the object's namespace are allowed, without Stores all hosts.
	Images, Services, Stores patterns
}

// Bind adds the flags.
func (a *Allowed) Bind(flags *flag.FlagSet) {
	flags.Func("allowed-images", "images that users may choose in addition to PGBACKUP_IMAGE, separated by commas; "+
		"* stands for any text without /, and * alone for all images (default: none)", a.Images.set)
	flags.Func("allowed-services", "NAMESPACE/SERVICE to which Jobs may connect, separated by commas; "+
		"* stands for any text without / (default: each Service of the object's namespace)", func(text string) error {
		for name := range strings.SplitSeq(text, ",") {
			if strings.Count(name, "/") != 1 {
				return fmt.Errorf("%q is not NAMESPACE/SERVICE: write */SERVICE for all namespaces", name)
			}
		}
		return a.Services.set(text)
	})
	flags.Func("allowed-stores", "hosts of S3 and REST servers to which Jobs may connect, as HOST or HOST:PORT as in the "+
		"URL, separated by commas; * stands for any text (default: each host)", a.Stores.set)
}

// refusalOf explains why the Jobs of a DatabaseBackup, or of a restore from it into a target, are not allowed. It is nil
// when they are allowed. The target may be nil.
func (a *Allowed) refusalOf(b *databasesv1.DatabaseBackup, target *databasesv1.TargetReference) *explanation {
	if image := b.Spec.Image; image != "" && image != a.Image && !a.Images.match(image) {
		message := fmt.Sprintf("spec.image %s is not allowed: choose an image that the operator's option "+
			"--allowed-images names, or ask an administrator to add it", image)
		if a.Image != "" {
			message += "; without spec.image, " + a.Image + " is used"
		}
		return &explanation{databasesv1.ReasonImageNotAllowed, message}
	}
	if store := storeOf(b.Spec.Destination); store != "" && len(a.Stores) > 0 && !a.Stores.match(store) {
		return new(explain(databasesv1.ReasonStoreNotAllowed, "the store at %s is not allowed: choose a host that the "+
			"operator's option --allowed-stores names, or ask an administrator to add %s", store, store))
	}
	if target == nil || len(a.Services) == 0 || a.Services.match(b.Namespace+"/"+serviceOf(target)) {
		return nil
	}
	return new(explain(databasesv1.ReasonServiceNotAllowed, "Service %s is not allowed: choose a Service that the "+
		"operator's option --allowed-services names, or ask an administrator to add %s/%s",
		serviceOf(target), b.Namespace, serviceOf(target)))
}

// patterns have the syntax of path.Match.
type patterns []string

func (p *patterns) set(text string) error {
	for pattern := range strings.SplitSeq(text, ",") {
		if pattern = strings.TrimSpace(pattern); pattern == "" {
			return errors.New("the list has an empty element: remove it")
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q: %w", pattern, err)
		}
		*p = append(*p, pattern)
	}
	return nil
}

func (p patterns) match(name string) bool {
	for _, pattern := range p {
		if matched, err := path.Match(pattern, name); pattern == "*" || matched && err == nil {
			return true
		}
	}
	return false
}
