package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func knowing(values ...string) *Secrets {
	s, data := New(), map[string][]byte{}
	for n, value := range values {
		data[fmt.Sprint(n)] = []byte(value)
	}
	s.Learn(&corev1.Secret{Data: data})
	return s
}

func TestNoFormOfAValueIsLeft(t *testing.T) {
	const value = `p"<ä>&s\s w`
	asJSON, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"as it is": value, "JSON": string(asJSON), "JSON in JSON": string(twice), "%q": fmt.Sprintf("%q", value),
		"%+q": fmt.Sprintf("%+q", value), "bytes": fmt.Sprintf("%d", []byte(value)), "%x": fmt.Sprintf("%x", value),
		"base64":            base64.StdEncoding.EncodeToString([]byte(value)),
		"base64, no filler": base64.RawURLEncoding.EncodeToString([]byte(value)),
		"of an address":     url.QueryEscape(value), "of a path": url.PathEscape(value),
		"a field in base64, which JSON holds": `{"password":"` + base64.StdEncoding.EncodeToString([]byte(value)) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := knowing(value)
			got := s.Text("before " + form + form + " after")
			hash := s.Hash([]byte(value))
			if strings.Count(got, hash) != 2 || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Fatalf("%q became %q", form, got)
			}
			if rest := strings.ReplaceAll(got, hash, ""); len(rest) > len("before {}{} after")+2*len(`"password":""`) {
				t.Errorf("%q became %q", form, got)
			}
		})
	}
}

func TestValues(t *testing.T) {
	for name, test := range map[string]struct {
		values []string
		text   string
		want   func(s *Secrets) string
	}{
		"that overlap leave no part": {[]string{"abcdef", "efghij"}, "x abcdefghij y",
			func(s *Secrets) string { return "x " + s.Hash([]byte("abcdef")) + " y" }},
		"in one another": {[]string{"pass", "pass-word"}, "pass pass-word",
			func(s *Secrets) string { return s.Hash([]byte("pass")) + " " + s.Hash([]byte("pass-word")) }},
		"of many lines, of which a text has one": {[]string{"first line\nsecond line\n"}, "log: second line",
			func(s *Secrets) string { return "log: " + s.Hash([]byte("second line")) }},
		"that are shorter than 4 bytes are in any text": {[]string{"a", "1"}, "a 1", func(*Secrets) string { return "a 1" }},
		"that are names of objects, which each report has": {[]string{"name-of-sample"}, "name-of-sample",
			func(*Secrets) string { return "name-of-sample" }},
		"that are a part of such a name": {[]string{"sample"}, "name-of-sample sample", func(s *Secrets) string {
			return "name-of-sample " + s.Hash([]byte("sample"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := knowing(test.values...)
			s.Publish("name-of-sample")
			if got, want := s.Text(test.text), test.want(s); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestAHashIsOfOneRun(t *testing.T) {
	one, other := New(), New()
	value := []byte("password")
	hash := one.Hash(value)
	if hash != one.Hash([]byte("password")) || hash == one.Hash([]byte("Password")) {
		t.Error("within a run, equal values have equal hashes, and others have others")
	}
	if one.Hash(value) == other.Hash(value) {
		t.Error("two runs have the same hash of a value, so a dictionary would find it")
	}
}
