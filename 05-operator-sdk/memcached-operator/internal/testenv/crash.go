package testenv

import (
	"errors"
	"net/http"
	"strings"
)

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
