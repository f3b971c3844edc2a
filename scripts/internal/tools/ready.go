package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names returns the names of all programs that can be built.
func (b Builder) Names() (names []string) {
	for _, t := range b.tools() {
		names = append(names, t.Name)
	}
	return names
}

// Stamps builds programs that bin/ lacks, and returns for each program the stamp that it may have on another machine.
func (b Builder) Stamps(ctx context.Context, names ...string) (map[string]string, error) {
	if err := b.Ensure(ctx, names...); err != nil {
		return nil, err
	}
	stamps := map[string]string{}
	for _, tool := range b.tools() {
		if !slices.Contains(names, tool.Name) {
			continue
		}
		t, err := b.pinned(tool, "")
		if err != nil {
			return nil, err
		}
		sum, err := sum(filepath.Join(b.Bin(), t.Name))
		if err != nil {
			return nil, err
		}
		stamps[t.Name] = withSum(t.readyMade, sum)
	}
	return stamps, nil
}

// adopt moves ready-made tools of the pinned version into bin/, and returns the other tools.
func (b Builder) adopt(wanted []pinned) (rest []pinned, err error) {
	for _, t := range wanted {
		from := filepath.Join(b.Ready, t.Name)
		sum, err := sum(from)
		if errors.Is(err, fs.ErrNotExist) {
			rest = append(rest, t)
			continue
		}
		if err != nil {
			return nil, err
		}
		stamp, err := os.ReadFile(filepath.Join(b.Ready, ".stamps", t.Name))
		if err != nil {
			return nil, err
		}
		if is, want := string(stamp), withSum(t.readyMade, sum); is != want {
			b.Report.Line("%s is compiled: the one that is ready-made is not the pinned one (%s, not %s)",
				t.Name, strings.TrimSpace(is), strings.TrimSpace(want))
			rest = append(rest, t)
			continue
		}
		if err := b.install(from, t.Name, t.readyMade); err != nil {
			return nil, fmt.Errorf("install %s: %w", t.Name, err)
		}
	}
	return rest, nil
}
