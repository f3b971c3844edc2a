package exercise

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/google/shlex"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/specification"
)

// questions asks a reader for a specification.
type questions struct {
	in   *bufio.Reader
	out  io.Writer
	plan specification.Specification
}

// Ask makes a specification from answers. A wrong answer is asked for again. Unless kind is empty, it is the first
// answer.
func Ask(in io.Reader, out io.Writer, kind string) (specification.Specification, error) {
	q := &questions{in: bufio.NewReader(in), out: out}
	if q.plan.Kind = kind; len(q.wrong("kind")) > 0 {
		q.report("kind")
		if err := q.ask("kind", "Kind", "Greeting", func(a string) { q.plan.Kind = a }); err != nil {
			return q.plan, err
		}
	}
	var numbers []string
	for n, child := range specification.KnownChildren {
		numbers = append(numbers, fmt.Sprintf("%d %s", n+1, child))
	}
	err := q.ask("group", "Group of the API", "example.com", func(a string) { q.plan.Group = a })
	if err == nil {
		err = q.ask("children", "Children, by number or name ("+strings.Join(numbers, ", ")+")", "1", func(a string) {
			q.plan.Children = childrenOf(a)
		})
	}
	if err == nil {
		err = q.fields()
	}
	if err == nil {
		err = q.ask("conditions", "Conditions", "Ready", func(a string) { q.plan.Conditions = listed(a) })
	}
	return q.plan, err
}

// wrong are the mistakes of a part of the plan.
func (q *questions) wrong(part string) []error {
	return slices.DeleteFunc(q.plan.Mistakes(), func(err error) bool { return !strings.HasPrefix(err.Error(), part) })
}

// report prints the first mistake of a part that has an answer.
func (q *questions) report(part string) {
	if wrong := q.wrong(part); q.plan.Kind != "" && len(wrong) > 0 {
		fmt.Fprintln(q.out, " ", wrong[0])
	}
}

// ask asks until an answer makes a right part of the plan. Without an answer it takes the usual one.
func (q *questions) ask(part, question, usual string, take func(answer string)) error {
	for {
		answer, err := q.answer(fmt.Sprintf("%s [%s]: ", question, usual))
		if err != nil {
			return err
		}
		if take(cmp.Or(answer, usual)); len(q.wrong(part)) == 0 {
			return nil
		}
		q.report(part)
	}
}

func (q *questions) answer(question string) (string, error) {
	fmt.Fprint(q.out, question)
	line, err := q.in.ReadString('\n')
	if err != nil && strings.TrimSpace(line) == "" {
		return "", errors.New("the answers ended before the specification was complete; nothing was changed")
	}
	return strings.TrimSpace(line), nil
}

// fields asks for fields, one a line, until a line is empty.
func (q *questions) fields() error {
	fmt.Fprintf(q.out, "Fields of spec, one a line; an empty line ends them. For example:\n"+
		"  message string default=Hello maxLength=40 reaches=%[1]s\n  size integer minimum=1 maximum=3 reaches=%[1]s\n"+
		"Types: %[2]s. Limits: minimum, maximum, maxLength, enum=a,b. Without a default the field is required.\n",
		q.plan.Children[0], strings.Join(specification.Types, ", "))
	for {
		answer, err := q.answer("Field: ")
		switch {
		case err != nil:
			return err
		case answer == "" && len(q.plan.Fields) > 0:
			return nil
		}
		f, err := fieldOf(answer, q.plan.Children)
		if err != nil {
			fmt.Fprintln(q.out, " ", err)
			continue
		}
		n := len(q.plan.Fields)
		if q.plan.Fields = append(q.plan.Fields, f); len(q.wrong(fmt.Sprintf("fields[%d]", n))) > 0 {
			q.report(fmt.Sprintf("fields[%d]", n))
			q.plan.Fields = q.plan.Fields[:n]
		}
	}
}

// fieldOf reads a field: its name, its type, and settings such as default=Hello. The only child needs no reaches.
func fieldOf(line string, children []string) (f specification.Field, err error) {
	words, err := shlex.Split(line)
	if err != nil || len(words) < 2 {
		return f, errors.New("a field has a name and a type: message string reaches=ConfigMap")
	}
	settings := []string{fmt.Sprintf("name: %q, type: %q", words[0], words[1])}
	for _, word := range words[2:] {
		name, value, given := strings.Cut(word, "=")
		switch {
		case !given:
			return f, fmt.Errorf("%q has no value: write %s=VALUE", word, word)
		case name == "reaches" || name == "enum":
			value = "[" + value + "]"
		case words[1] == "string" && name == "default":
			value = strconv.Quote(value)
		}
		settings = append(settings, name+": "+value)
	}
	if err := yaml.UnmarshalStrict([]byte("{"+strings.Join(settings, ", ")+"}"), &f); err != nil {
		return f, fmt.Errorf("%s: this is not a field: the settings are default, minimum, maximum, maxLength, enum and "+
			"reaches", line)
	}
	if len(f.Reaches) == 0 && len(children) == 1 {
		f.Reaches = children
	}
	return f, nil
}

// childrenOf reads numbers and names of children.
func childrenOf(answer string) (names []string) {
	for _, word := range listed(answer) {
		if n, err := strconv.Atoi(word); err == nil && n > 0 && n <= len(specification.KnownChildren) {
			word = specification.KnownChildren[n-1]
		}
		names = append(names, word)
	}
	return names
}

// listed splits a list with commas or blanks.
func listed(answer string) []string {
	return strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' })
}
