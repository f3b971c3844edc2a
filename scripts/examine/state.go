package examine

import (
	"context"
	"errors"
	"net"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/state"
)

const restlessFields = `\.(uid|resourceVersion|namespace|managedFields|clusterIPs?|creationTimestamp|` +
	`generation|observedGeneration|last\w+Time)\b|\.ownerReferences\[\d+\]\.uid`

var (
	// restless are the paths that change with every write of an object.
	restless = regexp.MustCompile(restlessFields)
	// masked are the paths that differ in every life of an object: the cluster chooses ports, too.
	masked = regexp.MustCompile(restlessFields + `|\.(nodePort|healthCheckNodePort)\b`)
	// free are the paths whose names the operator chooses.
	free = regexp.MustCompile(`\.(annotations|labels|matchLabels|selector|data|binaryData)\.`)
	// revision is a path that the controller of Deployments writes.
	revision = regexp.MustCompile(`\.annotations\.deployment\.kubernetes\.io/revision`)
)

// isMasked reports whether a path within an object is masked: by the name of a field, and not by a name that the
// operator chose, such as that of an annotation.
func isMasked(path string, masked *regexp.Regexp) bool {
	return revision.MatchString(path) || masked.MatchString(path) && !free.MatchString(path)
}

// observe reads the state, without fields that differ in every life.
func (t *trial) observe() (state.State, error) { return t.observeWithout(masked) }

// observeWithout reads the state. It omits the status of the children, because controllers of the cluster write it, and
// that of a sample of a built-in kind unless the operator writes it.
func (t *trial) observeWithout(masked *regexp.Regexp) (state.State, error) {
	all, uids := state.State{}, []string{}
	own := t.own()
	for _, c := range append(slices.Clone(t.children), own) {
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		uids = append(uids, string(u.GetUID()), "UID")
		if c != own || t.target.builtIn && !t.writesStatus {
			delete(u.Object, "status")
		}
		t.hideData(c, u.Object)
		all.Add(c.String(), u.Object, func(path string) bool {
			return isMasked(strings.TrimPrefix(path, c.String()), masked)
		})
	}
	names := strings.NewReplacer(append(uids, t.Namespace, "NAMESPACE")...)
	for path, value := range all {
		if all[path] = names.Replace(value); slices.Contains(t.nodes, value) {
			all[path] = "NODE" // the scheduler chooses it
		}
	}
	return all, nil
}

// A differenceError lists the differences between an end state and the undisturbed end state.
type differenceError []string

func (d differenceError) Error() string { return strings.Join(d, "\n") }

// failedBy is the finding about an error: skipped when the time of the trial was over.
func failedBy(err error) Finding {
	var different differenceError
	switch {
	case errors.Is(err, errOver):
		return unfinished(errOver)
	case errors.As(err, &different):
		return failed("the end is not that of an undisturbed run").with(different...)
	}
	return failed("%v", err)
}

// unfinished is the finding of a trial that the lab did not finish.
func unfinished(why error) Finding {
	f := skipped("%v", why)
	f.Left, f.Of = 1, 1
	return f
}

// isTimeout reports whether the lab's API server, or its etcd, had no answer in time, as on a machine whose disk is full.
func isTimeout(err error) bool {
	var connection net.Error // such as a TLS handshake
	if errors.As(err, &connection) && connection.Timeout() && !errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	return errors.Is(err, fixture.ErrNotInForce) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "etcdserver: request timed out")
}

// onlyAnnotations reports whether the states differ only in annotations of objects, such as a hash that depends on the
// generation. An annotation in a pod template restarts pods, and is not meant.
func (d differenceError) onlyAnnotations() bool {
	return !slices.ContainsFunc(d, func(line string) bool {
		object, path, _ := strings.Cut(line, ".metadata.")
		return strings.Contains(object, ".spec.") || !strings.HasPrefix(path, "annotations")
	})
}

// asUndisturbed returns nil when the state is that of an undisturbed run.
func (t *trial) asUndisturbed() error {
	got, err := t.observe()
	if err != nil {
		return err
	}
	return t.asUndisturbedIn(got)
}

// asUndisturbedIn returns nil when a state is that of an undisturbed run.
func (t *trial) asUndisturbedIn(got state.State) error {
	return goal{t.state, t.varying}.isReached(got)
}
