package difference

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A statement is the smallest part that is compared.
type statement struct {
	file string
	line int
	// A reader sees the text, in which a variable that only names a value is that value. The keys are compared.
	text, key string
	kind      Kind
}

// anyVariable is the key of a variable whose type no declaration has.
const anyVariable = "_"

// statementsOf returns the statements of all functions of a program.
func statementsOf(files Sources) []statement {
	w := walk{set: token.NewFileSet(), own: map[string]bool{}}
	parsed := map[string]*ast.File{}
	for name, data := range files {
		file := w.parse(name, data)
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || ast.IsGenerated(file) {
			continue
		}
		parsed[name] = file
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				w.own[f.Name.Name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parsed)) {
		w.file, w.imports = name, map[string]string{}
		for _, one := range parsed[name].Imports {
			from, _ := strconv.Unquote(one.Path.Value)
			if w.imports[path.Base(from)] = from; one.Name != nil {
				w.imports[one.Name.Name] = from
			}
		}
		ast.Inspect(parsed[name], w.visit)
	}
	return w.all
}

type walk struct {
	set *token.FileSet
	// own has the names of the program's functions.
	own map[string]bool
	// file is the file that is read, imports has its packages by their names, types has the variables of the function, and
	// values those that only name a value.
	file                   string
	imports, types, values map[string]string
	// kept has the variables of the function that keep a status, by their names, with the object.
	kept map[string]string
	// unread has the variables of the function that a Get fills and nothing reads.
	unread map[string]bool
	// inLoop is whether a return ends a loop.
	inLoop bool
	all    []statement
}

func (w *walk) parse(name string, data []byte) *ast.File {
	file, err := parser.ParseFile(w.set, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || file == nil {
		return &ast.File{Name: ast.NewIdent("_")}
	}
	return file
}

// visit adds the statement of a node. The expressions below a statement belong to it, its blocks and functions do not.
func (w *walk) visit(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.FuncDecl:
		w.types, w.values, w.kept, w.unread = w.typesOf(node), w.valuesOf(node), w.keptOf(node), unreadOf(node)
		for name := range w.kept {
			w.types[name] = anyVariable
		}
	case *ast.IfStmt:
		w.below(node.Init)
		switch condition, text := w.print(node.Cond), w.header(node); {
		case w.inLoop && returnsNoError(node.Body.List):
			w.insert(node.Pos(), text, "loop "+condition, EndsLoop)
		case condition == "err != nil" && !endsFunction(node.Body):
			w.insert(node.Pos(), text, "drops "+condition, Drops)
		case w.isUsual(condition):
		case endsFunction(node.Body):
			w.insert(node.Pos(), text, condition, Ends)
		default:
			w.insert(node.Pos(), text, condition, "")
		}
		w.below(node.Body, node.Else)
		return false
	case *ast.RangeStmt:
		w.loop(node)
		return false
	case *ast.FuncLit:
		outer := w.inLoop
		w.inLoop = false
		w.below(node.Body)
		w.inLoop = outer
		return false
	case *ast.CaseClause:
		for _, one := range node.List {
			w.add(one, "case ", "")
		}
		for _, one := range node.Body {
			w.below(one)
		}
		return false
	case *ast.AssignStmt:
		w.assignment(node)
		return false
	case *ast.ReturnStmt:
		for _, result := range node.Results {
			w.expression(result, "")
		}
		return false
	case *ast.ExprStmt:
		before := len(w.all)
		if w.expression(node.X, ""); len(w.all) == before+1 {
			w.all[before].key = "alone " + w.all[before].key
		}
		return false
	case *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt, *ast.IncDecStmt:
		w.add(node, "", "")
		w.functions(node)
		return false
	}
	return true
}

// loop adds the list of a loop, and the statements in it.
func (w *walk) loop(node *ast.RangeStmt) {
	if name, isVariable := node.X.(*ast.Ident); !isVariable || w.values[name.Name] != "" {
		w.add(node.X, "range ", "")
	}
	outer := w.inLoop
	w.inLoop = true
	w.below(node.Body)
	if last := len(node.Body.List) - 1; returnsNoError(node.Body.List) {
		w.insert(node.Body.List[last].Pos(), w.print(node.Body.List[last]), "loop return", EndsLoop)
	}
	w.inLoop = outer
}

