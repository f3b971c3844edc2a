package controller

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

type tree = map[string]any

// with returns the smallest spec, with other fields; nil removes a field.
func with(change tree) tree {
	spec := tree{"databaseName": "example-db", "schedule": "*/5 * * * *", "backupPath": "/backups/example-db"}
	maps.Copy(spec, change)
	maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
	return spec
}

func one(field string, value any) tree { return with(tree{field: value}) }

// secretKey is a reference to a key.
var secretKey = tree{"name": "s", "key": "k"}

const (
	endpointRule = "spec.destination.s3.endpoint: Invalid value: must be https:// or http://, a host and perhaps a port"
	prefixRule   = "spec.destination.s3.prefix: Invalid value: must be parts of letters, digits, '.', '_' and '-'"
	urlRule      = "spec.destination.rest.url: Invalid value: must be https:// or http://, a host, perhaps a port and a path"
)

// inS3 returns the smallest spec with a bucket, with other fields; nil removes a field.
func inS3(change tree) tree {
	s3 := tree{"endpoint": "https://s3.example.com", "bucket": "company", "credentialsSecretRef": tree{"name": "s"}}
	maps.Copy(s3, change)
	maps.DeleteFunc(s3, func(_ string, value any) bool { return value == nil })
	return one("destination", tree{"s3": s3})
}

func restAt(url string) tree { return tree{"url": url} }

func inREST(url string) tree { return one("destination", tree{"rest": restAt(url)}) }

// A rule accepts or refuses. says is the API server's message with the field, empty when the object is accepted.
type rule struct {
	spec tree
	says string
}

