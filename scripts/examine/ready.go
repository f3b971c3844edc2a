package examine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

var readyPath = regexp.MustCompile(`^(?:jsonpath=)?(\{.*\})=(.*)$`)

// checkReady returns an error when READY= is invalid.
func checkReady(ready string) error {
	if m := readyPath.FindStringSubmatch(ready); m != nil {
		return jsonpath.New("ready").Parse(m[1])
	}
	if ready != "" && !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.-]*$`).MatchString(ready) {
		return fmt.Errorf("READY=%s is neither {jsonpath}=value nor the name of a condition: for example "+
			"READY={.status.phase}=Running", ready)
	}
	return nil
}

// isReady returns nil when an object reports that it is ready.
func isReady(ready string, u *unstructured.Unstructured) error {
	if observed, ok, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); ok &&
		observed != u.GetGeneration() {
		return fmt.Errorf("status.observedGeneration is %d, and the generation is %d", observed, u.GetGeneration())
	}
	if m := readyPath.FindStringSubmatch(ready); m != nil {
		return matchesPath(u, m[1], m[2])
	}
	c := readyCondition(ready, u)
	switch {
	case c == nil && ready != "":
		return fmt.Errorf("it has no condition %s", ready)
	case c == nil || c["status"] == "True":
		return nil
	}
	return fmt.Errorf("the condition %v is %v: %v %v", c["type"], c["status"], c["reason"], c["message"])
}

// readyCondition is the condition by which an object reports that it is ready, nil when it has none.
func readyCondition(ready string, u *unstructured.Unstructured) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		if c["type"] == ready || ready == "" && (c["type"] == "Ready" || c["type"] == "Available") {
			return c
		}
	}
	return nil
}

func matchesPath(u *unstructured.Unstructured, path, want string) error {
	j := jsonpath.New("ready").AllowMissingKeys(true)
	if err := j.Parse(path); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := j.Execute(&out, u.Object); err != nil {
		return err
	}
	if out.String() != want {
		return fmt.Errorf("%s is %q, not %q", path, out.String(), want)
	}
	return nil
}

var errNothing = errors.New("the operator has written nothing for it")

// saysWhy reports whether an error explains why a sample is not ready.
func saysWhy(err error) bool {
	return errors.As(err, new(refusedError)) || errors.Is(err, errFailing) || errors.As(err, new(underWayError))
}

// await returns when the sample is ready, all objects that the operator asked for exist, its errors do not grow, no
// reconcile is under way, and it has stopped writing.
func (t *trial) await(within time.Duration) error {
	errs, work := t.newFailing(), reconciling{began: t.began}
	look := func() error {
		u, err := t.sample()
		if err != nil {
			return err
		}
		if len(t.Changes(0)) == 0 && len(t.target.Ready) == 0 {
			return errors.Join(beingRefused(t.Writes(0)), errNothing)
		}
		m := t.metrics()
		failing := errs.look(t, m) // in each look, so that it knows the pauses between errors when all else is ready
		if err := isReady(t.target.Ready, u); err != nil {
			return errors.Join(err, beingRefused(t.Writes(0)))
		}
		if err := t.converged(); err != nil {
			return err
		}
		return cmp.Or(failing, t.underWay(&work, m))
	}
	ready := func() error {
		err := t.Eventually(within, look)
		if err == nil {
			return nil
		}
		m := t.metrics()
		for _, why := range []error{t.converged(), errs.look(t, m), t.underWay(&work, m)} {
			if why != nil && !saysWhy(err) && !strings.Contains(err.Error(), why.Error()) {
				err = fmt.Errorf("%w; %w", err, why)
			}
		}
		return fmt.Errorf("the sample is not ready after %v: %w", within, t.orAsksPods(err))
	}
	if err := ready(); err != nil {
		return err
	}
	if err := t.quiet(600 * time.Millisecond); err != nil && !errors.Is(err, errRestless) {
		return err
	}
	return ready() // the sample may have had no condition at first, and looked ready
}