// assignment adds the values that are assigned, each as a statement.
func (w *walk) assignment(node *ast.AssignStmt) {
	if len(node.Rhs) == 1 && handsOnError(node.Lhs) {
		w.expression(node.Rhs[0], "")
	} else if len(node.Lhs) == len(node.Rhs) {
		for n := range node.Lhs {
			if w.values[w.print(node.Lhs[n])] != "" {
				continue // the statements that use it have the value
			}
			if object := w.kept[w.print(node.Lhs[n])]; object != "" && node.Tok == token.DEFINE {
				w.insert(node.Pos(), w.print(node), "keep "+object+".Status", "")
				continue
			}
			if isPlain(node.Lhs[n]) && isPlain(node.Rhs[n]) {
				continue // it keeps a variable of the program
			}
			before := len(w.all)
			w.expression(node.Rhs[n], w.print(node.Lhs[n])+" "+node.Tok.String()+" ")
			if len(w.all) == before+1 {
				w.all[before].text = w.print(node)
			}
		}
		if last := len(w.all) - 1; last >= 0 && strings.HasPrefix(w.all[last].text, "_ = ") {
			w.all[last].kind = Drops
		}
	} else {
		w.add(node, "", "")
		w.functions(node)
	}
}

// header returns a condition with the statement before it.
func (w *walk) header(node *ast.IfStmt) string {
	if node.Init == nil {
		return "if " + w.print(node.Cond)
	}
	return "if " + w.print(node.Init) + "; " + w.print(node.Cond)
}

func (w *walk) below(nodes ...ast.Node) {
	for _, node := range nodes {
		switch node := node.(type) {
		case nil, *ast.Ident:
		case *ast.BlockStmt:
			for _, one := range node.List {
				ast.Inspect(one, w.visit)
			}
		default:
			ast.Inspect(node, w.visit)
		}
	}
}

// functions visits the bodies of functions in an expression.
func (w *walk) functions(node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncLit)
		if ok {
			w.visit(f)
		}
		return !ok
	})
}

// expression adds an expression. Of a chain of calls, as of a builder, each call is a statement.
func (w *walk) expression(e ast.Expr, before string) {
	var links []*ast.CallExpr
	for at := e; ; {
		call, ok := at.(*ast.CallExpr)
		if !ok {
			break
		}
		links = append(links, call)
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			break
		}
		at = selector.X
	}
	const isBuilder = 3
	if len(links) < isBuilder && !strings.Contains(w.print(e), "NewControllerManagedBy(") {
		if text := before + w.print(e); len(links) > 0 && before != "_ = " && !w.isUsual(text) {
			w.insert(e.Pos(), text, w.print(e), "") // its variable may have any name, or none
		} else {
			w.addAt(e.Pos(), text, "")
		}
		w.functions(e)
		return
	}
	for _, call := range slices.Backward(links) {
		link := *call
		if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
			link.Fun = selector.Sel
		}
		if text := w.print(&link); !w.isUsual(text) {
			w.insert(call.Rparen, text, anyVariable+"."+text, "") // of a builder, which may have a name
		}
		for _, argument := range call.Args {
			w.functions(argument)
		}
	}
}

func (w *walk) add(node ast.Node, before string, kind Kind) {
	w.addAt(node.Pos(), before+w.print(node), kind)
}

func (w *walk) addAt(at token.Pos, text string, kind Kind) {
	if !w.isUsual(text) {
		w.insert(at, text, text, kind)
	}
}

// insert adds a statement. A program chooses the names of its variables and packages, so the key has their types and
// paths.
func (w *walk) insert(at token.Pos, text, key string, kind Kind) {
	key = w.ofKept(w.expand(key))
	for _, same := range equivalents {
		key = same.form.ReplaceAllString(key, same.key)
	}
	key = chosen.ReplaceAllStringFunc(key, func(name string) string {
		if name[0] == '.' || name[0] == '"' {
			return name
		}
		return cmp.Or(w.types[name], w.imports[name], name)
	})
	if get := filled.FindStringSubmatch(text); kind == "" && get != nil && w.unread[get[1]] {
		kind = Unread
	}
	w.all = append(w.all, statement{w.file, w.set.Position(at).Line, w.expand(text), key, kind})
}

