package examine

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/scripts/examine/output"
)

// progress passes a message about the progress on, without data of a Secret.
func (r *run) progress(format string, args ...any) {
	r.narrator.say(r.heading, r.shownText(fmt.Sprintf(format, args...)))
}

// shownText prepares a text of the cluster, the operator or the user for a report: it hides the data of Secrets, and
// writes out characters that a terminal obeys.
func (r *run) shownText(text string) string { return output.Lines(r.secrets.Text(text)) }

// A redactedError shows no data of a Secret; errors.Is and errors.As find what it wraps.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.error }

// withoutSecrets replaces the data of Secrets in the report and in the error of the run.
func (r *run) withoutSecrets(err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), 5*time.Second)
	defer cancel()
	_ = r.secrets.Refresh(ctx, r.fixture.Kube) // the watch knows all Secrets, except the newest changes
	r.report.replace(r.shownText)
	if err == nil {
		return nil
	}
	return redactedError{err, r.shownText(err.Error())}
}

// hashes matches the hashes of values, which differ from run to run.
var hashes = regexp.MustCompile(`hash:[0-9a-f]{12}`)

// replace changes all texts of a report that come from the cluster, the operator, or the user.
func (r *Report) replace(change func(string) string) {
	lists := [][]string{r.Notes, r.Children, r.Subject.Args, r.Subject.Env, r.Creation}
	for n := range r.Findings {
		f := &r.Findings[n]
		f.Title, f.What = change(f.Title), change(f.What)
		f.ID = idOf(f.Experiment, hashes.ReplaceAllString(f.Title, "secret"))
		lists = append(lists, f.Evidence)
	}
	for _, list := range lists {
		for n := range list {
			list[n] = change(list[n])
		}
	}
}

// isSecret reports whether the data of a child are secret.
func (c child) isSecret() bool {
	return c.GVR.GroupResource() == schema.GroupResource{Resource: "secrets"}
}

// lastApplied is the annotation in which kubectl apply keeps the whole object that it sent, including data.
const lastApplied = corev1.LastAppliedConfigAnnotation

// hideData replaces secret values of a child with hashes, for a comparison.
func (t *trial) hideData(c child, object map[string]any) {
	if !c.isSecret() {
		return
	}
	data, _ := object["data"].(map[string]any)
	for key, value := range data {
		data[key] = t.secrets.Hash([]byte(t.anywhere(value)))
	}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if value, ok := annotations[lastApplied]; ok {
		annotations[lastApplied] = t.hashed(value)
	}
}

// shown formats a value of a child's field for a reader.
func (t *trial) shown(c child, p path, value any) string {
	ofData := p[0].field == "data" || p[len(p)-1].field == lastApplied
	if c.isSecret() && ofData && value != nil {
		return t.hashed(value)
	}
	return text(value)
}

// hashed is the hash of a value in the data of a Secret, which the API has in base64.
func (t *trial) hashed(value any) string { return t.secrets.Hash([]byte(decodedData(value))) }

// anywhere is a value in the data of a Secret as it would be in any other namespace: an address has the namespace.
func (t *trial) anywhere(value any) string {
	return strings.ReplaceAll(decodedData(value), t.Namespace, "NAMESPACE")
}

func decodedData(value any) string {
	encoded := fmt.Sprint(value)
	if data, err := base64.StdEncoding.DecodeString(encoded); err == nil {
		return string(data)
	}
	return encoded
}
