package examine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/pod"
)

// metricsInPod is the port of the metrics in a pod, where no other program can have it.
const metricsInPod = 18080

// choosePlace decides whether the program runs in a pod: not when the user does not want that, or the system does not
// allow it.
func (t *target) choosePlace(note func(string)) {
	if t.Outside {
		return
	}
	if err := pod.Check(); err != nil {
		t.Outside = true
		note(fmt.Sprintf("This system does not let the lab run the program as in a pod (%v), so the program runs outside a "+
			"pod, with a kubeconfig: the lab skips two replicas that listen on one port or take the namespace of their lease "+
			"from their pod. It needs Linux and user namespaces, which most containers forbid: on "+
			"Ubuntu, `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0` allows them.", err))
	}
}

// serviceAccount is the service account of the operator's pods.
func (t *target) serviceAccount() types.NamespacedName {
	if t.workload != nil {
		return types.NamespacedName{Namespace: t.home(), Name: t.workload.serviceAccount()}
	}
	return types.NamespacedName{Namespace: t.home(), Name: "examined"}
}

// emptyPod is a pod for a run that needs no API server; nil outside a pod.
func (t *target) emptyPod() *pod.Pod {
	if t.Outside {
		return nil
	}
	return fixture.EmptyPod("help")
}

// arguments are those of the manifests and of ARGS=, as they are written.
func (t *target) arguments() []string {
	if t.workload == nil {
		return t.Args
	}
	return slices.Concat((&kubelet{workload: t.workload}).arguments(nil), t.Args)
}

// A container is what the manifests say about the container of the program.
type container struct {
	args, env []string
	mounts    []pod.Mount
}

// findPod gives the operator its pod, and the service account with a token that is bound to this pod.
func (o *operator) findPod(ctx context.Context, r *run, name string) error {
	replicas := 1
	if r.operator != nil {
		replicas = 2
	}
	self, exists, err := r.podOf(ctx, name, replicas)
	if err != nil {
		return err
	}
	o.self, o.pod = self, self.Name
	bound := self
	if !exists {
		bound = nil
	}
	o.user, err = o.fixture.AddServiceAccount(ctx, name, o.target.serviceAccount(), bound)
	return err
}

// readContainer reads what the manifests say. The objects that the container needs exist.
func (o *operator) readContainer(ctx context.Context, served bool) (err error) {
	if o.target.workload == nil {
		return nil
	}
	if o.container, err = o.read(ctx, o.target.workload, served); err != nil {
		return fmt.Errorf("MANIFEST=%s: %w", o.target.Manifest, err)
	}
	return nil
}

// read returns the environment, arguments and mounts that the manifests have for the container of a workload.
func (o *operator) read(ctx context.Context, w *workload, served bool) (c container, err error) {
	k := &kubelet{workload: w, ctx: ctx, fixture: o.fixture, self: o.self, served: served,
		dir: o.volumes()}
	var values map[string]string
	if c.env, values, err = k.environment(); err == nil {
		c.args = k.arguments(values)
		c.mounts, err = k.mounts()
	}
	return c, err
}

// inPod describes the program in its pod. The pod has the usual ports to itself, and the lab's files where a program
// looks for them, so that only the metrics need flags.
func (o *operator) inPod(args []string) (fixture.Program, error) {
	return o.programIn(o.target.workload, o.container, slices.Concat(o.container.args, o.filled(o.target.Args),
		o.metricsSettings(), o.certificates(fixture.CertDirInPod), args))
}

// programIn describes the program of a container in the pod. Without manifests, the workload is nil.
func (o *operator) programIn(w *workload, c container, args []string) (fixture.Program, error) {
	if err := stay(o.volumes(), c.mounts); err != nil {
		return fixture.Program{}, err
	}
	in := o.fixture.Pod(o.user, o.pod)
	in.Address = address(o.self)
	dir := ""
	if w != nil {
		w.shape(in)
		in.Services, dir = w.services(), w.container.WorkingDir
	}
	in.Mounts = slices.DeleteFunc(in.Mounts, func(m pod.Mount) bool { // the manifests have another one there
		return slices.ContainsFunc(c.mounts, func(own pod.Mount) bool { return own.Target == m.Target })
	})
	in.Mounts = slices.Concat(c.mounts, in.Mounts, namedFiles(slices.Concat(args, o.target.Env)))
	return fixture.Program{Name: o.user.Name, Path: o.program, Args: args, Dir: dir, Pod: in, Env: slices.Concat(
		[]string{"WEBHOOK_CERT_DIR=" + fixture.CertDirInPod}, c.env, o.filled(o.target.Env))}, nil
}

// volumes is the folder of the volumes of the pod.
func (o *operator) volumes() string { return filepath.Join(o.fixture.Dir, "volumes", o.user.Name) }