// expand writes the values of variables that only name a value.
func (w *walk) expand(text string) string {
	return chosen.ReplaceAllStringFunc(text, func(name string) string { return cmp.Or(w.values[name], name) })
}

// equivalents are expressions that have several forms.
var equivalents = []struct {
	form *regexp.Regexp
	key  string
}{
	{regexp.MustCompile(`\b(\w+)\.(?:DeletionTimestamp|GetDeletionTimestamp\(\)) != nil|!(\w+)\.GetDeletionTimestamp\(\)\.IsZero\(\)`),
		"!$1$2.DeletionTimestamp.IsZero()"},
	{regexp.MustCompile(`\bmyweb\.FieldOwner\b`), `"myweb-operator"`},
	{regexp.MustCompile(`\bctrl\.(SetControllerReference|CreateOrUpdate)\b`), "controllerutil.$1"}, // controller-runtime has both names
	{regexp.MustCompile(`err != nil && !\w+\.IsNotFound\(err\)`), "client.IgnoreNotFound(err) != nil"},
	{regexp.MustCompile(`!(\w+)\.IsNotFound\(err\)`), "$1.IsNotFound(err)"}, // the block says what it means
}

// chosen matches a name, with a dot before it when it is that of a field or a method; or a whole text in quotes.
var chosen = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\.?\b[a-zA-Z]\w*\b`)

// notName matches a character that a name cannot have: a type is one name in a key.
var notName = regexp.MustCompile(`\W`)

// isUsual reports whether a statement is in each program: it hands an error on, logs, or calls a function of the program.
func (w *walk) isUsual(text string) bool {
	switch text {
	case "err != nil", "err == nil", "ctrl.Result{}", "reconcile.Result{}":
		return true
	}
	if token.IsIdentifier(text) { // a variable, nil, true or false
		return true
	}
	name, _, isCall := strings.Cut(text, "(")
	name = name[strings.LastIndexAny(name, " .")+1:]
	return isCall && w.own[name] || strings.HasPrefix(text, "fmt.") || strings.Contains(text, "log.FromContext(") ||
		strings.HasPrefix(text, "log.") || strings.HasPrefix(text, "klog.") || strings.HasPrefix(text, "logger.")
}

// print returns a node in one line, without the bodies of functions, but for those that only return a value.
func (w *walk) print(node ast.Node) string {
	var bodies []*ast.BlockStmt
	var lists [][]ast.Stmt
	ast.Inspect(node, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncLit)
		if ok && !returnsValue(f.Body.List) {
			bodies, lists = append(bodies, f.Body), append(lists, f.Body.List)
			f.Body.List = nil
		}
		return !ok
	})
	var text bytes.Buffer
	_ = printer.Fprint(&text, token.NewFileSet(), node) // a bytes.Buffer has no errors
	for n, body := range bodies {
		body.List = lists[n]
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// returnsValue reports whether a block only returns true, false or a variable.
func returnsValue(block []ast.Stmt) bool {
	if len(block) != 1 {
		return false
	}
	end, ok := block[0].(*ast.ReturnStmt)
	return ok && len(end.Results) == 1 && isPlain(end.Results[0])
}

// handsOnError reports whether only an error is assigned.
func handsOnError(left []ast.Expr) bool {
	name, ok := left[0].(*ast.Ident)
	return ok && len(left) == 1 && name.Name == "err"
}

// returnsNoError reports whether a block ends with a return whose results have no error.
func returnsNoError(block []ast.Stmt) bool {
	if len(block) == 0 {
		return false
	}
	end, ok := block[len(block)-1].(*ast.ReturnStmt)
	return ok && !slices.ContainsFunc(end.Results, func(result ast.Expr) bool {
		name, isName := result.(*ast.Ident)
		_, isLiteral := result.(*ast.CompositeLit)
		return !isLiteral && (!isName || name.Name != "nil")
	})
}

// endsFunction reports whether a block ends with a return.
func endsFunction(block *ast.BlockStmt) bool {
	if len(block.List) == 0 {
		return false
	}
	_, ok := block.List[len(block.List)-1].(*ast.ReturnStmt)
	return ok
}
