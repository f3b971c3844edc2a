package redact

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

const (
	// longEnough is the least length of a string inside a value that is replaced in texts whatever its name is. A shorter
	// string may be a usual word, such as "true" or "admin".
	longEnough = 8
	// deepest is how many values may be in one another: a password in base64 in a JSON document is the third.
	deepest = 4
)

// A credential is the name of a field whose value is secret, also when it is short.
var credential = regexp.MustCompile(`(?i)pass|pwd|secret|token|auth|key|credential|cookie|private`)

// assignment is a line of a file of settings, or a part of a list of settings such as "host=db password=x".
var assignment = regexp.MustCompile(`([A-Za-z][\w.-]*)"?\s*[=:]\s*("[^"]*"|'[^']*'|[^\s;&,{}\[\]"']+)`)

// embedded calls add for the strings inside a value: its lines, the fields of JSON and YAML, settings, the passwords of
// URLs, and the contents of base64.
func embedded(value string, depth int, add func(string)) {
	if depth == deepest {
		return
	}
	found := func(name, part string) {
		if len(part) >= longEnough || credential.MatchString(name) {
			add(part)
			embedded(part, depth+1, add)
		}
	}
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			add(strings.TrimSpace(line))
		}
	}
	for _, setting := range assignment.FindAllStringSubmatch(value, -1) {
		found(setting[1], strings.Trim(setting[2], `"'`))
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		password, _ := u.User.Password()
		found("password", password)
		_, encoded, _ := strings.Cut(u.User.String(), ":")
		found("password", encoded)
	} else if text, ok := decoded(value); ok {
		add(text)
		if _, password, ok := strings.Cut(text, ":"); ok { // auth of a file for a registry: user:password
			found("password", password)
		}
		embedded(text, depth+1, add)
	}
	var document any
	if yaml.Unmarshal([]byte(value), &document) == nil {
		eachField("", document, found)
	}
}

// eachField calls found for each field of a document that is not a document itself.
func eachField(name string, document any, found func(name, value string)) {
	switch d := document.(type) {
	case map[string]any:
		for key, value := range d {
			eachField(key, value, found)
		}
	case []any:
		for _, value := range d {
			eachField(name, value, found)
		}
	default:
		if name != "" {
			found(name, fmt.Sprint(d))
		}
	}
}

// decoded is the text that a value contains in base64.
func decoded(value string) (string, bool) {
	if len(value) < longEnough {
		return "", false
	}
	for _, encoding := range encodings {
		if data, err := encoding.DecodeString(value); err == nil && utf8.Valid(data) {
			return string(data), true
		}
	}
	return "", false
}

var encodings = []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding}

// shortestFragment is the least length of a part of a base64 text that is replaced.
const shortestFragment = 6

// fragments are the parts of base64 texts that a value in any longer text makes: three for each alphabet, because the
// value may begin at each byte of three. The characters at both ends, which also depend on the bytes around the value,
// are left out.
func fragments(value string) (all []string) {
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for offset := range 3 {
			text := encoding.EncodeToString(append(make([]byte, offset), value...))
			first, end := (offset*8+5)/6, (offset+len(value))*8/6
			if end-first >= shortestFragment {
				all = append(all, text[first:end])
			}
		}
	}
	return all
}