var backupRules = map[string]rule{
	"the original's three fields": {with(nil), ""},
	"quotes and spaces":           {one("databaseName", `o'brien "x" $(rm -rf /); --`), ""},
	"a database of 63 bytes":      {one("databaseName", strings.Repeat("a", 63)), ""},
	"a database of 64 bytes": {
		one("databaseName", strings.Repeat("é", 32)), "spec.databaseName: Invalid value: must have at most 63 bytes"},
	"a line break in a database": {
		one("databaseName", "a\nb"), "spec.databaseName: Invalid value: must not contain control characters"},
	"a NUL in a database": {
		one("databaseName", "a\x00b"), "spec.databaseName: Invalid value: must not contain control characters"},

	"ranges and names": {one("schedule", "0,30 6-18/2 1-7 JAN,JUL mon-fri"), ""},
	"two blanks":       {one("schedule", "0  3 * *   *"), ""},
	"@daily":           {one("schedule", "@daily"), ""},
	"@every":           {one("schedule", "@every 5m"), "spec.schedule: Invalid value: must be five fields of cron"},
	"four fields":      {one("schedule", "0 3 * *"), "spec.schedule: Invalid value: must be five fields of cron"},
	"six fields":       {one("schedule", "0 0 3 * * *"), "spec.schedule: Invalid value: must be five fields of cron"},
	"a zone in the schedule": {one("schedule", "TZ=Europe/Berlin 0 3 * * *"),
		"spec.schedule: Invalid value: must not contain TZ= or CRON_TZ=: name the zone in spec.timeZone"},
	"what panics a parser":  {one("schedule", "TZ=0"), "spec.schedule: Invalid value: must not contain TZ="},
	"a zone of four fields": {one("schedule", "TZ=UTC 3 * * *"), "spec.schedule: Invalid value: must not contain TZ="},

	"the root of the volume": {one("backupPath", "/"), ""},
	"dots in a name":         {one("backupPath", "/a..b/..c/d.."), ""},
	"a relative path":        {one("backupPath", "backups"), "spec.backupPath: Invalid value: must be an absolute path"},
	"a way out": {one("backupPath", "/a/../../etc"),
		"spec.backupPath: Invalid value: must not contain the part '..'"},
	"a way out at the end": {one("backupPath", "/a/.."),
		"spec.backupPath: Invalid value: must not contain the part '..'"},
	"a tab in a path": {one("backupPath", "/a\tb"),
		"spec.backupPath: Invalid value: must not contain control characters"},

	"a target": {
		one("targetRef", tree{"name": "orders", "serviceName": "orders-rw", "port": int64(6432)}), ""},
	"a host elsewhere": {one("targetRef", tree{"name": "a", "serviceName": "evil.example.com"}),
		"spec.targetRef.serviceName: Invalid value: must be the name of a Service"},
	"a folder for a Service": {one("targetRef", tree{"name": "a", "serviceName": "/tmp"}),
		"spec.targetRef.serviceName: Invalid value: must be the name of a Service"},
	"a host for a StatefulSet": {one("targetRef", tree{"name": "evil.example.com,x"}),
		"spec.targetRef.name: Invalid value: must be the name of a StatefulSet"},
	"TLS": {one("targetRef", tree{"name": "a", "tls": tree{"mode": "require"}}), ""},
	"TLS with an authority": {
		one("targetRef", tree{"name": "a", "tls": tree{"mode": "verify-full", "ca": tree{"secretKeyRef": secretKey}}}), ""},
	"TLS without an authority": {one("targetRef", tree{"name": "a", "tls": tree{"mode": "verify-full"}}),
		"spec.targetRef.tls.ca: Invalid value: is required in the modes verify-ca and verify-full"},
	"an unused authority": {
		one("targetRef", tree{"name": "a", "tls": tree{"mode": "require", "ca": tree{"configMapKeyRef": secretKey}}}),
		"spec.targetRef.tls.ca: Invalid value: is required in the modes verify-ca and verify-full, and in no other"},
	"an authority in two": {one("targetRef", tree{
		"name": "a", "tls": tree{"mode": "verify-ca", "ca": tree{"configMapKeyRef": secretKey, "secretKeyRef": secretKey}}}),
		"spec.targetRef.tls.ca: Invalid value: must have exactly one"},
	"an authority in none": {one("targetRef", tree{"name": "a", "tls": tree{"mode": "verify-ca", "ca": tree{}}}),
		"spec.targetRef.tls.ca: Invalid value: must have exactly one"},
	"half of the credentials": {one("auth", tree{"usernameSecretRef": secretKey}), ""},
	"no destination in it": {one("destination", tree{}),
		"spec.destination: Invalid value: must have exactly one of persistentVolumeClaim, s3 and rest"},
	"two destinations": {
		one("destination", tree{"persistentVolumeClaim": tree{"claimName": "a"}, "rest": restAt("https://a")}),
		"spec.destination: Invalid value: must have exactly one of persistentVolumeClaim, s3 and rest"},
	"S3": {inS3(nil), ""},
	"S3 with all fields": {inS3(tree{"endpoint": "https://minio.storage.svc:9000", "prefix": "backups/a..b/orders",
		"region": "eu-central-1", "caSecretRef": secretKey}), ""},
	"S3 by an address":     {inS3(tree{"endpoint": "http://[fd00::1]:9000"}), ""},
	"S3 without a scheme":  {inS3(tree{"endpoint": "s3.example.com"}), endpointRule},
	"S3 with a password":   {inS3(tree{"endpoint": "https://me:secret@s3.example.com"}), endpointRule},
	"S3 with a path":       {inS3(tree{"endpoint": "https://s3.example.com/company"}), endpointRule},
	"S3 with a query":      {inS3(tree{"endpoint": "https://s3.example.com?x=y"}), endpointRule},
	"S3 of another scheme": {inS3(tree{"endpoint": "file:///etc"}), endpointRule},
	"a bucket with a slash": {inS3(tree{"bucket": "company/orders"}),
		"spec.destination.s3.bucket: Invalid value: must be a name of a bucket: 3 to 63 lower-case letters"},
	"a bucket in upper case": {inS3(tree{"bucket": "Company"}),
		"spec.destination.s3.bucket: Invalid value: must be a name of a bucket"},
	"a bucket of two letters": {inS3(tree{"bucket": "ab"}),
		"spec.destination.s3.bucket: Invalid value: must be a name of a bucket"},
	"a prefix that leads out": {inS3(tree{"prefix": "a/../../other"}), prefixRule},
	"an absolute prefix":      {inS3(tree{"prefix": "/a"}), prefixRule},
	"a prefix with a slash":   {inS3(tree{"prefix": "a/"}), prefixRule},
	"a region": {inS3(tree{"region": "eu central"}),
		"spec.destination.s3.region: Invalid value: must be the name of a region"},
	"an authority without TLS, S3": {inS3(tree{"endpoint": "http://s3.example.com", "caSecretRef": secretKey}),
		"spec.destination.s3.caSecretRef: Invalid value: needs an endpoint that begins with https://"},
	"S3 without credentials": {inS3(tree{"credentialsSecretRef": nil}),
		"spec.destination.s3.credentialsSecretRef: Required value"},
	"REST":                     {inREST("https://backups.example.com:8000/orders/"), ""},
	"REST without a path":      {inREST("http://backups"), ""},
	"REST with a password":     {inREST("https://me:secret@backups.example.com/orders"), urlRule},
	"REST that leads out":      {inREST("https://backups.example.com/a/../b"), urlRule},
	"REST with a line break":   {inREST("https://backups.example.com/a\nb"), urlRule},
	"REST of another scheme":   {inREST("s3:https://backups.example.com"), urlRule},
	"REST with two slashes":    {inREST("https://backups.example.com//orders"), urlRule},
	"REST with a port of text": {inREST("https://backups.example.com:http/"), urlRule},
	"an authority without TLS, REST": {
		one("destination", tree{"rest": tree{"url": "http://backups", "caSecretRef": secretKey}}),
		"spec.destination.rest.caSecretRef: Invalid value: needs a url that begins with https://"},
	"a password of the user's": {one("encryption", tree{"passwordSecretRef": secretKey}), ""},
	"encryption without a password": {one("encryption", tree{}),
		"spec.encryption.passwordSecretRef: Required value"},
	"a zone":              {one("timeZone", "America/Argentina/Buenos_Aires"), ""},
	"a zone with a sign":  {one("timeZone", "Etc/GMT+12"), ""},
	"the zone of the pod": {one("timeZone", "Local"), "spec.timeZone: Invalid value: must not be Local"},
	"a file for a zone": {one("timeZone", "../etc/localtime"),
		"spec.timeZone: Invalid value: must be a name of the IANA database"},
	"keep nothing": {
		one("retention", tree{"keepLast": int64(0)}), "spec.retention: Invalid value: must keep something"},
	"keep days only":      {one("retention", tree{"keepLast": int64(0), "keepDaily": int64(3)}), ""},
	"verify by restoring": {one("verification", tree{"mode": "Restore", "query": "SELECT 1"}), ""},
	"a query without a server": {one("verification", tree{"query": "SELECT 1"}),
		"spec.verification.query: Invalid value: needs mode Restore"},
	"a command of psql": {one("verification", tree{"mode": "Restore", "query": ` \! rm -rf /`}),
		"spec.verification.query: Invalid value: must not begin with a backslash"},
}

