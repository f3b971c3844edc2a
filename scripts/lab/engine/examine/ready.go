package examine

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
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
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		named := c["type"] == ready || ready == "" && (c["type"] == "Ready" || c["type"] == "Available")
		if named && c["status"] == "True" {
			return nil
		}
		if named {
			return fmt.Errorf("the condition %v is %v: %v %v", c["type"], c["status"], c["reason"], c["message"])
		}
	}
	if ready != "" {
		return fmt.Errorf("it has no condition %s", ready)
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

// await returns when the sample is ready, all objects that the operator asked for exist, its errors do not grow, and
// it has stopped writing.
func (t *trial) await(within time.Duration) error {
	errs := t.newFailing()
	look := func() error {
		u, err := t.sample()
		if err != nil {
			return err
		}
		if len(t.changes(0)) == 0 && len(t.target.Ready) == 0 {
			return errors.Join(beingRefused(t.writes(0)), errNothing)
		}
		failing := errs.look(t) // in each look, so that it knows the pauses between errors when all else is ready
		if err := isReady(t.target.Ready, u); err != nil {
			return errors.Join(err, beingRefused(t.writes(0)))
		}
		if err := t.converged(); err != nil {
			return err
		}
		return failing
	}
	if err := t.eventually(within, look); err != nil {
		if failing := errs.look(t); errors.Is(failing, errFailing) && !errors.As(err, new(refusedError)) {
			err = fmt.Errorf("%w; %w", err, failing)
		}
		return fmt.Errorf("the sample is not ready after %v: %w", within, err)
	}
	if err := t.quiet(600 * time.Millisecond); err != nil && !errors.Is(err, errRestless) {
		return err
	}
	return t.eventually(within, look) // the sample may have had no condition at first, and looked ready
}