// awaitProbes returns when the startup probe and the readiness probe of the manifests succeed. The lab calls them as a
// kubelet does.
func (o *operator) awaitProbes(ctx context.Context) error {
	if o.target.workload == nil || o.pod == "" {
		return nil
	}
	container := o.target.workload.container
	for _, probe := range []struct {
		name string
		*corev1.Probe
	}{{"startupProbe", container.StartupProbe}, {"readinessProbe", container.ReadinessProbe}} {
		if probe.Probe == nil {
			continue
		}
		err := o.clock.Eventually(ctx, 20*time.Second, func() error { return o.ask(ctx, probe.ProbeHandler) })
		if err != nil {
			return fmt.Errorf("the %s of the container %s in MANIFEST= does not succeed in 20 s: %w", probe.name,
				container.Name, err)
		}
	}
	return nil
}

// ask asks a probe once.
func (o *operator) ask(ctx context.Context, probe corev1.ProbeHandler) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	switch {
	case probe.TCPSocket != nil:
		c, err := o.Process().Dial(o.target.workload.port(probe.TCPSocket.Port))
		if err != nil {
			return err
		}
		return c.Close()
	case probe.HTTPGet != nil:
		port := o.target.workload.port(probe.HTTPGet.Port)
		scheme := strings.ToLower(cmp.Or(string(probe.HTTPGet.Scheme), "http"))
		url := scheme + "://" + localAddress(port) + probe.HTTPGet.Path
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := o.client(port).Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode >= http.StatusBadRequest {
			err = fmt.Errorf("%s: %s", probe.HTTPGet.Path, response.Status)
		}
		return errors.Join(err, response.Body.Close())
	case probe.Exec != nil && len(probe.Exec.Command) > 0:
		command := slices.Clone(probe.Exec.Command)
		if own := o.target.workload.container.Command; len(own) > 0 && command[0] == own[0] {
			command[0] = o.program
		}
		err := o.Process().Network().Exec(command)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the image has this program, and the lab has no image
		}
		return err
	case probe.GRPC != nil:
		return o.askHealth(ctx, int(probe.GRPC.Port), ptr.Deref(probe.GRPC.Service, ""))
	}
	return nil
}

// askHealth calls grpc.health.v1.Health once, without a gRPC library. A message has 5 bytes and its fields: the request
// has the name of a service, and the response must have the status SERVING.
func (o *operator) askHealth(ctx context.Context, port int, service string) error {
	message := []byte(nil)
	if service != "" {
		message = append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(service))), service...)
	}
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://"+localAddress(port)+"/grpc.health.v1.Health/Check", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	client := o.client(port)
	transport := client.Transport.(*http.Transport)
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetUnencryptedHTTP2(true)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if serving := []byte{0, 0, 0, 0, 2, 1 << 3, 1}; err == nil && !bytes.Equal(answer, serving) {
		err = fmt.Errorf("the service of gRPC does not report SERVING: %s, code %s", response.Status,
			cmp.Or(response.Trailer.Get("Grpc-Status"), response.Header.Get("Grpc-Status")))
	}
	return err
}

// client asks a port of the process. As a kubelet, it does not verify certificates.
func (o *operator) client(port int) *http.Client {
	p := o.Process()
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it is in a pod of the lab
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return p.Dial(port) }}}
}

// namedFiles are the files of this machine whose paths settings name, such as that of a configuration. The pod shows no
// folders: these may have files that the user does not think of.
func namedFiles(settings []string) (mounts []pod.Mount) {
	for _, setting := range settings {
		_, value, found := strings.Cut(setting, "=")
		if !found {
			value = setting
		}
		info, err := os.Stat(value)
		if err == nil && filepath.IsAbs(value) && info.Mode().IsRegular() {
			mounts = append(mounts, pod.Mount{Source: value, Target: filepath.Clean(value)})
		}
	}
	return mounts
}

// freePort is a port that no other program has: the given one in a pod.
func (o *operator) freePort(inPod int) (int, error) {
	if o.pod != "" {
		return inPod, nil
	}
	return fixture.FreePort()
}

// alone returns further arguments for a single replica. An operator with manifests keeps its leader election. Another
// operator needs no leader election.
func (o *operator) alone() []string {
	if o.pod != "" && o.target.workload != nil {
		return nil
	}
	return o.with("--leader-elect=false", "--enable-leader-election=false")
}

// elects are the arguments of one of two replicas. A pod has the namespace of the lease.
func (o *operator) elects() []string {
	if o.pod != "" {
		return o.with("--leader-elect", "--enable-leader-election")
	}
	return o.with("--leader-elect", "--enable-leader-election", "--leader-election-namespace="+o.target.home())
}
