package testenv

import (
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
