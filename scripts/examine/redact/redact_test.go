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

// A program prints a part of a Secret, or prints the Secret inside another text.
func TestNoPartOfASecretIsLeft(t *testing.T) {
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	const password = "Zebra+Crossing/7?"
	registry := `{"auths":{"registry.example.com":{"username":"bob","auth":"` + encode("bob:"+password) + `"}}}`
	for name, secret := range map[string]string{
		"alone": password, "a line": "user\n" + password + "\n", "JSON": `{"a":{"b":["` + password + `"]}}`,
		"YAML": "users:\n- name: a\n  password: " + password + "\n", "auth for a registry": registry,
		"a DSN":             "postgres://app:" + url.QueryEscape(password) + "@db.example.com/orders?sslmode=disable",
		"a DSN of settings": "host=db user=app password=" + password + " sslmode=disable",
		"settings":          "USER=app\nPASSWORD='" + password + "'\n", "base64 in JSON": `{"token":"` + encode(password) + `"}`,
	} {
		for form, printed := range map[string]string{
			"plain": password, "upper case": strings.ToUpper(password), "lower case": strings.ToLower(password),
			"base64": encode(password), "base64 twice": encode(encode(password)),
			"JSON in base64":       encode(`{"password":"` + password + `"}`),
			"JSON in base64, +1":   encode(`{"password": "` + password + `"}`),
			"JSON in base64, +2":   encode(`{"a_password": "` + password + `"}`),
			"JSON in base64 twice": encode(encode(`{"p":"` + password + `"} and more`)),
			"of an address":        "postgres://other:" + url.QueryEscape(password) + "@db/orders",
		} {
			t.Run(name+", printed "+form, func(t *testing.T) {
				got := knowing(secret).Text("before " + printed + " after")
				if !strings.Contains(got, "hash:") || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
					t.Fatalf("%q became %q", printed, got)
				}
				for _, part := range append(fragments(password), fragments(encode(password))...) {
					if strings.Contains(got, part[2:len(part)-2]) {
						t.Errorf("%q became %q, which contains %q", printed, got, part)
					}
				}
				if strings.Contains(strings.ToLower(got), "crossing") {
					t.Errorf("%q became %q", printed, got)
				}
			})
		}
	}
}

// Usual words in a Secret stay readable.
func TestUsualWordsStayReadable(t *testing.T) {
	s := knowing("host=db user=app password=pass-word sslmode=disable\n", `{"debug":"true","level":"info","password":"abcd"}`)
	for text, want := range map[string]string{"disable is true, info": "disable is true, info", "abcd": s.Hash([]byte("abcd"))} {
		if got := s.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
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
