package doctor

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const gib = 1 << 30

// These are the measured needs of a first build and a running cluster, in bytes.
const (
	diskEnough, diskLeast     = 8 * gib, 2 * gib
	memoryEnough, memoryLeast = 4 * gib, 2 * gib
)

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

// checkDisk looks at the repository and, where there is a go command, at its caches.
func checkDisk(ctx context.Context, m Machine) Finding {
	short := Finding{
		Why: "The programs in bin/ take about 600 MB, Go's build cache and module cache about 6 GB.",
		Fix: "Free some space, or let Go's caches lie on a larger disk:\n" +
			"go env -w GOCACHE=/larger/disk/gocache GOMODCACHE=/larger/disk/gomod"}
	places := []string{m.Repository}
	if caches, err := m.run(ctx, "go", "env", "GOCACHE", "GOMODCACHE"); err == nil {
		places = append(places, strings.Split(strings.TrimSpace(caches), "\n")...)
	}
	least, lowest := "", uint64(math.MaxUint64)
	for _, place := range places {
		free, err := m.Disk(existing(place))
		if err != nil {
			short.Status = Warning
			return short.because("The free space for %s is unknown: %s.", place, oneLine(err.Error()))
		}
		if free < lowest {
			least, lowest = place, free
		}
	}
	if short.Status = grade(lowest, diskEnough, diskLeast); short.Status == OK {
		return okay("%s free", size(lowest))
	}
	return short.because("Only %s free for %s.", size(lowest), least)
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

func checkMemory(ctx context.Context, m Machine) Finding {
	short := Finding{
		Why: "Compiling kube-apiserver and running a control plane beside it take 2 to 4 GiB; with less, " +
			"the kernel kills the compiler (\"signal: killed\").",
		Fix: "Close other programs, or give the virtual machine or container more memory. While building, " +
			"fewer compilers at once take less:\nexport GOMAXPROCS=1"}
	have, what, err := m.Memory(ctx)
	if err != nil {
		short.Status = Warning
		return short.because("The available memory is unknown: %s.", oneLine(err.Error()))
	}
	if short.Status = grade(have, memoryEnough, memoryLeast); short.Status == OK {
		return okay("%s %s", size(have), what)
	}
	return short.because("Only %s %s.", size(have), what)
}

// Memory returns a number of bytes and its meaning: on Linux the available memory, within the limit of this control
// group; elsewhere the built-in memory.
func (m Machine) Memory(ctx context.Context) (uint64, string, error) {
	if m.OS != "linux" {
		answer, err := m.run(ctx, "sysctl", "-n", "hw.memsize")
		if err != nil {
			return 0, "", err
		}
		total, err := strconv.ParseUint(strings.TrimSpace(answer), 10, 64)
		return total, "of memory in all", err
	}
	kilobytes, err := field(m.file("proc/meminfo"), "MemAvailable:")
	if err != nil {
		return 0, "", err
	}
	available := kilobytes * 1024
	if room, limited := m.memoryRoom(); limited && room < available {
		return room, "left under this container's memory limit", nil
	}
	return available, "of memory available", nil
}

// memoryRoom returns the memory that the limit of a container leaves, in bytes. In a container, the root of the cgroup
// file system is the container's own group.
func (m Machine) memoryRoom() (room uint64, limited bool) {
	limit, err := number(m.file("sys/fs/cgroup/memory.max"))
	if err != nil {
		return 0, false // no such file, or "max"
	}
	used, err := number(m.file("sys/fs/cgroup/memory.current"))
	if err != nil {
		return 0, false
	}
	// Cached files count as used, but the kernel drops them when memory is needed.
	cached, _ := field(m.file("sys/fs/cgroup/memory.stat"), "inactive_file")
	used -= min(used, cached)
	return limit - min(limit, used), true
}

// field reads one value of a file of lines "name number …".
func field(path, name string) (uint64, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			return strconv.ParseUint(fields[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}

func number(path string) (uint64, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(content)), 10, 64)
}

// checkInotify compares the limits with those in kind's "Known issues", Pod errors due to "too many open files"
// (https://kind.sigs.k8s.io/docs/user/known-issues/).
func checkInotify(_ context.Context, m Machine) Finding {
	if m.OS != "linux" {
		return notApplicable("Docker brings its own Linux on this system")
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return notApplicable("only the kind environment needs it, and there is no Docker")
	}
	var seen, fix []string
	for _, limit := range []struct {
		name  string
		least uint64
	}{{"max_user_instances", 512}, {"max_user_watches", 524288}} {
		value, err := number(m.file("proc/sys/fs/inotify", limit.name))
		if err != nil {
			return notApplicable("the limits cannot be read: %s", oneLine(err.Error()))
		}
		seen = append(seen, fmt.Sprintf("%s %d", limit.name, value))
		if value < limit.least {
			fix = append(fix, fmt.Sprintf("sudo sysctl fs.inotify.%s=%d", limit.name, limit.least))
		}
	}
	what := strings.Join(seen, ", ")
	if len(fix) == 0 {
		return okay("%s", what)
	}
	return Finding{Status: Warning, What: "A limit of fs.inotify is too low for kind: " + what + ".",
		Why: "The containers of a kind node share these limits with your own programs; above them, the " +
			"kubelet, kube-proxy or the workload stop with \"too many open files\". Only kind is affected.",
		Fix: strings.Join(fix, "\n") + "\nTo keep this after a restart, write it to /etc/sysctl.d/ too."}
}
