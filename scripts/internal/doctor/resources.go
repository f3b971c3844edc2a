package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const gib = 1 << 30

// What a first build and a running cluster need, measured; in bytes.
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

func checkDisk(ctx context.Context, m Machine) Finding {
	const why = "The programs in bin/ take about 600 MB, Go's build cache and module cache about 6 GB."
	finding := Finding{Why: why}
	var seen, short []string
	for _, place := range []struct{ name, path string }{
		{"repository", m.Repository},
		{"GOCACHE", m.goEnvOrNothing(ctx, "GOCACHE")},
		{"GOMODCACHE", m.goEnvOrNothing(ctx, "GOMODCACHE")},
	} {
		if place.path == "" || place.path == "off" {
			continue
		}
		path := existing(place.path)
		free, err := m.Disk(path)
		if err != nil {
			return Finding{Status: Warning, Why: why, Fix: "See what this says:\ndf -h " + quote(path),
				What: fmt.Sprintf("The free space for %s is unknown: %s.", place.name, oneLine(err.Error()))}
		}
		seen = append(seen, fmt.Sprintf("%s %s free", place.name, size(free)))
		if status := grade(free, diskEnough, diskLeast); status != OK {
			finding.Status = max(finding.Status, status)
			short = append(short, fmt.Sprintf("%s free for %s (%s).", size(free), place.name, place.path))
		}
	}
	if finding.Status == OK {
		return okay("%s", strings.Join(seen, ", "))
	}
	finding.What = strings.Join(short, " ")
	finding.Fix = "Free some space, or let Go's caches lie on a larger disk:\n" +
		"go env -w GOCACHE=/larger/disk/gocache GOMODCACHE=/larger/disk/gomod"
	return finding
}

func (m Machine) goEnvOrNothing(ctx context.Context, name string) string {
	value, err := m.goEnv(ctx, name)
	if err != nil {
		return ""
	}
	return value
}

// existing is the path, or the nearest folder above it that exists already.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

func checkMemory(ctx context.Context, m Machine) Finding {
	const why = "Compiling kube-apiserver and running a control plane beside it take 2 to 4 GiB; with less, " +
		"the kernel kills the compiler (\"signal: killed\")."
	const fix = "Close other programs, or give the virtual machine or container more memory. While building, " +
		"fewer compilers at once take less:\nexport GOMAXPROCS=1"
	have, what, err := m.Memory(ctx)
	if err != nil {
		return Finding{Status: Warning, Why: why, Fix: "See that at least 4 GiB are free before `make up`.",
			What: fmt.Sprintf("The available memory is unknown: %s.", oneLine(err.Error()))}
	}
	status := grade(have, memoryEnough, memoryLeast)
	if status == OK {
		return okay("%s %s", size(have), what)
	}
	return Finding{Status: status, Why: why, Fix: fix, What: fmt.Sprintf("Only %s %s.", size(have), what)}
}

// Memory returns bytes and what they are: on Linux what is available, the limit of this control
// group considered; elsewhere what is built in.
func (m Machine) Memory(ctx context.Context) (uint64, string, error) {
	if m.OS != "linux" {
		answer, err := m.Run(ctx, "sysctl", "-n", "hw.memsize")
		if err != nil {
			return 0, "", err
		}
		total, err := strconv.ParseUint(strings.TrimSpace(answer), 10, 64)
		return total, "of memory in all", err
	}
	info, err := keyed(m.file("proc/meminfo"))
	if err != nil {
		return 0, "", err
	}
	available, ok := info["MemAvailable:"]
	if !ok {
		return 0, "", fmt.Errorf("%s has no MemAvailable", m.file("proc/meminfo"))
	}
	available *= 1024
	if room, limited := m.memoryRoom(); limited && room < available {
		return room, "left under this container's memory limit", nil
	}
	return available, "of memory available", nil
}

// memoryRoom is what the memory limit of a container leaves, in bytes. In a container, the root of
// the cgroup file system is the container's own group: version 2 and 1 of its files.
func (m Machine) memoryRoom() (room uint64, limited bool) {
	for _, files := range [][4]string{
		{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current", "sys/fs/cgroup/memory.stat", "inactive_file"},
		{"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes",
			"sys/fs/cgroup/memory/memory.stat", "total_inactive_file"},
	} {
		limit, err := number(m.file(files[0]))
		if err != nil {
			continue // no such file, or "max"
		}
		used, err := number(m.file(files[1]))
		if err != nil {
			continue
		}
		// Cached files count as used, but give way.
		stat, _ := keyed(m.file(files[2]))
		used -= min(used, stat[files[3]])
		return limit - min(limit, used), true
	}
	return 0, false
}

// keyed reads a file of lines "name number …".
func keyed(path string) (map[string]uint64, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := map[string]uint64{}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			if value, err := strconv.ParseUint(fields[1], 10, 64); err == nil {
				values[fields[0]] = value
			}
		}
	}
	return values, nil
}

func number(path string) (uint64, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(content)), 10, 64)
}

// checkInotify holds the limits against those of kind's "Known issues", Pod errors due to "too many
// open files" (https://kind.sigs.k8s.io/docs/user/known-issues/).
func checkInotify(_ context.Context, m Machine) Finding {
	if reason := m.noKind(); reason != "" {
		return notApplicable("%s", reason)
	}
	var seen, short, fix []string
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
			short = append(short,
				fmt.Sprintf("fs.inotify.%s is %d, less than %d.", limit.name, value, limit.least))
			fix = append(fix, fmt.Sprintf("sudo sysctl fs.inotify.%s=%d", limit.name, limit.least))
		}
	}
	if len(short) == 0 {
		return okay("%s", strings.Join(seen, ", "))
	}
	return Finding{Status: Warning, What: strings.Join(short, " "),
		Why: "The containers of a kind node share these limits with your own programs; above them, the " +
			"kubelet, kube-proxy or the workload stop with \"too many open files\". Only kind is affected.",
		Fix: strings.Join(fix, "\n") + "\nTo keep this after a restart, write it to /etc/sysctl.d/ too."}
}

// checkCgroup looks for the file that only the unified hierarchy has at its root; a hybrid one counts
// as version 1, as it does for the kubelet.
func checkCgroup(_ context.Context, m Machine) Finding {
	if reason := m.noKind(); reason != "" {
		return notApplicable("%s", reason)
	}
	if _, err := os.Stat(m.file("sys/fs/cgroup/cgroup.controllers")); err == nil {
		return okay("version 2")
	}
	return Finding{Status: Warning,
		What: "This machine does not use cgroup version 2 for everything (no cgroup.controllers in /sys/fs/cgroup).",
		Why: "From Kubernetes 1.35 on, a kubelet refuses to start on cgroup v1 unless failCgroupV1 is false: " +
			"a kind cluster does not come up. Only kind is affected.",
		Fix: "Start the kernel with systemd.unified_cgroup_hierarchy=1, or use a distribution that has " +
			"cgroup v2 by default (Debian 11, Ubuntu 22.04, Fedora 31 and newer). For WSL, in .wslconfig:\n" +
			"[wsl2]\nkernelCommandLine = cgroup_no_v1=all"}
}

// noKind says why a condition that only kind needs is of no interest here; "" when it is.
func (m Machine) noKind() string {
	if m.OS != "linux" {
		return "Docker brings its own Linux on this system"
	}
	if !m.has("docker") {
		return "only the kind environment needs it, and there is no Docker"
	}
	return ""
}
