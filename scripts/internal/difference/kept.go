package difference

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"strings"
)

// keepsStatus matches a value that keeps the status of an object, and keepsObject one that keeps the object.
var (
	keepsStatus = regexp.MustCompile(`^(\w+)\.Status(\.DeepCopy\(\))?$`)
	keepsObject = regexp.MustCompile(`^(\w+)\.DeepCopy\(\)$`)
)

// keptOf returns the variables of a function that keep the status of an object before a change, and the object. A reader may
// copy the status, or the whole object to use only its status. A plain copy has the same conditions as the object, so what
// changes the status in its place changes the copy, too.
func (w *walk) keptOf(f *ast.FuncDecl) map[string]string {
	kept, whole := map[string]string{}, map[string]bool{}
	uses, ofStatus, inPlace := map[string]int{}, map[string]int{}, map[string]bool{}
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			uses[node.Name]++
		case *ast.SelectorExpr:
			if name, ok := node.X.(*ast.Ident); ok && node.Sel.Name == "Status" {
				ofStatus[name.Name]++
			}
		case *ast.UnaryExpr:
			if object, _, ok := strings.Cut(w.print(node.X), ".Status"); ok && node.Op == token.AND {
				inPlace[object] = true
			}
		}
		return true
	})
	ast.Inspect(f, func(node ast.Node) bool {
		assign, ok := node.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
			return true
		}
		name, value := w.print(assign.Lhs[0]), w.print(assign.Rhs[0])
		if of := keepsStatus.FindStringSubmatch(value); of != nil && (of[2] != "" || !inPlace[of[1]]) {
			kept[name] = of[1]
		} else if of := keepsObject.FindStringSubmatch(value); of != nil {
			kept[name], whole[name] = of[1], true
		}
		return true
	})
	maps.DeleteFunc(kept, func(name, _ string) bool { return whole[name] && uses[name] != ofStatus[name]+1 })
	return kept
}

// ofKept writes each use of a variable of keptOf in one way.
func (w *walk) ofKept(key string) string {
	for name := range w.kept {
		key = regexp.MustCompile(`\*?\b`+name+`\b(?:\.Status\b)?`).ReplaceAllString(key, name)
	}
	return key
}
