package exercise

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/internal/difference"
)

// shapes are mistakes that no single statement shows: the statements of one function use the same variable, or another one.
// Each returns the statement that a reader must change, or none.
var shapes = map[string]func(*ast.FuncDecl) ast.Node{
	"another object sent":    anotherSent,
	"read over the status":   readOverStatus,
	"status of a new object": statusOfNew,
	"compared with itself":   comparedWithItself,
	"patched from itself":    patchedFromItself,
	"changed copy":           changedCopy,
	"others replaced":        othersReplaced,
	"read without a name":    readWithoutName,
}

// shaped returns the statements of a program that have a shape, as differences. Those of all are about the same lines.
func shaped(shape string, files map[string][]byte, all []difference.Difference) (places []difference.Difference) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, files[name], parser.SkipObjectResolution)
		if err != nil { // another language
			continue
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			node := shapes[shape](f)
			if node == nil {
				continue
			}
			place := difference.Difference{File: name, Line: set.Position(node.Pos()).Line, Statement: printed(node), Kind: difference.Shown}
			if at := slices.IndexFunc(all, func(d difference.Difference) bool { return d.Place() == place.Place() }); at >= 0 &&
				all[at].Kind == "" {
				place = all[at]
			}
			places = append(places, place)
		}
	}
	return places
}

// printed returns a node in one line.
func printed(node ast.Node) string {
	var text bytes.Buffer
	_ = printer.Fprint(&text, token.NewFileSet(), node) // a bytes.Buffer has no errors
	return strings.Join(strings.Fields(text.String()), " ")
}

// nodesOf returns the nodes of a function of one type, in their order, whose text a pattern matches, with the groups.
func nodesOf[T ast.Node](f *ast.FuncDecl, pattern *regexp.Regexp) (nodes []T, groups [][]string) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if node, ok := n.(T); ok {
			if match := pattern.FindStringSubmatch(printed(n)); match != nil {
				nodes, groups = append(nodes, node), append(groups, match)
			}
		}
		return true
	})
	return nodes, groups
}

var (
	anything    = regexp.MustCompile("")
	setsStatus  = regexp.MustCompile(`^(\w+)\.Status(?:\.\w+)* = `)
	sendsStatus = regexp.MustCompile(`\.(?:Status\(\)\.(?:Update|Patch)|UpdateStatus)\(\w+, (\w+)[,)]`)
	reads       = regexp.MustCompile(`\.Get\(\w+, .*, (\w+)\)$`)
	makes       = regexp.MustCompile(`\bNew[A-Z]\w*\(`)
	compares    = regexp.MustCompile(`\b(?:DeepEqual|DeepDerivative)\((\w+)(?:\.\w+)*, (\w+)(?:\.\w+)*\)`)
)

// anotherSent finds a write of the status of a variable whose Status the function never sets, although it sets that of
// another. A statement with both variables may copy the status, unless it is a read.
func anotherSent(f *ast.FuncDecl) ast.Node {
	_, set := nodesOf[*ast.AssignStmt](f, setsStatus)
	sent, names := nodesOf[*ast.CallExpr](f, sendsStatus)
	for n, call := range sent {
		name := names[n][1]
		isSet := func(match []string) bool { return match[1] == name }
		if len(set) == 0 || slices.ContainsFunc(set, isSet) {
			continue
		}
		copies := func(statement ast.Stmt) bool {
			text := printed(statement)
			return hasName(text, name) && (hasName(text, set[0][1]) || strings.Contains(text, name+".Status")) &&
				!strings.Contains(text, ".Get(") && !strings.Contains(text, "func(")
		}
		assigned, _ := nodesOf[*ast.AssignStmt](f, anything)
		called, _ := nodesOf[*ast.ExprStmt](f, anything)
		if !slices.ContainsFunc(assigned, func(a *ast.AssignStmt) bool { return copies(a) }) &&
			!slices.ContainsFunc(called, func(e *ast.ExprStmt) bool { return copies(e) }) {
			return call
		}
	}
	return nil
}

// hasName reports whether a text has a name as a word.
func hasName(text, name string) bool {
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(text)
}

// readOverStatus finds a read into a variable whose Status the function has set before, and sends later.
func readOverStatus(f *ast.FuncDecl) ast.Node {
	set, names := nodesOf[*ast.AssignStmt](f, setsStatus)
	got, into := nodesOf[*ast.CallExpr](f, reads)
	sent, of := nodesOf[*ast.CallExpr](f, sendsStatus)
	for n, read := range got {
		name := into[n][1]
		for s := range set {
			for u := range sent {
				if names[s][1] == name && of[u][1] == name && set[s].Pos() < read.Pos() && read.Pos() < sent[u].Pos() {
					return read
				}
			}
		}
	}
	return nil
}

// statusOfNew finds a call of StatusFor with an object that the function makes, and gives to nothing else.
func statusOfNew(f *ast.FuncDecl) ast.Node {
	calls, _ := nodesOf[*ast.CallExpr](f, regexp.MustCompile(`^(?:\w+\.)?StatusFor\(`))
	for _, call := range calls {
		for _, argument := range call.Args {
			name, isName := argument.(*ast.Ident)
			switch {
			case !isName && makes.MatchString(printed(argument)):
				return call
			case isName && name.Name != "nil":
				made, _ := nodesOf[*ast.AssignStmt](f, regexp.MustCompile(`^(?:\w+, )*`+name.Name+`(?:, \w+)* := .*\bNew[A-Z]\w*\(`))
				if uses, _ := nodesOf[*ast.Ident](f, regexp.MustCompile(`^`+name.Name+`$`)); len(made) == 1 && len(uses) == 2 {
					return call
				}
			}
		}
	}
	return nil
}
