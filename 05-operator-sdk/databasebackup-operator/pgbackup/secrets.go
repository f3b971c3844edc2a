package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// secretVariables hold values of Secrets. The user's name is a secret too: a wrong reference may put a password there.
var secretVariables = []string{"PGUSER", "PGPASSWORD", "PGSSLPASSWORD"}

// shortest is the length, in bytes, of the shortest part of a secret that is recognized in a text of another program.
// A whole secret is always recognized there.
const shortest = 8

// A filter keeps values of Secrets out of the texts that leave the process.
type filter struct {
	forms []string // the values, as programs write them
	// public are settings that everybody may read in the resource. They stay readable.
	public []string
	// own filters a text that this program wrote: stars replace a whole secret. It looks neither for parts of secrets
	// nor for short ones: stars in place of a common word in a known sentence would give the secret away.
	own func(text string) string
}

func newFilter(c Config) (f filter) {
	for _, pair := range c.environ {
		key, value, _ := strings.Cut(pair, "=")
		if !slices.Contains(secretVariables, key) {
			continue
		}
		for _, part := range append(strings.FieldsFunc(value, endsLine), value) {
			if part = strings.TrimSpace(part); part != "" {
				f.forms = append(f.forms, formsOf(part)...)
			}
		}
	}
	for _, text := range []string{c.Host, c.Dir, c.Name, c.Owner, c.Database, maintenance} {
		if text != "" {
			f.public = append(f.public, text)
		}
	}
	f.own = replacer(f.forms, append(sentences(), f.public...))
	return f
}

// replacer replaces secrets by stars, but not inside the texts that are kept.
func replacer(secrets, kept []string) func(string) string {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(secret string) bool { return len(secret) < shortest })
	// The longest secret first: a secret may be a part of another secret.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, text := range kept {
		if slices.ContainsFunc(secrets, func(secret string) bool { return strings.Contains(text, secret) }) {
			pairs = append(pairs, text, text)
		}
	}
	for _, secret := range secrets {
		pairs = append(pairs, secret, "***")
	}
	return strings.NewReplacer(pairs...).Replace
}

func endsLine(r rune) bool { return r == '\n' || r == '\r' }

// formsOf are the ways in which this program, a PostgreSQL program or the server writes a value.
func formsOf(value string) []string {
	quoted := strconv.Quote(value)
	encoded, _ := json.Marshal(value) // a string can always be encoded
	return []string{
		value, quoted[1 : len(quoted)-1], string(encoded[1 : len(encoded)-1]),
		strings.ToValidUTF8(value, "?"), oneLine(value),
		strings.ReplaceAll(value, `'`, `''`), strings.ReplaceAll(value, `"`, `""`),
		strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value),
	}
}

// fromTool filters a line that another program wrote. A sentence of this package replaces a line about the identity of
// the user. A line with a secret, or a part of a secret, is withheld completely.
func (f filter) fromTool(line string) string {
	rest := line
	for _, text := range f.public { // a database may have the name of the user, or a name that looks like a message
		rest = strings.ReplaceAll(rest, `"`+text+`"`, `"?"`)
	}
	for _, about := range connectionPatterns {
		if about.sentence != "" && strings.Contains(rest, about.text) {
			return about.sentence
		}
	}
	for _, form := range f.forms {
		if strings.Contains(rest, form) || sharePart(rest, form) {
			return withheld
		}
	}
	return line
}

// sharePart reports whether a text has shortest bytes in a row of another one.
func sharePart(text, other string) bool {
	for i := 0; i+shortest <= len(text); i++ {
		if strings.Contains(other, text[i:i+shortest]) {
			return true
		}
	}
	return false
}

const withheld = "the message is withheld, because it contains a part of a Secret: the log of the server has it"

// sentences returns the sentences that replace a message.
func sentences() []string {
	all := []string{withheld}
	for _, about := range connectionPatterns {
		if about.sentence != "" {
			all = append(all, about.sentence)
		}
	}
	return all
}
