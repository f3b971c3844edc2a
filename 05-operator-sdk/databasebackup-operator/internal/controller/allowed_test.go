package controller

import (
	"flag"
	"io"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// allow are the options of an operator whose own image is example.com/pgbackup:v1.
func allow(t *testing.T, args ...string) Allowed {
	t.Helper()
	a := Allowed{Image: "example.com/pgbackup:v1"}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	a.Bind(flags)
	must(t, flags.Parse(args))
	return a
}

func TestWhichImagesAndServicesAreAllowed(t *testing.T) {
	const image = "example.com/pgbackup:v1"
	const digest = "@sha256:4bcff63911fcb4448bd4fdacec207030997caf25e9bea4045fa6c8c44de311d1"
	for name, test := range map[string]struct {
		args           []string
		image, service string
		want           string // a reason; empty for allowed
	}{
		"the operator's own image":          {nil, image, "db", ""},
		"no image":                          {nil, "", "db", ""},
		"another image":                     {nil, "example.com/pgbackup:v2", "db", databasesv1.ReasonImageNotAllowed},
		"the own image in another registry": {nil, "evil.com/" + image, "db", databasesv1.ReasonImageNotAllowed},
		"the own image by another digest":   {nil, image + digest, "db", databasesv1.ReasonImageNotAllowed},
		"an image of the list": {
			[]string{"--allowed-images=a,example.com/pgbackup:*"}, image + digest, "db", ""},
		"the own image beside a list": {[]string{"--allowed-images=a"}, image, "db", ""},
		"an image below a pattern": {[]string{"--allowed-images=example.com/*"}, "example.com/a/b", "db",
			databasesv1.ReasonImageNotAllowed},
		"a pattern inside of another name": {[]string{"--allowed-images=*.example.com/pgbackup"},
			"evil.com/x.example.com/pgbackup", "db", databasesv1.ReasonImageNotAllowed},
		"any image": {[]string{"--allowed-images=*"}, "evil.com/a/b:c", "db", ""},
		"two flags": {[]string{"--allowed-images=a", "--allowed-images=b"}, "a", "db", ""},

		"a Service of the list":      {[]string{"--allowed-services=shop/a,shop/db"}, image, "db", ""},
		"a Service of any namespace": {[]string{"--allowed-services=*/db"}, image, "db", ""},
		"any Service of a namespace": {[]string{"--allowed-services=shop/*"}, image, "db", ""},
		"another Service": {[]string{"--allowed-services=shop/db-*"}, image, "db",
			databasesv1.ReasonServiceNotAllowed},
		"a Service of another namespace": {[]string{"--allowed-services=blog/db"}, image, "db",
			databasesv1.ReasonServiceNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			a := allow(t, test.args...)
			b := complete("shop")
			b.Spec.Image = test.image
			got := a.refusalOf(b, &databasesv1.TargetReference{Name: "set", ServiceName: test.service})
			if got == nil {
				got = &explanation{}
			}
			if got.reason != test.want {
				t.Errorf("%q: %s", got.reason, got.message)
			}
		})
	}
}

