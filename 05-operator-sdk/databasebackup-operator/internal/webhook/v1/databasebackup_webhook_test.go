package v1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

type change = func(*databasesv1.DatabaseBackupSpec)

// original returns a DatabaseBackup with the three fields of the original operator, and changes.
func original(changes ...change) *databasesv1.DatabaseBackup {
	b := &databasesv1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"},
		Spec: databasesv1.DatabaseBackupSpec{DatabaseName: "orders", Schedule: "*/5 * * * *", BackupPath: "/backups"}}
	for _, f := range changes {
		f(&b.Spec)
	}
	return b
}

// complete sets all fields that a run needs, except the image.
func complete(s *databasesv1.DatabaseBackupSpec) {
	key := &databasesv1.KeyReference{Name: "credentials", Key: "k"}
	s.TargetRef = &databasesv1.TargetReference{Name: "db"}
	s.Auth = &databasesv1.Auth{UsernameSecretRef: key, PasswordSecretRef: key}
	s.Destination = &databasesv1.Destination{PersistentVolumeClaim: &databasesv1.ClaimReference{ClaimName: "backups"}}
}

func image(s *databasesv1.DatabaseBackupSpec)    { s.Image = "example.com/pgbackup:v1" }
func deleting(s *databasesv1.DatabaseBackupSpec) { s.DeletionPolicy = databasesv1.DeleteFiles }
func suspended(s *databasesv1.DatabaseBackupSpec) {
	s.Suspend = true
}

func scheduled(text string) change {
	return func(s *databasesv1.DatabaseBackupSpec) { s.Schedule = text }
}

func zone(name string) change {
	return func(s *databasesv1.DatabaseBackupSpec) { s.TimeZone = name }
}

const (
	lacksAll = "nothing runs until the spec has targetRef, auth.usernameSecretRef, auth.passwordSecretRef, " +
		"image, destination"
	filesToGo = "spec.deletionPolicy is Delete: when the DatabaseBackup is deleted, its backups go with it"
)

var _ = Describe("The webhook of DatabaseBackups", func() {
	BeforeEach(func() { said.Reset() })
	AfterEach(func() {
		Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, original()))).To(Succeed())
	})

	It("warns of what is missing, and that files will go, once", func() {
		b := original(deleting)
		Expect(k8sClient.Create(ctx, b)).To(Succeed())
		Expect(heard()).To(ConsistOf(ContainSubstring(lacksAll), ContainSubstring(filesToGo)))
		suspended(&b.Spec)
		Expect(k8sClient.Update(ctx, b)).To(Succeed())
		b.Labels = map[string]string{"a": "b"}
		Expect(k8sClient.Update(ctx, b)).To(Succeed())
		Expect(heard()).To(BeEmpty(), "edits of something else")
		complete(&b.Spec)
		Expect(k8sClient.Update(ctx, b)).To(Succeed())
		Expect(heard()).To(ConsistOf(HaveSuffix("nothing runs until the spec has image\n")))
		image(&b.Spec)
		Expect(k8sClient.Update(ctx, b)).To(Succeed())
		Expect(heard()).To(BeEmpty())
	})

	It("stays out of the way of an object that is being deleted", func() {
		b := original()
		b.Finalizers = []string{"example.com/keep"}
		Expect(k8sClient.Create(ctx, b)).To(Succeed())
		Expect(k8sClient.Delete(ctx, b)).To(Succeed())
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
		b.Finalizers, b.Spec.Schedule = nil, "0 0 30 2 *"
		Expect(k8sClient.Update(ctx, b)).To(Succeed())
	})
})

type attempt struct {
	image    string // the operator's
	old, now *databasesv1.DatabaseBackup
	warned   []string
	refused  string
}

var attempts = map[string]attempt{
	"the original's sample": {"", nil, original(), []string{lacksAll}, ""},
	"that, and the operator has an image": {
		"x", nil, original(), []string{strings.Replace(lacksAll, "image, ", "", 1)}, ""},
	"nothing is missing":                    {"", nil, original(complete, image), nil, ""},
	"nothing but what the operator has":     {"x", nil, original(complete), nil, ""},
	"files that will go":                    {"x", nil, original(complete, deleting), []string{filesToGo}, ""},
	"a date that never comes":               {"x", nil, original(complete, scheduled("0 0 31 4,6 *")), nil, "never comes"},
	"no zone, without the schema's default": {"x", nil, original(complete, zone("")), nil, ""},
	"an edit that makes the schedule bad": {
		"x", original(complete), original(complete, scheduled("0 25 * * *")), nil, "spec.schedule"},
	"an edit that makes the zone bad": {"x", original(complete), original(complete, zone("X")), nil, "spec.timeZone"},
	"an edit of a bad schedule's neighbour": {
		"x", original(complete, scheduled("0 25 * * *")), original(complete, scheduled("0 25 * * *"), suspended), nil, ""},
	"an edit from bad to bad": {
		"x", original(complete, scheduled("0 25 * * *")), original(complete, scheduled("0 26 * * *")), nil, "spec.schedule"},
	"an edit that fixes a bad schedule": {"x", original(complete, scheduled("0 25 * * *")), original(complete), nil, ""},
	"an edit that takes something away": {
		"", original(complete, image), original(complete), []string{"nothing runs until the spec has image"}, ""},
	"an edit that gives all":            {"", original(), original(complete, image), nil, ""},
	"an edit of something else":         {"", original(deleting), original(deleting, suspended), nil, ""},
	"an edit after which files will go": {"x", original(complete), original(complete, deleting), []string{filesToGo}, ""},
	"an edit after which they stay":     {"x", original(complete, deleting), original(complete), nil, ""},
	"a bad schedule, whatever else is missing": {
		"", nil, original(deleting, scheduled("0 25 * * *")), nil, "spec.schedule"},
}

// TestWhatIsSaid needs no API server. It includes objects that the schema refuses: the webhook does not rely on the
// schema.
func TestWhatIsSaid(t *testing.T) {
	for name, test := range attempts {
		t.Run(name, func(t *testing.T) {
			v := &DatabaseBackupValidator{Image: test.image}
			warnings, err := v.ValidateCreate(t.Context(), test.now)
			if test.old != nil {
				warnings, err = v.ValidateUpdate(t.Context(), test.old, test.now)
			}
			if diff := cmp.Diff(test.warned, []string(warnings)); diff != "" {
				t.Error("warned:", diff)
			}
			if (err != nil) != (test.refused != "") || err != nil &&
				(!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("refused: %v, want %q", err, test.refused)
			}
			for _, w := range warnings {
				if len(w) > 120 {
					t.Errorf("clients cut it: %s", w)
				}
			}
			if warnings, err := v.ValidateDelete(t.Context(), test.now); err != nil || len(warnings) > 0 {
				t.Errorf("a deletion: %v, %v", warnings, err)
			}
		})
	}
}
