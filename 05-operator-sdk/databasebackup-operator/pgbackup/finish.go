package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// clockTolerance is how much two clocks may differ.
	clockTolerance = 10 * time.Minute
	// checkedData is how much of the data finish reads. restic chooses it at random.
	checkedData = "64M"
)

// finish runs when the backup of this run is verified, as far as its mode demands: it checks the repository, records the
// verification, removes old backups, and lists the backups.
func (p *program) finish(ctx context.Context) error {
	if err := p.openRepository(ctx, false); err != nil {
		return err
	}
	all, err := p.backups(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(b backup) bool { return b.name() == p.config.Name })
	if i < 0 {
		return because(nil, ReasonSnapshotNotFound)
	}
	p.result.Backup = all[i].facts()
	if p.config.Verify != ModeNone {
		if err := p.checkRepository(ctx); err != nil {
			return err
		}
		if err := p.mark(ctx, &all[i]); err != nil {
			return err
		}
	}
	kept, err := p.retain(ctx, all)
	if err != nil {
		return err
	}
	p.list(kept)
	p.succeed(ReasonFinished, "the repository has %d backups of this owner; %d were removed", len(kept), len(all)-len(kept))
	return nil
}

// mark records the verification, as a snapshot beside the dump: a store that refuses to delete takes it, too.
func (p *program) mark(ctx context.Context, b *backup) error {
	p.result.Backup.Verified = &Verified{p.config.Verify, now()}
	if b.verified == p.config.Verify || b.verified == ModeRestore {
		return nil
	}
	b.verified = p.config.Verify
	err := p.save(ctx, []string{tagVerified + string(p.config.Verify)}, verifiedFile, "echo", string(p.config.Verify))
	return p.repositoryFault(ctx, err, ReasonRepositoryRefused)
}

// checkRepository checks the structure of the repository, and some of its data.
func (p *program) checkRepository(ctx context.Context) error {
	_, err := p.restic(ctx, "check", "--read-data-subset="+checkedData)
	if code(err) == resticLocked {
		p.warn("the repository was not checked, because another run uses it")
		return nil
	}
	return p.repositoryFault(ctx, err, ReasonRepositoryDamaged)
}

// retain removes the backups that the policy does not keep, and returns the others. The newest verified backup stays, and
// nothing is removed on the word of one clock. A failure is a warning: the backup of this run is good.
func (p *program) retain(ctx context.Context, all []backup) ([]backup, error) {
	slot := p.config.slot()
	if all[0].Time.After(slot.Add(clockTolerance)) || slot.After(time.Now().Add(clockTolerance)) {
		p.warn("nothing was removed, because clocks disagree: this run is of %s, a backup of %s", slot, all[0].Time.UTC())
		return all, nil
	}
	forgotten, err := p.forgotten(ctx)
	var ids []string
	for _, b := range choose(all, forgotten, p.config.Policy, p.config.Name) {
		ids = append(ids, b.all...)
	}
	if err == nil {
		err = p.forget(ctx, ids)
	}
	switch {
	case err != nil && code(err) == 0:
		return nil, err
	case err != nil:
		p.warn("old backups were not all removed: another run uses the repository, or the store refuses to delete")
	}
	return p.backups(ctx) // restic may have removed some of them before it failed
}

// forget removes snapshots, and the data that no other snapshot needs.
func (p *program) forget(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := p.restic(ctx, append([]string{"forget", "--prune"}, ids...)...)
	return err
}

// forgotten returns the ids of the dumps that restic would forget. Without a number of backups to keep, there are none.
func (p *program) forgotten(ctx context.Context) (ids []string, err error) {
	policy := p.config.Policy
	if policy == (Policy{MaxAgeDays: policy.MaxAgeDays}) {
		return nil, nil
	}
	out, err := p.restic(ctx, "forget", "--dry-run", "--no-lock", "--group-by=", "--tag="+tagDump+","+tagOwner+p.config.Owner,
		fmt.Sprintf("--keep-last=%d", policy.Last), fmt.Sprintf("--keep-daily=%d", policy.Daily),
		fmt.Sprintf("--keep-weekly=%d", policy.Weekly), fmt.Sprintf("--keep-monthly=%d", policy.Monthly),
		fmt.Sprintf("--keep-within=%dd", policy.Within))
	if err != nil {
		return nil, err
	}
	var groups []struct {
		Remove []snapshot `json:"remove"`
	}
	if err := json.Unmarshal([]byte(out), &groups); err != nil {
		return nil, fmt.Errorf("read what restic forgets: %w", err)
	}
	for _, group := range groups {
		for _, s := range group.Remove {
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

// choose returns the backups to remove, of all backups, the newest first: those that restic forgets, and those that are
// too old. Age is counted from the backup before this run, so one run with a wrong clock ages nothing. The backup of this
// run and the newest verified backup stay, or the newest one when none is verified.
func choose(all []backup, forgotten []string, policy Policy, name string) (removed []backup) {
	protected := max(0, slices.IndexFunc(all, func(b backup) bool { return b.verified != "" }))
	for i, b := range all {
		aged := policy.MaxAgeDays > 0 && i > 1 && all[1].Time.Sub(b.Time) > time.Duration(policy.MaxAgeDays)*24*time.Hour
		if (aged || slices.Contains(forgotten, b.ID)) && i != protected && b.name() != name {
			removed = append(removed, b)
		}
	}
	return removed
}

// list adds the backups to the result, newest first. Dumps of the older format are files on the volume: nothing but a
// person removes them.
func (p *program) list(all []backup) {
	p.result.Backups = []Entry{}
	for _, b := range all {
		facts := b.facts()
		p.result.Backups = append(p.result.Backups, Entry{Name: facts.Name, Snapshot: facts.Snapshot, Completed: facts.Completed,
			Size: facts.Size, Verified: b.verified})
	}
	if p.config.Volume != "" && !remote(p.config.Repository) {
		p.result.Backups = append(p.result.Backups, olderDumps(p.config.Repository)...)
	}
	slices.SortStableFunc(p.result.Backups, func(a, b Entry) int {
		return cmp.Or(b.Completed.Compare(a.Completed), strings.Compare(a.Name, b.Name))
	})
}

// olderDumps returns the dumps of the older format below a folder.
func olderDumps(dir string) (found []Entry) {
	paths, _ := fs.Glob(os.DirFS(dir), "*/*.dump")
	for _, path := range paths {
		if info, err := os.Stat(filepath.Join(dir, path)); err == nil && info.Mode().IsRegular() {
			found = append(found, Entry{Name: strings.TrimSuffix(filepath.Base(path), ".dump"), Path: filepath.Join(dir, path),
				Completed: info.ModTime().UTC().Truncate(time.Second), Size: info.Size()})
		}
	}
	return found
}

// delete removes all backups of the owner. Backups of other owners stay, and so do dumps of the older format.
func (p *program) delete(ctx context.Context) error {
	err := p.openRepository(ctx, false)
	if err != nil && faultOf(err).reason == ReasonRepositoryMissing {
		p.succeed(ReasonDeleteSucceeded, "there is no repository, so nothing was removed")
		return nil
	}
	if err != nil {
		return err
	}
	found, err := p.snapshots(ctx, tagOwner+p.config.Owner)
	if err != nil {
		return err
	}
	var ids []string
	for _, s := range found {
		ids = append(ids, s.ID)
	}
	if err := p.forget(ctx, ids); err != nil {
		return p.repositoryFault(ctx, err, ReasonRepositoryRefused)
	}
	p.succeed(ReasonDeleteSucceeded, "%d snapshots of this owner were removed", len(found))
	return nil
}
