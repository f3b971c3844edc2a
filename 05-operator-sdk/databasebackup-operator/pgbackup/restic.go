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
	tagDump     = "dump"    // the snapshot is the dump of a run
	tagGlobals  = "globals" // the snapshot has the roles of the server
	tagOwner    = "uid="
	tagName     = "name="
	tagDatabase = "database="
	tagVersion  = "version="
	tagVerified = "verified="

	tagRole       = "role="  // a role that the dump names
	tagRoleOwner  = "owner=" // a role that owns objects
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

// tags returns the values of a tag.
func (s snapshot) tags(key string) (values []string) {
	for _, tag := range s.Tags {
		if value, ok := strings.CutPrefix(tag, key); ok {
			if text, err := url.QueryUnescape(value); err == nil {
				values = append(values, text)
			}
		}
	}
	return values
}

// tag returns the value of a tag, or the empty text.
func (s snapshot) tag(key string) string { return strings.Join(s.tags(key), "") }

func (s snapshot) name() string { return s.tag(tagName) }

func (s snapshot) verified() Mode { return Mode(s.tag(tagVerified)) }

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
	lock := "--retry-lock=" + p.config.Wait.String()
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

// openRepository checks that the repository can be opened, and makes it where there is none, if the caller allows that.
func (p *program) openRepository(ctx context.Context, create bool) error {
	if err := p.probe(ctx); err != nil {
		return err
	}
	_, err := p.restic(ctx, "cat", "config")
	if code(err) == resticNoRepository && create {
		if err := p.probeStore(ctx, true); err != nil {
			return err
		}
		_, initErr := p.restic(ctx, "init")
		_, err = p.restic(ctx, "cat", "config") // another run may have made it
		if initErr != nil && code(err) == resticNoRepository {
			return p.repositoryFault(ctx, initErr, ReasonRepositoryRefused)
		}
	}
	if remote(p.config.Repository) {
		return p.repositoryFault(ctx, err, ReasonRepositoryRefused)
	}
	return p.repositoryFault(ctx, err, ReasonRepositoryDamaged)
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
		return nil, p.repositoryFault(ctx, err, ReasonRepositoryDamaged)
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return nil, fmt.Errorf("read the list of snapshots: %w", err)
	}
	slices.SortStableFunc(found, func(a, b snapshot) int { return b.Time.Compare(a.Time) })
	return found, nil
}

// backups returns the dumps of the owner, one for each name, the newest first: a store that refuses deletion keeps the
// snapshot without the tag of its verification, too.
func (p *program) backups(ctx context.Context, more ...string) (kept []snapshot, err error) {
	found, err := p.snapshots(ctx, append([]string{tagOwner + p.config.Owner, tagDump}, more...)...)
	for _, s := range found {
		i := slices.IndexFunc(kept, func(k snapshot) bool { return k.name() == s.name() })
		if i < 0 {
			kept = append(kept, s)
		} else if kept[i].verified() == "" {
			kept[i] = s
		}
	}
	return kept, err
}

// find returns the backup of the settings: by the snapshot's id, or by the owner and the name.
func (p *program) find(ctx context.Context) (*snapshot, error) {
	var found []snapshot
	var err error
	if p.config.Snapshot == "" {
		found, err = p.backups(ctx, tagName+p.config.Name)
	} else if found, err = p.snapshots(ctx, tagDump); err == nil {
		found = slices.DeleteFunc(found, func(s snapshot) bool { return !strings.HasPrefix(s.ID, p.config.Snapshot) })
	}
	if err == nil && len(found) == 0 {
		err = because(nil, ReasonSnapshotNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

// save stores the output of a program as a snapshot of this run. restic makes no snapshot when the program fails.
func (p *program) save(ctx context.Context, tags []string, file, name string, args ...string) error {
	t := p.resticTool("backup", "--time="+p.config.Slot.In(p.config.Location).Format(time.DateTime))
	for _, tag := range append(tags, tagOwner+p.config.Owner, tagName+p.config.Name,
		tagDatabase+url.QueryEscape(p.config.Database)) {
		t.args = append(t.args, "--tag="+tag)
	}
	t.args = append(append(t.args, "--stdin-filename="+file, "--stdin-from-command", "--", name), args...)
	t.env, t.stdout = append(t.env, p.serverVariables()...), io.Discard
	return p.run(ctx, t)
}

// unlock removes the locks of runs that are gone: restic knows them by their host and process, or by their age.
func (p *program) unlock(ctx context.Context) {
	if _, err := p.restic(ctx, "unlock"); err != nil && ctx.Err() == nil {
		p.log.Warn("Failed to remove the locks of runs that are gone", "error", err)
	}
}
