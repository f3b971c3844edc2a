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

// finish runs when the backup of this run is verified, as far as its mode demands: it records the verification, checks
// the repository, removes old backups, and lists the backups.
func (p *program) finish(ctx context.Context) error {
	if err := p.openRepository(ctx, false); err != nil {
		return err
	}
	p.unlock(ctx)
	found, err := p.find(ctx)
	if err != nil {
		return err
	}
	p.result.Backup = found.facts()
	if p.config.Verify != ModeNone {
		if err := p.checkRepository(ctx); err != nil {
			return err
		}
		if err := p.recordVerification(ctx, found); err != nil {
			return err
		}
	}
	if err := p.retain(ctx); err != nil {
		return err
	}
	kept, err := p.list(ctx)
	if err != nil {
		return err
	}
	p.succeed(ReasonFinished, "the repository has %d backups of this owner; %d were removed", kept, len(p.result.Removed))
	return nil
}

// recordVerification adds the verification to the snapshot, which gets another id by that.
func (p *program) recordVerification(ctx context.Context, s *snapshot) error {
	p.result.Backup.Verified = &Verified{p.config.Verify, now()}
	if s.verified() == p.config.Verify || s.verified() == ModeRestore {
		return nil
	}
	_, err := p.restic(ctx, "tag", "--add="+tagVerified+string(p.config.Verify), s.ID)
	if code(err) != 0 {
		p.warn("the verification is not recorded in the repository: it is locked, or the store refuses to delete")
		return nil
	}
	if err != nil {
		return err
	}
	tagged, err := p.find(ctx)
	if err != nil {
		return err
	}
	p.result.Backup.Snapshot = tagged.ID[:8]
	return nil
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

// retain removes the backups that the policy does not keep. The newest verified backup stays, and nothing is removed on
// the word of one clock.
func (p *program) retain(ctx context.Context) error {
	all, err := p.backups(ctx)
	if err != nil {
		return err
	}
	if len(all) > 0 && all[0].Time.After(p.config.Slot.Add(clockTolerance)) {
		p.warn("nothing was removed: backup %s has a later time than this run, so a clock is or was wrong", all[0].name())
		return nil
	}
	if p.config.Slot.After(time.Now().Add(clockTolerance)) {
		p.warn("nothing was removed: the time of this run is ahead of the clock of its node")
		return nil
	}
	ids, err := p.forgotten(ctx)
	if err != nil {
		return p.retentionFault(ctx, err)
	}
	var names, remove []string
	for _, s := range slices.Backward(doomed(all, ids, p.config.Policy, p.config.Name)) {
		names = append(names, s.name())
	}
	if len(names) == 0 {
		return nil
	}
	every, err := p.snapshots(ctx, tagOwner+p.config.Owner)
	if err != nil {
		return err
	}
	for _, s := range every { // the globals of a backup, and a snapshot without its tag, too
		if slices.Contains(names, s.name()) {
			remove = append(remove, s.ID)
		}
	}
	if _, err := p.restic(ctx, append([]string{"forget", "--prune"}, remove...)...); err != nil {
		return p.retentionFault(ctx, err)
	}
	p.result.Removed = names
	return nil
}

// retentionFault makes a failure of retention a warning: the backup of this run is good.
func (p *program) retentionFault(ctx context.Context, err error) error {
	if code(err) == 0 {
		return err
	}
	if code(err) == resticLocked {
		p.warn("old backups were not removed, because another run uses the repository")
	} else {
		p.warn("old backups were not removed: the store refuses to delete, or went away")
	}
	return ctx.Err()
}

// forgotten returns the ids of the dumps that restic would forget. Without a number of backups to keep, there are none.
func (p *program) forgotten(ctx context.Context) (ids []string, err error) {
	policy := p.config.Policy
	if policy == (Policy{MaxAgeDays: policy.MaxAgeDays}) {
		return nil, nil
	}
	out, err := p.restic(ctx, "forget", "--dry-run", "--group-by=", "--tag="+tagDump+","+tagOwner+p.config.Owner,
		fmt.Sprintf("--keep-last=%d", policy.Last), fmt.Sprintf("--keep-daily=%d", policy.Daily),
		fmt.Sprintf("--keep-weekly=%d", policy.Weekly), fmt.Sprintf("--keep-monthly=%d", policy.Monthly))
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

// doomed returns the backups to remove, of all backups, the newest first: those that restic forgets, and those that are
// too old. Age is counted from the backup before this run, so one run with a wrong clock ages nothing. The backup of
// this run and the newest verified backup stay, or the newest one when none is verified.
func doomed(all []snapshot, forgotten []string, policy Policy, name string) (remove []snapshot) {
	protected := max(0, slices.IndexFunc(all, func(s snapshot) bool { return s.verified() != "" }))
	for i, s := range all {
		aged := policy.MaxAgeDays > 0 && len(all) > 1 && all[1].Time.Sub(s.Time) > time.Duration(policy.MaxAgeDays)*24*time.Hour
		if (aged || slices.Contains(forgotten, s.ID)) && i != protected && s.name() != name {
			remove = append(remove, s)
		}
	}
	return remove
}

// list adds the backups to the result, newest first, and returns their number. Dumps of the older format are files on
// the volume: nothing but a person removes them.
func (p *program) list(ctx context.Context) (int, error) {
	all, err := p.backups(ctx)
	if err != nil {
		return 0, err
	}
	p.result.Backups = []Entry{}
	for _, s := range all {
		facts := s.facts()
		p.result.Backups = append(p.result.Backups, Entry{Name: facts.Name, Snapshot: facts.Snapshot, Completed: facts.Completed,
			Size: facts.Size, Verified: s.verified()})
	}
	if p.config.Volume != "" && !remote(p.config.Repository) {
		p.result.Backups = append(p.result.Backups, olderDumps(p.config.Repository)...)
	}
	slices.SortStableFunc(p.result.Backups, func(a, b Entry) int {
		return cmp.Or(b.Completed.Compare(a.Completed), strings.Compare(a.Name, b.Name))
	})
	return len(all), nil
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
	p.unlock(ctx)
	found, err := p.snapshots(ctx, tagOwner+p.config.Owner)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		args := []string{"forget", "--prune"}
		for _, s := range found {
			args = append(args, s.ID)
		}
		if _, err := p.restic(ctx, args...); err != nil {
			return p.repositoryFault(ctx, err, ReasonRepositoryRefused)
		}
	}
	p.succeed(ReasonDeleteSucceeded, "%d snapshots of this owner were removed", len(found))
	return nil
}
