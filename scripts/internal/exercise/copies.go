package exercise

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// These shapes are about copies: an assignment copies a struct, and it does not copy the object of a pointer.
var (
	baseOf     = regexp.MustCompile(`\b(?:StrategicMergeFrom|MergeFrom)(?:WithOptions)?\((\w+)[,)]`)
	structOf   = regexp.MustCompile(`^(?:\*\w+|[\w.()*\[\]]+\.(?:Template|Spec|ObjectMeta|Status|Strategy))$`)
	elementsOf = regexp.MustCompile(`^[\w.()*\[\]]+\.(?:Containers|InitContainers|Ports|Volumes|Env|Conditions)(\[\w+\])?$`)
	wholeField = regexp.MustCompile(`^[\w.]+\.(?:Labels|Annotations|ObjectMeta|Spec|Template|Containers) = (?:map\[.*|[\w.*()]+\.` +
		`(?:Labels|Annotations|ObjectMeta|Spec|Template|Containers|GetLabels\(\)|GetAnnotations\(\)))$|` +
		`^[\w.]+\.Set(?:Labels|Annotations)\((?:map\[.*|[\w.*()]+\.(?:Labels|Annotations|GetLabels\(\)|GetAnnotations\(\)))\)$|` +
		`^[\w.]+\.(?:SetResourceVersion\(|ResourceVersion = )`)
	noNameRead = regexp.MustCompile(`^err :?= \w+\.(\w+)\(.*&appsv1\.Deployment\{\}\)$`)
)

// isPointer reports whether a variable is a pointer or an interface: a parameter of such a type, an address, or the object of
// a request.
func isPointer(f *ast.FuncDecl, name string) bool {
	parameter := regexp.MustCompile(`\b` + name + `(?:, \w+)* (?:\*|client\.Object\b)`)
	addresses, _ := nodesOf[*ast.AssignStmt](f, regexp.MustCompile(`^`+name+` :?= &`))
	requests, _ := nodesOf[*ast.CallExpr](f,
		regexp.MustCompile(`^[\w.()]+\.(?:Get|Create|Update|Patch|Delete)\(\w+, (?:.*, )?`+name+`[,)]`))
	return parameter.MatchString(printed(f.Type)) || len(addresses)+len(requests) > 0
}

// isAssigned reports whether a variable gets another object between two places.
func isAssigned(f *ast.FuncDecl, name string, from, to token.Pos) bool {
	all, _ := nodesOf[*ast.AssignStmt](f, regexp.MustCompile(`^(?:\w+, )*`+name+`(?:, \w+)* :?= `))
	return slices.ContainsFunc(all, func(a *ast.AssignStmt) bool {
		return from < a.Pos() && a.Pos() < to && !strings.HasPrefix(printed(a.Rhs[0]), name+".(")
	})
}

// aliasOf returns the assignment that makes two variables one object until a place.
func aliasOf(f *ast.FuncDecl, a, b string, until token.Pos) *ast.AssignStmt {
	all, _ := nodesOf[*ast.AssignStmt](f, regexp.MustCompile(`^(?:`+a+` :?= `+b+`|`+b+` :?= `+a+`)$`))
	for _, alias := range all {
		if alias.Pos() < until && (isPointer(f, a) || isPointer(f, b)) &&
			!isAssigned(f, a, alias.Pos(), until) && !isAssigned(f, b, alias.Pos(), until) {
			return alias
		}
	}
	return nil
}

// comparedWithItself finds a comparison of two variables that are one object.
func comparedWithItself(f *ast.FuncDecl) ast.Node {
	calls, pairs := nodesOf[*ast.CallExpr](f, compares)
	for n, call := range calls {
		if alias := aliasOf(f, pairs[n][1], pairs[n][2], call.Pos()); alias != nil {
			return alias
		}
	}
	return nil
}

// patchedFromItself finds a patch whose base is the object that is sent.
func patchedFromItself(f *ast.FuncDecl) ast.Node {
	calls, objects := nodesOf[*ast.CallExpr](f, regexp.MustCompile(`\.Patch\(\w+, (\w+), .+\)$`))
	for n, call := range calls {
		if function, ok := call.Fun.(*ast.SelectorExpr); !ok || function.Sel.Name != "Patch" || len(call.Args) < 3 {
			continue // a call around it
		}
		var base ast.Node = call.Args[2]
		named := regexp.MustCompile(`^` + regexp.QuoteMeta(printed(base)) + ` :?= `)
		if made, _ := nodesOf[*ast.AssignStmt](f, named); len(made) == 1 {
			base = made[0]
		}
		of, object := baseOf.FindStringSubmatch(printed(base)), objects[n][1]
		if of == nil || isAssigned(f, object, base.Pos(), call.Pos()) {
			continue
		}
		if of[1] == object || aliasOf(f, of[1], object, base.Pos()) != nil {
			return base
		}
	}
	return nil
}

// changedCopy finds a copy of a struct whose fields the function sets, and that nothing reads.
func changedCopy(f *ast.FuncDecl) (found ast.Node) {
	if strings.Contains(printed(f), "ac.") { // the fields of apply configurations are pointers
		return nil
	}
	isUnread := func(name string) bool {
		field := regexp.MustCompile(`^` + name + `(?:\.(?:Template|Spec|ObjectMeta|Status|Strategy))*\.\w+$`)
		set := 0
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if assign, ok := n.(*ast.AssignStmt); ok {
				for _, left := range assign.Lhs {
					if field.MatchString(printed(left)) {
						set++
					}
				}
			}
			return true
		})
		uses, _ := nodesOf[*ast.Ident](f, regexp.MustCompile(`^`+name+`$`))
		return set > 0 && len(uses) == set+1
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		name := ""
		switch n := n.(type) {
		case *ast.AssignStmt:
			value := printed(n.Rhs[0])
			if at := elementsOf.FindStringSubmatch(value); n.Tok == token.DEFINE && (structOf.MatchString(value) || at != nil && at[1] != "") {
				name = printed(n.Lhs[0])
			}
		case *ast.RangeStmt:
			if at := elementsOf.FindStringSubmatch(printed(n.X)); n.Value != nil && at != nil && at[1] == "" {
				name = printed(n.Value)
			}
		}
		if found == nil && name != "" && isUnread(name) {
			found = n
		}
		return true
	})
	return found
}

// othersReplaced finds a statement that replaces a whole field of a live object by the desired one, or a whole object.
func othersReplaced(f *ast.FuncDecl) ast.Node {
	if strings.Contains(printed(f), ".Apply(") {
		return nil
	}
	all, _ := nodesOf[ast.Stmt](f, wholeField)
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// readWithoutName finds a call that fills a Deployment without a name, although the function goes on with the one that it has
// made.
func readWithoutName(f *ast.FuncDecl) ast.Node {
	calls, functions := nodesOf[*ast.AssignStmt](f, noNameRead)
	made, _ := nodesOf[*ast.AssignStmt](f, makes)
	for n, call := range calls {
		for _, m := range made {
			for _, left := range m.Lhs {
				uses, _ := nodesOf[*ast.CallExpr](f, regexp.MustCompile(`[( ]`+printed(left)+`[,)]`))
				isLater := func(use *ast.CallExpr) bool { return use.Pos() > call.End() }
				if hasName(printed(call), printed(left)) && !strings.HasPrefix(functions[n][1], "Delete") && slices.ContainsFunc(uses, isLater) {
					return call
				}
			}
		}
	}
	return nil
}
