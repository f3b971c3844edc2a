package examine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// Where the system allows no pods, the program runs as a process of this machine, with a kubeconfig. All processes of
// the machine share its ports, so that flags move those of the program. Of the manifests, arguments and environment
// apply, and mounts do not.

// outside describes the program outside a pod.
func (o *operator) outside(args []string) (fixture.Program, error) {
	ports, err := o.probePorts()
	if err != nil {
		return fixture.Program{}, err
	}
	// This is controller-runtime's default folder. The program's TMPDIR is the fixture's folder.
	certs := filepath.Join(o.fixture.Dir, "k8s-webhook-server", "serving-certs")
	err = os.MkdirAll(filepath.Dir(certs), 0o700)
	if linked := os.Symlink(o.fixture.Webhooks.CertDir, certs); !errors.Is(linked, os.ErrExist) {
		err = errors.Join(err, linked)
	}
	all := slices.Concat(o.container.args, o.filled(o.target.Args), o.with("--kubeconfig="+o.user.Kubeconfig,
		"--health-probe-bind-address=0"), o.metricsSettings(), ports,
		o.certificates(o.fixture.Webhooks.CertDir), o.webhookPorts(), args)
	return fixture.Program{Name: o.user.Name, Path: o.program, Args: all, Kubeconfig: o.user.Kubeconfig,
		Env: slices.Concat([]string{"WEBHOOK_CERT_DIR=" + o.fixture.Webhooks.CertDir}, o.container.env,
			o.filled(o.target.Env))}, err
}

// probeFlag matches the usual names of the flag for the port of the probes.
var probeFlag = regexp.MustCompile(`^(health|healthz|health-probe|readyz|readiness-probe|probe)-port$`)

// probePorts are the flags that give the probes a free port, so that two replicas can run on one machine.
func (o *operator) probePorts() (args []string, err error) {
	for _, flag := range o.flags {
		if !probeFlag.MatchString(flag) {
			continue
		}
		port, err := fixture.FreePort()
		if err != nil {
			return nil, err
		}
		args = append(args, o.with(fmt.Sprintf("--%s=%d", flag, port))...)
	}
	return args, nil
}

// webhookPorts are the flags that give the webhooks a free port.
func (o *operator) webhookPorts() []string {
	var settings []string
	for _, flag := range o.flags {
		if portFlag.MatchString(flag) {
			settings = append(settings, fmt.Sprintf("--%s=%d", flag, o.webhookPort()))
		}
	}
	return o.with(settings...)
}
