package composite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A Request goes to the sync hook, in Metacontroller's format.
type Request struct {
	Controller *Config                    `json:"controller"`
	Parent     *unstructured.Unstructured `json:"parent"`
	// Children that the parent controls, by "Kind.apiVersion" and name. Each kind has an entry, also without children.
	Children   map[string]map[string]*unstructured.Unstructured `json:"children"`
	Finalizing bool                                             `json:"finalizing"`
}

// A Response is the answer of the hook.
type Response struct {
	Status   map[string]any   `json:"status"`
	Children []map[string]any `json:"children"`
}

// maxResponse limits the size of an answer: it is more than all children of a parent can need.
const maxResponse = 16 << 20

// ask sends a request to the sync hook.
func (r *Reconciler) ask(ctx context.Context, request Request) (*Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/json")
	answer, err := r.hook.Do(post)
	if err != nil {
		return nil, fmt.Errorf("ask the sync hook: %w", err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	if err != nil {
		return nil, fmt.Errorf("read the answer of the sync hook: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the sync hook answered %s: %s", answer.Status,
			strings.TrimSpace(string(data[:min(len(data), 200)])))
	}
	response := &Response{}
	if err := utiljson.Unmarshal(data, response); err != nil { // it keeps integers, as the API does
		return nil, fmt.Errorf("read the answer of the sync hook: %w", err)
	}
	return response, nil
}