// elsewhere returns a DatabaseRestore from a repository, with other fields; nil removes a field.
func elsewhere(change tree) tree {
	spec := tree{"snapshot": "1a2b3c4d", "targetRef": tree{"name": "orders"},
		"repository": tree{"destination": tree{"rest": restAt("https://backups.example.com")},
			"encryption": tree{"passwordSecretRef": secretKey}},
		"auth": tree{"usernameSecretRef": secretKey, "passwordSecretRef": secretKey}}
	maps.Copy(spec, change)
	maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
	return spec
}

// onVolume returns a DatabaseRestore from a repository on a volume.
func onVolume(path any) tree {
	repository := tree{"destination": tree{"persistentVolumeClaim": tree{"claimName": "a"}},
		"encryption": tree{"passwordSecretRef": secretKey}, "backupPath": path}
	maps.DeleteFunc(repository, func(_ string, value any) bool { return value == nil })
	return elsewhere(tree{"repository": repository})
}

// restoring returns the smallest DatabaseRestore, with one other field.
func restoring(field string, value any) tree {
	spec := tree{"databaseBackupName": "orders", "backupName": "orders-29012345", field: value}
	maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
	return spec
}

var restoreRules = map[string]rule{
	"two names":                    {restoring("backoffLimit", int64(1)), ""},
	"a repository":                 {elsewhere(nil), ""},
	"the id of a snapshot in full": {elsewhere(tree{"snapshot": strings.Repeat("0f", 32)}), ""},
	"a repository on a volume":     {onVolume("/backups"), ""},
	"a repository on a volume without a path": {onVolume(nil),
		"spec.repository.backupPath: Invalid value: goes with destination.persistentVolumeClaim"},
	"a repository at a relative path": {onVolume("backups"),
		"spec.repository.backupPath: Invalid value: must be an absolute path without the part '..'"},
	"a repository on a server, with a path": {elsewhere(tree{"repository": tree{"backupPath": "/a",
		"destination": tree{"rest": restAt("https://a")}, "encryption": tree{"passwordSecretRef": secretKey}}}),
		"spec.repository.backupPath: Invalid value: goes with destination.persistentVolumeClaim"},
	"a repository without a password": {
		elsewhere(tree{"repository": tree{"destination": tree{"rest": restAt("https://a")}}}),
		"spec.repository.encryption: Required value"},
	"neither": {tree{}, "spec: Invalid value: must have exactly one of databaseBackupName and repository"},
	"both": {elsewhere(tree{"databaseBackupName": "orders", "backupName": "orders-1"}),
		"spec: Invalid value: must have exactly one of databaseBackupName and repository"},
	"a DatabaseBackup without a backup": {restoring("backupName", nil),
		"spec.backupName: Invalid value: goes with databaseBackupName"},
	"a snapshot without a repository": {restoring("snapshot", "1a2b3c4d"),
		"spec.snapshot: Invalid value: goes with repository"},
	"a repository without a snapshot": {elsewhere(tree{"snapshot": nil}),
		"spec.snapshot: Invalid value: goes with repository"},
	"the newest snapshot": {elsewhere(tree{"snapshot": "latest-1"}),
		"spec.snapshot: Invalid value: must be the id of a snapshot"},
	"a repository without a server": {elsewhere(tree{"targetRef": nil}),
		"spec.targetRef: Invalid value: is required with repository"},
	"a repository without credentials of the server": {elsewhere(tree{"auth": nil}),
		"spec.auth: Invalid value: is required with repository"},
	"a file for a backup": {
		restoring("backupName", "../x"), "spec.backupName: Invalid value: must be a name from status.backups"},
	"another database": {restoring("databaseName", `o'brien "x"`), ""},
	"a database of 64 bytes": {
		restoring("databaseName", strings.Repeat("é", 32)), "spec.databaseName: Invalid value: must have at most 63 bytes"},
	"a database that the server needs": {restoring("databaseName", "template1"),
		"spec.databaseName: Invalid value: must not be postgres, template0 or template1"},
	"a line break": {
		restoring("databaseName", "a\nb"), "spec.databaseName: Invalid value: must not contain control characters"},
	"half of the credentials": {restoring("auth", tree{"usernameSecretRef": secretKey}),
		"spec.auth: Invalid value: must have usernameSecretRef and passwordSecretRef"},
	"credentials": {
		restoring("auth", tree{"usernameSecretRef": secretKey, "passwordSecretRef": secretKey}), ""},
	"a target without a name": {restoring("targetRef", tree{"port": int64(1)}), "spec.targetRef.name: Required value"},
}

