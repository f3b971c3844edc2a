package testenv

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Refusal is the answer of an API server that refuses a request.
func Refusal(code int, reason string) (*http.Response, error) {
	body := fmt.Sprintf(
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","reason":%q,"code":%d}`, reason, code)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}

// DieAfter returns a function that lets so many writes reach the API server. The answer to the last one does not
// come back, and nothing is sent any more: the process is dead. A request begins with its method, LIST for a list.
func DieAfter(writes int) func(request string, pass func() (*http.Response, error)) (*http.Response, error) {
	return func(request string, pass func() (*http.Response, error)) (*http.Response, error) {
		read := strings.HasPrefix(request, http.MethodGet) || strings.HasPrefix(request, "LIST")
		if writes > 0 && !read {
			if writes--; writes == 0 {
				if response, err := pass(); err == nil {
					response.Body.Close()
				}
			}
		}
		if writes == 0 {
			return nil, errors.New("the process is dead")
		}
		return pass()
	}
}

// Recorded returns the events that a fake recorder has recorded since the last call, as "type reason".
func Recorded(events <-chan string) (all []string) {
	for len(events) > 0 {
		words := strings.Fields(<-events)
		all = append(all, words[0]+" "+words[1])
	}
	return all
}
