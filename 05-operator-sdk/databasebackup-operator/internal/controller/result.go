package controller

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// A result is what a verb of pgbackup writes into the termination message of its container: the part that the operator
// uses. Its texts are sentences of pgbackup; what tools and servers say is only in the log of the pod.
type result struct {
	Verb      string                `json:"verb"`
	Succeeded bool                  `json:"succeeded"`
	Reason    string                `json:"reason"`
	Message   string                `json:"message"`
	Warning   string                `json:"warning"`
	Backup    *facts                `json:"backup"`
	Restored  *databasesv1.Restored `json:"restored"`
	// Backups are the newest backups in the repository, as many as a termination message can hold.
	Backups []listed `json:"backups"`
}

// facts are the facts of one backup.
type facts struct {
	Name          string        `json:"name"`
	Snapshot      string        `json:"snapshot"`
	Size          int64         `json:"size"`
	Stored        int64         `json:"stored"`
	Started       time.Time     `json:"started"`
	Completed     time.Time     `json:"completed"`
	ServerVersion string        `json:"serverVersion"`
	Verified      *verification `json:"verified"`
}

// verification is a verification that passed.
type verification struct {
	Mode databasesv1.VerificationMode `json:"mode"`
	Time time.Time                    `json:"time"`
}

// listed is a backup in the list of a repository.
type listed struct {
	Name      string                       `json:"name"`
	Snapshot  string                       `json:"snapshot"`
	Completed time.Time                    `json:"completed"`
	Size      int64                        `json:"size"`
	Verified  databasesv1.VerificationMode `json:"verified"`
	Path      string                       `json:"path"`
}

// parseResult reads a termination message. It returns nil when pgbackup did not write the message.
func parseResult(message string) *result {
	r := &result{}
	if err := json.Unmarshal([]byte(message), r); err != nil || r.Verb == "" || r.Reason == "" {
		return nil
	}
	return r
}

// addBackup adds the backup of a run to a list.
func addBackup(backups []databasesv1.Backup, f *facts) []databasesv1.Backup {
	b := databasesv1.Backup{
		Name: f.Name, Snapshot: f.Snapshot, Size: f.Size, Stored: f.Stored, ServerVersion: f.ServerVersion,
		StartTime: metaTime(f.Started), CompletionTime: metaTime(f.Completed), Verified: databasesv1.VerifyNone,
	}
	if f.Verified != nil {
		b.Verified, b.VerifiedTime = f.Verified.Mode, metaTime(f.Verified.Time)
	}
	all := slices.DeleteFunc(slices.Clone(backups), func(x databasesv1.Backup) bool { return x.Name == b.Name })
	return newest(append(all, b))
}

// mergeList returns a list of backups as finish found it in the repository.
func mergeList(backups []databasesv1.Backup, r *result) []databasesv1.Backup {
	known := map[string]databasesv1.Backup{}
	for _, b := range backups {
		known[b.Name] = b
	}
	var all []databasesv1.Backup
	for _, l := range r.Backups {
		b := known[l.Name]
		b.Name, b.Snapshot, b.Size, b.Path = l.Name, l.Snapshot, l.Size, strings.TrimPrefix(l.Path, volumeRoot)
		if b.CompletionTime == nil {
			b.CompletionTime = metaTime(l.Completed)
		}
		b.Verified = cmp.Or(l.Verified, b.Verified, databasesv1.VerifyNone)
		if !slices.ContainsFunc(all, func(x databasesv1.Backup) bool { return x.Name == b.Name }) {
			all = append(all, b)
		}
	}
	return newest(all)
}

// newest returns the newest of some backups, the newest first. Backups without a time come last.
func newest(all []databasesv1.Backup) []databasesv1.Backup {
	slices.SortFunc(all, func(a, b databasesv1.Backup) int {
		return cmp.Or(takenAt(b).Compare(takenAt(a)), strings.Compare(b.Name, a.Name))
	})
	return all[:min(len(all), databasesv1.MaxBackups)]
}

// takenAt is when a backup was complete, zero when that is not known.
func takenAt(b databasesv1.Backup) time.Time { return timeOf(b.CompletionTime) }

func timeOf(t *metav1.Time) time.Time {
	return ptr.Deref(t, metav1.Time{}).Time
}

// metaTime is a time as status has it: whole seconds, nil for none.
func metaTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}
