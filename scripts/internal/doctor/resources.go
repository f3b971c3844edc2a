package doctor

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const gib = 1 << 30

func size(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/gib) }

// grade turns a quantity into a status: Failure below least, Warning below enough.
func grade(have, enough, least uint64) Status {
	switch {
	case have < least:
		return Failure
	case have < enough:
		return Warning
	}
	return OK
}

// checkDisk looks at the repository and, where there is a go command, at its caches. The limits are the measured needs
// of a first build.
func checkDisk(ctx context.Context, m Machine) Diagnosis {
	places := []string{m.Repository}
	if caches, err := m.run(ctx, "go", "env", "GOCACHE", "GOMODCACHE"); err == nil {
		places = append(places, strings.Split(strings.TrimSpace(caches), "\n")...)
	}
	least, lowest := "", uint64(math.MaxUint64)
	for _, place := range places {
		free, err := m.Disk(existing(place))
		if err != nil {
			return report(Warning, "The free space for %s is unknown: %s.", place, oneLine(err.Error()))
		}
		if free < lowest {
			least, lowest = place, free
		}
	}
	if status := grade(lowest, 8*gib, 2*gib); status != OK {
		return report(status, "Only %s free for %s.", size(lowest), least)
	}
	return report(OK, "%s free", size(lowest))
}

// existing returns the path, or its nearest parent folder that exists already.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

// checkMemory compares with the measured needs of a first build and a running cluster.
func checkMemory(ctx context.Context, m Machine) Diagnosis {
	have, what, err := m.Memory(ctx)
	if err != nil {
		return report(Warning, "The available memory is unknown: %s.", oneLine(err.Error()))
	}
	if status := grade(have, 4*gib, 2*gib); status != OK {
		return report(status, "Only %s %s.", size(have), what)
	}
	return report(OK, "%s %s", size(have), what)
}

// Memory returns a number of bytes and its meaning: on Linux the available memory, within the limit of this control
// group; elsewhere the built-in memory. In a container, the root of the cgroup file system is the container's group.
func (m Machine) Memory(ctx context.Context) (uint64, string, error) {
	if m.OS != "linux" {
		answer, err := m.run(ctx, "sysctl", "-n", "hw.memsize")
		if err != nil {
			return 0, "", err
		}
		total, err := strconv.ParseUint(strings.TrimSpace(answer), 10, 64)
		return total, "of memory in all", err
	}
	kilobytes, err := m.number("proc/meminfo", "MemAvailable:")
	if err != nil {
		return 0, "", err
	}
	available := kilobytes * 1024
	limit, noLimit := m.number("sys/fs/cgroup/memory.max", "") // no such file, or "max"
	used, unknown := m.number("sys/fs/cgroup/memory.current", "")
	if noLimit != nil || unknown != nil {
		return available, "of memory available", nil
	}
	// Cached files count as used, but the kernel drops them when memory is needed.
	cached, _ := m.number("sys/fs/cgroup/memory.stat", "inactive_file")
	used -= min(used, cached)
	if left := limit - min(limit, used); left < available {
		return left, "left under this container's memory limit", nil
	}
	return available, "of memory available", nil
}

// number reads the number that follows a word in a file below Root, or the first word.
func (m Machine) number(path, after string) (uint64, error) {
	content, err := os.ReadFile(filepath.Join(m.Root, path))
	if err != nil {
		return 0, err
	}
	words := append([]string{""}, strings.Fields(string(content))...)
	at := slices.Index(words, after)
	if at < 0 || at+1 == len(words) {
		return 0, fmt.Errorf("%s has no %s", path, after)
	}
	return strconv.ParseUint(words[at+1], 10, 64)
}

// checkInotify compares the limits with those in kind's "Known issues", Pod errors due to "too many open files"
// (https://kind.sigs.k8s.io/docs/user/known-issues/).
func checkInotify(_ context.Context, m Machine) Diagnosis {
	if m.OS != "linux" {
		return report(NotApplicable, "Docker brings its own Linux on this system")
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return report(NotApplicable, "only the kind environment needs it, and there is no Docker")
	}
	var seen, fix []string
	for name, least := range map[string]uint64{"max_user_instances": 512, "max_user_watches": 524288} {
		value, err := m.number("proc/sys/fs/inotify/"+name, "")
		if err != nil {
			return report(NotApplicable, "the limits cannot be read: %s", oneLine(err.Error()))
		}
		seen = append(seen, fmt.Sprintf("%s %d", name, value))
		if value < least {
			fix = append(fix, fmt.Sprintf("sudo sysctl fs.inotify.%s=%d\n", name, least))
		}
	}
	slices.Sort(seen)
	slices.Sort(fix)
	if fix == nil {
		return report(OK, "%s", strings.Join(seen, ", "))
	}
	finding := report(Warning, "A limit of fs.inotify is too low for kind: %s.", strings.Join(seen, ", "))
	finding.Fix = strings.Join(fix, "") + "To keep this after a restart, write it to /etc/sysctl.d/ too."
	return finding
}