func object(kind, namespace, name string, spec tree) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: tree{"spec": spec}}
	u.SetGroupVersionKind(databasesv1.GroupVersion.WithKind(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// quoted is the value in a refusal, which adds no information.
var quoted = regexp.MustCompile(`Invalid value: "(?:[^"\\]|\\.)*": `)

func without(text string) string { return quoted.ReplaceAllString(text, "Invalid value: ") }

func TestWhatTheSchemaTakes(t *testing.T) {
	c, namespace := newClient(t)
	taken, refused := 0, 0
	for kind, rules := range map[string]map[string]rule{"DatabaseBackup": backupRules, "DatabaseRestore": restoreRules} {
		for name, test := range rules {
			err := c.Create(t.Context(), object(kind, namespace, "site", test.spec), client.DryRunAll)
			switch {
			case test.says == "" && err != nil:
				t.Errorf("%s, %s: refused: %v", kind, name, err)
			case test.says == "":
				taken++
			case !apierrors.IsInvalid(err) || !strings.Contains(without(err.Error()), without(test.says)):
				t.Errorf("%s, %s: got %v, want %q", kind, name, err, test.says)
			default:
				refused++
			}
		}
	}
	t.Logf("%d taken, %d refused with field and sentence", taken, refused)
}

func TestNamesLeaveRoomForJobs(t *testing.T) {
	c, namespace := newClient(t)
	for name, taken := range map[string]bool{
		"a": true, "1st": true, strings.Repeat("a", 52): true,
		strings.Repeat("a", 53): false, "a.b": false,
	} {
		for kind, spec := range map[string]tree{
			"DatabaseBackup": with(nil), "DatabaseRestore": restoring("backoffLimit", int64(1))} {
			err := c.Create(t.Context(), object(kind, namespace, name, spec), client.DryRunAll)
			if (err == nil) != taken || err != nil &&
				!strings.Contains(without(err.Error()), "metadata: Invalid value: metadata.name must have at most 52 characters") {
				t.Errorf("%s %s: %v", kind, name, err)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	c, namespace := newClient(t)
	u := object("DatabaseBackup", namespace, "site", with(tree{"targetRef": tree{"name": "orders"}}))
	must(t, c.Create(t.Context(), u))
	want := with(tree{
		"engine": "PostgreSQL", "timeZone": "UTC", "concurrencyPolicy": "Forbid", "deletionPolicy": "Retain",
		"targetRef": tree{"name": "orders", "port": int64(5432), "tls": tree{"mode": "prefer"}},
		"retention": tree{"keepLast": int64(7), "keepDaily": int64(0), "keepWeekly": int64(0), "keepMonthly": int64(0),
			"keepWithinDays": int64(0), "maxAgeDays": int64(0)},
		"verification": tree{"mode": "Archive"},
		"backoffLimit": int64(2), "activeDeadlineSeconds": int64(3600),
		"successfulJobsHistoryLimit": int64(3), "failedJobsHistoryLimit": int64(1),
		"resources": tree{"requests": tree{"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "1Gi"},
			"limits": tree{"memory": "1Gi", "ephemeral-storage": "10Gi"}},
	})
	if diff := cmp.Diff(want, u.Object["spec"]); diff != "" {
		t.Error(diff)
	}
}

func TestARestoreNeverChanges(t *testing.T) {
	c, namespace := newClient(t)
	u := object("DatabaseRestore", namespace, "monday", restoring("backoffLimit", int64(1)))
	must(t, c.Create(t.Context(), u))
	for field, value := range map[string]any{
		"backoffLimit": int64(2), "backupName": "orders-1", "databaseName": "other", "targetRef": tree{"name": "other"}} {
		changed := u.DeepCopy()
		changed.Object["spec"].(tree)[field] = value
		err := c.Update(t.Context(), changed)
		if !apierrors.IsInvalid(err) ||
			!strings.Contains(without(err.Error()), "spec: Invalid value: is immutable: make another DatabaseRestore") {
			t.Errorf("%s: %v", field, err)
		}
	}
	u.SetLabels(map[string]string{"who": "me"})
	if err := c.Update(t.Context(), u); err != nil {
		t.Error("a label:", err)
	}
}

// The place of the backups never changes: the operator would forget the backups at the old place. The sample of the
// original operator, which names no destination, may get a destination.
func TestWhereTheFilesAreNeverChanges(t *testing.T) {
	c, namespace := newClient(t)
	claim := func(name string) tree { return tree{"persistentVolumeClaim": tree{"claimName": name}} }
	u := object("DatabaseBackup", namespace, "site", with(nil))
	must(t, c.Create(t.Context(), u))
	u.Object["spec"].(tree)["destination"] = claim("a")
	if err := c.Update(t.Context(), u); err != nil {
		t.Fatal("a first destination:", err)
	}
	for name, test := range map[string]struct {
		field string
		value any
	}{
		"another database": {"databaseName", "other"}, "another path": {"backupPath", "/other"},
		"another claim": {"destination", claim("b")},
		"another kind":  {"destination", tree{"rest": restAt("https://a")}}, "no destination": {"destination", nil},
	} {
		changed := u.DeepCopy()
		if changed.Object["spec"].(tree)[test.field] = test.value; test.value == nil {
			delete(changed.Object["spec"].(tree), test.field)
		}
		err := c.Update(t.Context(), changed)
		if !apierrors.IsInvalid(err) ||
			!strings.Contains(without(err.Error()), "spec."+test.field+": Invalid value: is immutable") {
			t.Errorf("%s: %v", name, err)
		}
	}
	u.Object["spec"].(tree)["schedule"] = "@daily"
	if err := c.Update(t.Context(), u); err != nil {
		t.Error("a schedule:", err)
	}
}

func TestTheSamplesApply(t *testing.T) {
	c, namespace := newClient(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "databases_*.yaml"))
	if err != nil || len(files) != 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &u.Object); err != nil {
			t.Fatal(file, err)
		}
		u.SetNamespace(namespace)
		if err := client.WithFieldValidation(c, "Strict").Create(t.Context(), u); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if bytes.Contains(data, []byte("created-by: my-operator")) != (u.GetName() == "databasebackup-sample") {
			t.Errorf("%s: the original sample was changed", file)
		}
	}
}
