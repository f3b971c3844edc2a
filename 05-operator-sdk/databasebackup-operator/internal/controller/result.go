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

// A result is what pgbackup writes into the pod's termination message: the part that the operator uses.
type result struct {
	Verb      string                `json:"verb"`
	Succeeded bool                  `json:"succeeded"`
	Reason    string                `json:"reason"`
	Message   string                `json:"message"`
	Warning   string                `json:"warning"`
	Backup    *facts                `json:"backup"`
	Restored  *databasesv1.Restored `json:"restored"`
	// Backups are the backups on the volume: only Name and State are set.
	Backups []databasesv1.Backup `json:"backups"`
	Removed []string             `json:"removed"`
	Omitted int                  `json:"omitted"`
}

// facts are the facts of one backup.
type facts struct {
	Name          string        `json:"name"`
	State         string        `json:"state"`
	Path          string        `json:"path"`
	Size          int64         `json:"size"`
	SHA256        string        `json:"sha256"`
	Started       time.Time     `json:"started"`
	Completed     time.Time     `json:"completed"`
	ServerVersion string        `json:"serverVersion"`
	Verified      *verification `json:"verified"`
	Failure       *verification `json:"failure"`
}

// unverifiable is the state of a backup that could not be verified, without evidence against the dump.
const unverifiable = "Unverifiable"

// verification is the result of a verification, which passed if the reason is empty.
type verification struct {
	Mode    databasesv1.VerificationMode `json:"mode"`
	Time    time.Time                    `json:"time"`
	Reason  string                       `json:"reason"`
	Message string                       `json:"message"`
}

// parseResult reads a termination message. It returns nil when pgbackup did not write the message.
func parseResult(message string) *result {
	r := &result{}
	if err := json.Unmarshal([]byte(message), r); err != nil || r.Verb == "" || r.Reason == "" {
		return nil
	}
	return r
}

// mergeBackups returns the list of backups after a run: with the facts of the new backup, and without removed backups.
// The run's list has a limited length; backups that it leaves out stay as they were. Without a list all stay: the run
// did not read the volume.
func mergeBackups(backups []databasesv1.Backup, r *result) []databasesv1.Backup {
	all := slices.Clone(backups)
	if r.Backup != nil {
		all = slices.DeleteFunc(all, func(b databasesv1.Backup) bool { return b.Name == r.Backup.Name })
		all = append(all, backupOf(r.Backup))
	}
	states := map[string]string{}
	for _, l := range r.Backups {
		states[l.Name] = l.State
		if !slices.ContainsFunc(all, func(b databasesv1.Backup) bool { return b.Name == l.Name }) {
			all = append(all, databasesv1.Backup{Name: l.Name}) // the file was put there by hand, or status was lost
		}
	}
	complete := r.Backups != nil && r.Omitted == 0
	all = slices.DeleteFunc(all, func(b databasesv1.Backup) bool {
		return slices.Contains(r.Removed, b.Name) || complete && states[b.Name] == ""
	})
	for i, b := range all {
		all[i].State = cmp.Or(states[b.Name], b.State)
	}
	slices.SortStableFunc(all, newer)
	return all[:min(len(all), databasesv1.MaxBackups)]
}

// newer orders backups, the newest first. Backups without a time come last.
func newer(a, b databasesv1.Backup) int {
	return cmp.Or(takenAt(b).Compare(takenAt(a)), strings.Compare(b.Name, a.Name))
}

// takenAt is when a backup was complete. Where only the name of the backup is known, it is the minute in the name, zero
// without a minute.
func takenAt(b databasesv1.Backup) time.Time {
	if b.CompletionTime != nil {
		return b.CompletionTime.Time
	}
	return slotOf(b.Name[:max(strings.LastIndexByte(b.Name, '-'), 0)], b.Name)
}

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

func backupOf(f *facts) databasesv1.Backup {
	b := databasesv1.Backup{
		Name: f.Name, State: f.State, Path: strings.TrimPrefix(f.Path, volumeRoot), Size: f.Size, SHA256: f.SHA256,
		StartTime: metaTime(f.Started), CompletionTime: metaTime(f.Completed), ServerVersion: f.ServerVersion,
		Verified: databasesv1.VerifyNone,
	}
	if f.Verified != nil {
		b.Verified, b.VerifiedTime = f.Verified.Mode, metaTime(f.Verified.Time)
	}
	return b
}
