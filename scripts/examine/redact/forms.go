package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// formsOf are the forms in which logs and messages contain a value: plain, in upper and lower case, encoded, and each of
// these escaped. A log of JSON lines escapes the message of an error twice. A text that was encoded as a whole contains a
// fragment of base64, and twice encoded a fragment of a fragment.
func formsOf(value string) (all []string) {
	data := []byte(value)
	encoded := []string{value, strings.ToUpper(value), strings.ToLower(value), fmt.Sprintf("%x", data),
		fmt.Sprintf("%X", data), strings.Trim(fmt.Sprintf("%d", data), "[]")}
	for _, encoding := range encodings {
		once := encoding.EncodeToString(data)
		encoded = append(encoded, once, encoding.EncodeToString([]byte(once)))
	}
	for _, once := range fragments(value) {
		encoded = append(encoded, once)
		encoded = append(encoded, fragments(once)...)
	}
	slices.Sort(encoded)
	encoded = slices.Compact(encoded)
	for _, form := range encoded {
		all = append(all, form, url.QueryEscape(form), url.PathEscape(form), html.EscapeString(form))
		for _, once := range escaped(form) {
			all = append(all, once)
			all = append(all, escaped(once)...)
		}
	}
	return all
}

// escaped are the forms in which JSON and Go write a text between quotes.
func escaped(text string) []string {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string is always encoded
	safe, _ := json.Marshal(text)
	return []string{unquoted(strings.TrimSpace(plain.String())), unquoted(string(safe)), unquoted(strconv.Quote(text)),
		unquoted(strconv.QuoteToASCII(text))}
}

func unquoted(text string) string { return text[1 : len(text)-1] }
