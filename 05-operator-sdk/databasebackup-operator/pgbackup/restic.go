package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Exit codes of restic.
const (
	resticNoRepository  = 10
	resticLocked        = 11
	resticWrongPassword = 12
)

// The tags of a snapshot. Values are escaped, because restic splits tags at commas.
const (
	tagDump     = "dump" // the snapshot is the dump of a run
	tagOwner    = "uid="
	tagName     = "name="
	tagDatabase = "database="
	tagVersion  = "version="
	tagVerified = "verified="

	tagSuperusers = "owners-are-superusers"
)

// snapshot is a snapshot as restic prints it.
type snapshot struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Tags    []string  `json:"tags"`
	Summary struct {
		Started   time.Time `json:"backup_start"`
		Completed time.Time `json:"backup_end"`
		Stored    int64     `json:"data_added_packed"`
		Size      int64     `json:"total_bytes_processed"`
	} `json:"summary"`
}

// tag returns the value of a tag, or the empty text.
func (s snapshot) tag(key string) string {
	for _, tag := range s.Tags {
		if value, ok := strings.CutPrefix(tag, key); ok {
			text, _ := url.QueryUnescape(value)
			return text
		}
	}
	return ""
}

func (s snapshot) name() string { return s.tag(tagName) }

// backup is the snapshot of a dump, and what belongs to it.
type backup struct {
	snapshot
	verified Mode
	all      []string // the ids of its snapshots: the dump, and the mark of a verification
}

// facts are the facts of a snapshot in a result.
func (s snapshot) facts() *Backup {
	return &Backup{Name: s.name(), Snapshot: s.ID[:8], Database: s.tag(tagDatabase), Size: s.Summary.Size,
		Stored: s.Summary.Stored, Started: s.Summary.Started.UTC().Truncate(time.Millisecond),
		Completed: s.Summary.Completed.UTC().Truncate(time.Millisecond), ServerVersion: s.tag(tagVersion)}
}

// resticTool is a call of restic. The password is in a file, and the keys of a store are in variables.
func (p *program) resticTool(args ...string) tool {
	env := p.environment("RESTIC_REPOSITORY="+p.config.Repository, "TZ="+p.config.Location.String())
	env = append(env, p.variables("RESTIC_PASSWORD_FILE", "RESTIC_CACERT", "RESTIC_REST_USERNAME", "RESTIC_REST_PASSWORD",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")...)
	lock := "--retry-lock=" + max(0, p.config.wait()-time.Since(p.result.Started)).String()
	if p.config.Verb == verbRestore { // the volume may be read only, and so may the credentials of a store
		lock = "--no-lock"
	}
	return tool{name: "restic", args: append([]string{"--json", "--no-cache", lock}, args...), env: env}
}

// restic runs restic and returns what it prints.
func (p *program) restic(ctx context.Context, args ...string) (string, error) {
	var out strings.Builder
	t := p.resticTool(args...)
	t.stdout = &out
	err := p.run(ctx, t)
	return out.String(), err
}

// openRepository checks that the repository can be opened, and makes it where there is none, if the caller allows that. It
// removes the locks of runs that are gone: restic knows them by their host and process, or by their age.
func (p *program) openRepository(ctx context.Context, create bool) error {
	if err := p.probe(ctx); err != nil {
		return err
	}
	open := []string{"unlock"}
	if p.config.Verb == verbRestore {
		open = []string{"cat", "config"}
	}
	_, err := p.restic(ctx, open...)
	if code(err) == 1 { // the store may refuse to delete a lock
		_, err = p.restic(ctx, "cat", "config")
	}
	if code(err) == resticNoRepository && create {
		_, initErr := p.restic(ctx, "init")
		if err = initErr; err != nil { // another run may have made it
			_, err = p.restic(ctx, "cat", "config")
		}
		if code(err) == resticNoRepository {
			err = initErr
		}
	}
	return p.repositoryFault(ctx, err, p.cannotRead())
}

// cannotRead is the reason why restic cannot read a repository that is there.
func (p *program) cannotRead() Reason {
	if remote(p.config.Repository) {
		return ReasonRepositoryRefused
	}
	return ReasonRepositoryDamaged
}

// repositoryFault gives a failure of restic its reason: by its exit code, then by a look at the store, then the reason
// of the caller.
func (p *program) repositoryFault(ctx context.Context, err error, otherwise Reason) error {
	switch code(err) {
	case 0:
		return err
	case resticNoRepository:
		return because(err, ReasonRepositoryMissing)
	case resticLocked:
		return because(err, ReasonRepositoryLocked)
	case resticWrongPassword:
		return because(err, ReasonRepositoryPasswordWrong)
	}
	if err := p.probe(ctx); err != nil {
		return err
	}
	return because(err, otherwise)
}

// snapshots returns the snapshots that have all of the tags, the newest first.
func (p *program) snapshots(ctx context.Context, tags ...string) (found []snapshot, err error) {
	out, err := p.restic(ctx, "snapshots", "--tag="+strings.Join(tags, ","))
	if err != nil {
		return nil, p.repositoryFault(ctx, err, p.cannotRead())
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return nil, fmt.Errorf("read the list of snapshots: %w", err)
	}
	slices.SortStableFunc(found, func(a, b snapshot) int { return b.Time.Compare(a.Time) })
	return found, nil
}

// backups returns the backups of the owner, the newest first.
func (p *program) backups(ctx context.Context) (found []backup, err error) {
	all, err := p.snapshots(ctx, tagOwner+p.config.Owner)
	ids, modes, taken := map[string][]string{}, map[string]Mode{}, map[string]bool{}
	for _, s := range all {
		ids[s.name()] = append(ids[s.name()], s.ID)
		if mode := Mode(s.tag(tagVerified)); mode != "" && modes[s.name()] != ModeRestore {
			modes[s.name()] = mode
		}
	}
	for _, s := range all {
		if slices.Contains(s.Tags, tagDump) && !taken[s.name()] { // two pods of one Job may have run at the same time
			taken[s.name()] = true
			found = append(found, backup{s, modes[s.name()], ids[s.name()]})
		}
	}
	return found, err
}

// find returns the dump of the settings: by the snapshot's id, or by the owner and the name.
func (p *program) find(ctx context.Context) (*snapshot, error) {
	tags := []string{tagDump}
	if p.config.Snapshot == "" {
		tags = append(tags, tagOwner+p.config.Owner, tagName+p.config.Name)
	}
	found, err := p.snapshots(ctx, tags...)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(found, func(s snapshot) bool { return strings.HasPrefix(s.ID, p.config.Snapshot) })
	if i < 0 {
		return nil, because(nil, ReasonSnapshotNotFound)
	}
	return &found[i], nil
}

// save stores the output of a program as a snapshot of this run. restic makes no snapshot when the program fails. The option
// --stdin-from-command of restic promises the same, but on a full volume restic then waits for the end of a program whose
// output it no longer reads.
func (p *program) save(ctx context.Context, tags []string, file, name string, args ...string) error {
	t := p.resticTool("backup", "--time="+p.config.slot().In(p.config.Location).Format(time.DateTime))
	for _, tag := range append(tags, tagOwner+p.config.Owner, tagName+p.config.Name,
		tagDatabase+url.QueryEscape(p.config.Database)) {
		t.args = append(t.args, "--tag="+tag)
	}
	t.args, t.stdout = append(t.args, "--stdin", "--stdin-filename="+file), io.Discard
	return p.feed(ctx, tool{name: name, args: args, env: p.environment(p.serverVariables()...)}, t)
}