func TestWhichStoresAreAllowed(t *testing.T) {
	inS3 := &databasesv1.Destination{S3: &databasesv1.S3Destination{Endpoint: "https://s3.example.com:9000"}}
	onREST := &databasesv1.Destination{REST: &databasesv1.RESTDestination{URL: "http://backups.example.com/orders/"}}
	for name, test := range map[string]struct {
		args        []string
		destination *databasesv1.Destination
		allowed     bool
	}{
		"without the option":      {nil, inS3, true},
		"a volume":                {[]string{"--allowed-stores=a"}, complete("").Spec.Destination, true},
		"no destination":          {[]string{"--allowed-stores=a"}, nil, true},
		"a host with its port":    {[]string{"--allowed-stores=s3.example.com:9000"}, inS3, true},
		"a host without its port": {[]string{"--allowed-stores=s3.example.com"}, inS3, false},
		"a host":                  {[]string{"--allowed-stores=a,backups.example.com"}, onREST, true},
		"a pattern":               {[]string{"--allowed-stores=*.example.com,*.example.com:9000"}, inS3, true},
		"another host":            {[]string{"--allowed-stores=*.example.org"}, onREST, false},
	} {
		a, b := allow(t, test.args...), complete("shop")
		b.Spec.Image, b.Spec.Destination = "", test.destination
		got := a.refusalOf(b, nil)
		if allowed := got == nil; allowed != test.allowed || !allowed && got.reason != databasesv1.ReasonStoreNotAllowed {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestListsThatAreRefused(t *testing.T) {
	for arg, want := range map[string]string{
		"--allowed-images=a,,b":      "empty element",
		"--allowed-images=":          "empty element",
		"--allowed-images=[":         "syntax error in pattern",
		"--allowed-services=db":      `"db" is not NAMESPACE/SERVICE`,
		"--allowed-services=a/b/c":   "is not NAMESPACE/SERVICE",
		"--allowed-services=shop/[a": "syntax error in pattern",
	} {
		var a Allowed
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		a.Bind(flags)
		if err := flags.Parse([]string{arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// restrict starts the operator again with other options.
func (b *fixture) restrict(args ...string) {
	b.t.Helper()
	b.operator.Allowed = allow(b.t, args...)
	b.restorer.Allowed = b.operator.Allowed
}

// An image of a user's choice would get the password, and could send it anywhere.
func TestAnImageThatIsNotAllowedGetsNoJob(t *testing.T) {
	b := newFixture(t, func(backup *databasesv1.DatabaseBackup) {
		backup.Spec.Image, backup.Spec.Immediate = "evil.com/copy:1", true
	})
	b.restrict()
	b.at(0, 0)
	b.reconcile()
	b.is("Ready: False ImageNotAllowed", "TargetReady: True TargetReady")
	b.mentions("Ready", "spec.image evil.com/copy:1 is not allowed", "--allowed-images", "example.com/pgbackup:v1")
	if events := b.recorded(); len(events) != 1 || !strings.Contains(events[0], "ImageNotAllowed") {
		t.Error(events)
	}
	if jobs := b.jobs(); len(jobs) > 0 {
		t.Error(jobs)
	}
	b.edit(func(backup *databasesv1.DatabaseBackup) { backup.Spec.Image = "" })
	b.reconcile()
	b.is("Ready: True Scheduled")
	job := b.job(b.backup().Status.ActiveJob)
	if image := job.Spec.Template.Spec.Containers[0].Image; image != "example.com/pgbackup:v1" {
		t.Error(image)
	}
}

// The image may change after the status has named the Job, and before the Job is created.
func TestAJobThatIsNotAllowedAnyMoreIsNotCreated(t *testing.T) {
	b := newFixture(t)
	b.at(0, 0)
	b.crashAt = 0
	_, _ = b.operator.Reconcile(t.Context(), b.request())
	b.crashAt, b.writes = -1, nil
	if b.backup().Status.ActiveJob == "" {
		t.Fatal("status names no Job")
	}
	b.edit(func(backup *databasesv1.DatabaseBackup) { backup.Spec.Image = "evil.com/copy:1" })
	b.reconcile()
	b.is("Ready: False ImageNotAllowed")
	if jobs := b.jobs(); len(jobs) > 0 {
		t.Error(jobs)
	}
}

// A restore waits for ten minutes, as for a missing target.
func TestARestoreThatIsNotAllowed(t *testing.T) {
	for name, test := range map[string]struct {
		image string
		args  []string
		want  string
	}{
		"its image":   {"evil.com/copy:1", nil, "ImageNotAllowed: spec.image evil.com/copy:1 is not allowed"},
		"its Service": {"", []string{"--allowed-services=*/other"}, "ServiceNotAllowed: Service db-rw is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, func(backup *databasesv1.DatabaseBackup) { backup.Spec.Image = test.image })
			b.restrict(test.args...)
			b.ask()
			b.follow()
			b.want("Unknown " + test.want)
			b.clock.SetTime(b.restore().CreationTimestamp.Add(waitLimit))
			b.follow()
			b.want("False " + test.want)
			b.restrict("--allowed-images=*")
			b.follow()
			b.want("False " + test.want)
		})
	}
}

func TestADeletionWithAnImageThatIsNotAllowed(t *testing.T) {
	b := newFixture(t, deleteFiles, func(backup *databasesv1.DatabaseBackup) { backup.Spec.Image = "evil.com/copy:1" })
	b.restrict()
	b.reconcile()
	b.removed()
	b.is("Ready: False ImageNotAllowed")
	b.mentions("Ready", "spec.deletionPolicy to Retain")
	b.edit(func(backup *databasesv1.DatabaseBackup) { backup.Spec.Image = "" })
	b.reconcile()
	b.is("Ready: False Deleting")
	b.must(b.Delete(t.Context(), b.job("orders-delete"), client.PropagationPolicy("Background")))
}
