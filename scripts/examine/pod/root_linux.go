package pod

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Parts of the machine that a program may need, in any language. Each exists only on some systems. They hold no files of
// users.
var (
	system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
		"/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/ld.so.cache", "/etc/ld.so.conf",
		"/etc/ld.so.conf.d", "/etc/localtime", "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/ssl/certs"}
	devices = []string{"null", "zero", "full", "random", "urandom"}
)

// old is where the new root has the folders of the machine until it is complete. No mount and no link can name a path
// below old, because its name is random.
var old = "/.machine-" + rand.Text()

const (
	// base is where the new root is made.
	base = "/tmp"
	// size is what the program may write to the root, and to each empty folder. Both are in memory.
	size = "256m"
)

// makeRoot replaces the file system of the machine by that of a pod.
func makeRoot(d description) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size="+size)
	if err == nil {
		err = os.Mkdir(base+old, 0o700)
	}
	if err == nil {
		err = unix.PivotRoot(base, base+old)
	}
	if err == nil {
		err = os.Chdir("/")
	}
	if err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := fill(d); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), old, "")) // a message has the path on the machine
	}
	if err := errors.Join(unix.Unmount(old, unix.MNT_DETACH), os.Remove(old)); err != nil {
		return fmt.Errorf("leave the files of the machine: %w", err)
	}
	if !d.Pod.ReadOnly {
		return nil
	}
	return readOnly("/", 0)
}

// fill makes the folders and files of a pod.
func fill(d description) error {
	for _, dir := range []string{"/proc", "/dev", "/etc", "/tmp", "/var/run"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod("/tmp", 0o1777), makeProc(), etc(d.Pod)); err != nil {
		return err
	}
	for _, name := range devices {
		if err := bind("/dev/"+name, "/dev/"+name, true); err != nil {
			return err
		}
	}
	java, _ := filepath.Glob(old + "/etc/java*")
	for _, path := range append(java, system...) {
		path = strings.TrimPrefix(path, old)
		if err := bindSystem(path); err != nil {
			return err
		}
	}
	_, notInSystem := os.Stat(d.Program.Path)
	for _, m := range d.Pod.Mounts {
		show := func() error { return bind(m.Source, m.Target, m.Writable) }
		if m.Source == "" {
			show = func() error { return emptyFolder(m.Target) }
		}
		if err := show(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join("/", d.Program.Dir), 0o755); err != nil { // an image would have it
		return fmt.Errorf("make the working folder %s: %w", d.Program.Dir, err)
	}
	if notInSystem == nil {
		return nil
	}
	return bind(d.File, shownAt(d.Program.Path), false)
}

// shownAt is where a link of the system leads, which stays a link; any other path stays as it is.
func shownAt(path string) string {
	for to, err := os.Readlink(path); err == nil; to, err = os.Readlink(path) {
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
}

// makeProc mounts the processes of the pod. The settings of the kernel in it belong to the pod only in part, so that they
// must be read-only: the user of the lab may be root.
func makeProc() error {
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// A pod may listen on any port, and has no namespaces below it.
	err := errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0),
		os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0))
	if err != nil {
		return err
	}
	return readOnly("/proc", 0)
}

// etc writes the files that libraries read.
func etc(p Pod) error {
	files := map[string]string{
		"hostname": p.Name + "\n",
		"hosts": fmt.Sprintf("127.0.0.1 localhost\n::1 localhost\n%s %s\n%s kubernetes.default.svc "+
			"kubernetes.default.svc.cluster.local kubernetes.default kubernetes\n", p.Address,
			strings.Join(append([]string{p.Name}, p.Services...), " "), p.Server.Addr()),
		// Nothing answers there: no name of a Service can be looked up.
		"resolv.conf":   fmt.Sprintf("nameserver %s\nsearch svc.cluster.local cluster.local\n", p.Server.Addr()),
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
		"passwd":        fmt.Sprintf("root:x:0:0::/:/sbin/nologin\nnonroot:x:%d:%d::/:/sbin/nologin\n", p.User, p.User),
		"group":         fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", p.User),
	}
	for name, text := range files {
		if err := os.WriteFile("/etc/"+name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, "/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}

// bindSystem shows a part of the machine, when it exists. A link stays a link.
func bindSystem(path string) error {
	info, err := os.Lstat(old + path)
	if err != nil {
		return nil //nolint:nilerr // this machine does not have it
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return bind(path, path, false)
	}
	to, err := os.Readlink(old + path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.Symlink(to, path)
	}
	return err
}

// emptyFolder is a file system of the pod's own: it stays writable on a read-only root.
func emptyFolder(path string) error {
	err := os.MkdirAll(path, 0o755)
	if err == nil {
		err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0777,size="+size)
	}
	if err != nil {
		return fmt.Errorf("make an empty folder %s: %w", path, err)
	}
	return nil
}

// bind shows a file or a folder of the machine.
func bind(source, target string, writable bool) error {
	info, err := os.Stat(old + source)
	if err != nil {
		return fmt.Errorf("show %s: %w", source, err)
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		err = os.WriteFile(target, nil, 0o644)
	}
	if err == nil {
		err = unix.Mount(old+source, target, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err == nil && !writable {
		err = readOnly(target, unix.AT_RECURSIVE)
	}
	if err != nil {
		return fmt.Errorf("show %s: %w", target, err)
	}
	return nil
}

// readOnly makes a mount read-only. With AT_RECURSIVE the mounts below it are read-only, too.
func readOnly(path string, flags uint) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
}
