package difference

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// typesOf returns the types of a function's variables by their names, as far as a declaration has them; another variable may
// be any. Two variables of one type keep their names.
func (w *walk) typesOf(f *ast.FuncDecl) map[string]string {
	types, count := map[string]string{}, map[string]int{}
	add := func(name, of string) {
		if of = notName.ReplaceAllString(of, "·"); types[name] == "" && name != "_" {
			types[name] = of
			count[of]++
		}
	}
	fields := []*ast.FieldList{f.Recv, f.Type.Params}
	for _, list := range slices.DeleteFunc(fields, func(l *ast.FieldList) bool { return l == nil }) {
		for _, field := range list.List {
			for _, name := range field.Names {
				add(name.Name, strings.TrimPrefix(w.print(field.Type), "*"))
			}
		}
	}
	unknown := map[string]string{}
	ast.Inspect(f, func(node ast.Node) bool {
		if loop, ok := node.(*ast.RangeStmt); ok {
			for _, variable := range []ast.Expr{loop.Key, loop.Value} {
				if name, ok := variable.(*ast.Ident); ok {
					unknown[name.Name] = anyVariable
				}
			}
		}
		assign, ok := node.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			return true
		}
		for n, left := range assign.Lhs {
			name, isName := left.(*ast.Ident)
			if !isName {
				continue
			}
			unknown[name.Name] = anyVariable
			if len(assign.Lhs) != len(assign.Rhs) {
				continue
			}
			value := assign.Rhs[n]
			if strings.Contains(w.print(value), ".DeepCopy") {
				delete(unknown, name.Name) // a copy is not the object
			}
			if address, ok := value.(*ast.UnaryExpr); ok && address.Op == token.AND {
				value = address.X
			}
			if literal, ok := value.(*ast.CompositeLit); ok && literal.Type != nil {
				add(name.Name, w.print(literal.Type))
			}
		}
		return true
	})
	for name, of := range types {
		if delete(unknown, name); count[of] > 1 {
			delete(types, name)
		}
	}
	maps.Copy(types, unknown)
	return types
}

// filled matches a Get, and the variable that it fills.
var filled = regexp.MustCompile(`\.Get\(.*, (\w+)\)$`)

// unreadOf returns the variables of a function that are new objects or copies, and that nothing but one call of Get uses.
func unreadOf(f *ast.FuncDecl) map[string]bool {
	isNew, uses, ofGet := map[string]bool{}, map[string]int{}, map[string]int{}
	count := func(node ast.Node, in map[string]int) {
		ast.Inspect(node, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				in[name.Name]++
			}
			return true
		})
	}
	count(f, uses)
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			for n, left := range node.Lhs {
				if name, ok := left.(*ast.Ident); ok && node.Tok == token.DEFINE && len(node.Lhs) == len(node.Rhs) {
					address, isAddress := node.Rhs[n].(*ast.UnaryExpr)
					isNew[name.Name] = isAddress && address.Op == token.AND || isCopy(node.Rhs[n])
				}
			}
		case *ast.CallExpr:
			if selector, ok := node.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Get" {
				count(node, ofGet)
			}
		}
		return true
	})
	unread := map[string]bool{}
	for name := range isNew {
		unread[name] = isNew[name] && ofGet[name] > 0 && uses[name] == ofGet[name]+1
	}
	return unread
}

// isCopy reports whether an expression is a copy of an object, perhaps as another type.
func isCopy(e ast.Expr) bool {
	if as, ok := e.(*ast.TypeAssertExpr); ok {
		e = as.X
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && strings.HasPrefix(selector.Sel.Name, "DeepCopy")
}

// isPlain reports whether an expression has no field and no call.
func isPlain(e ast.Expr) bool {
	plain := true
	ast.Inspect(e, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.SelectorExpr, *ast.CallExpr, *ast.CompositeLit:
			plain = false
		}
		return plain
	})
	return plain
}

// valuesOf returns the values of a function's variables that are set once, and name the result of a call or a list. A copy, an
// answer of the API server, and what differs at each call are no names: their moment matters.
func (w *walk) valuesOf(f *ast.FuncDecl) map[string]string {
	values, count := map[string]string{}, map[string]int{}
	changes := func(all ...ast.Expr) {
		for _, e := range all {
			if name, ok := e.(*ast.Ident); ok {
				count[name.Name]++
			}
		}
	}
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Field:
			for _, name := range node.Names {
				changes(name)
			}
		case *ast.AssignStmt:
			changes(node.Lhs...)
		case *ast.RangeStmt:
			changes(node.Key, node.Value)
		case *ast.IncDecStmt:
			changes(node.X)
		case *ast.UnaryExpr:
			if node.Op == token.AND {
				changes(node.X)
			}
		}
		return true
	})
	outer := w.values
	w.values = values
	ast.Inspect(f, func(node ast.Node) bool {
		assign, ok := node.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE || len(assign.Lhs) != len(assign.Rhs) {
			return true
		}
		for n, left := range assign.Lhs {
			if name, ok := left.(*ast.Ident); ok && count[name.Name] == 1 && w.isValue(assign.Rhs[n]) {
				values[name.Name] = w.expand(w.print(assign.Rhs[n]))
			}
		}
		return true
	})
	w.values = outer
	return values
}

// moment matches a call whose result depends on when it is made, and a builder, whose calls are statements.
var moment = regexp.MustCompile(`\bctx\b|\.DeepCopy|\btime\.|\brand\.|\.Now\(|MergeFrom|NewControllerManagedBy|NewScheme|\bfunc\(`)

func (w *walk) isValue(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		return !moment.MatchString(w.print(e))
	case *ast.IndexExpr:
		return w.isValue(e.X)
	case *ast.TypeAssertExpr:
		return w.isValue(e.X)
	case *ast.CompositeLit:
		_, isList := e.Type.(*ast.ArrayType)
		_, isOther := e.Type.(*ast.SelectorExpr) // as a NamespacedName; a literal of an object has an &
		return (isList || isOther) && !moment.MatchString(w.print(e))
	}
	return false
}
