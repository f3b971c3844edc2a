// Package terms is a linter for the words of this repository: identifiers, file names and strings use the terms of the
// Kubernetes documentation. Vale checks pages and comments against the same list.
package terms

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"
	"sigs.k8s.io/yaml"
)

var (
	//go:embed identifiers.yaml
	identifiersFile []byte
	//go:embed styles/Workshop/Terms.yml
	termsFile []byte
	//go:embed styles/Workshop/Sentences.yml
	sentencesFile []byte

	identifiers = readIdentifiers()
	terms       = readPhrases(termsFile)
	habits      = readPhrases(sentencesFile)
)

func init() {
	register.Plugin("terms", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return []*analysis.Analyzer{Analyzer}, nil
}

func (plugin) GetLoadMode() string { return register.LoadModeSyntax }

// Analyzer reports words that the workshop does not use.
var Analyzer = &analysis.Analyzer{Name: "terms", Doc: "reports words that the workshop does not use", Run: run}

func run(pass *analysis.Pass) (any, error) {
	for _, file := range pass.Files {
		name := filepath.Base(pass.Fset.Position(file.Package).Filename)
		checkName(pass, file.Package, "file", strings.TrimSuffix(name, ".go"))
		checkName(pass, file.Name.Pos(), "package", file.Name.Name)
		phrases := terms
		if !strings.HasSuffix(name, "_test.go") { // a reader of the workshop sees these strings
			phrases = slices.Concat(terms, habits)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if _, isImport := n.(*ast.ImportSpec); isImport {
				return false
			}
			if literal, isLiteral := n.(*ast.BasicLit); isLiteral {
				checkString(pass, literal, phrases)
			}
			for _, identifier := range declared(n) {
				checkName(pass, identifier.Pos(), "identifier", identifier.Name)
			}
			return true
		})
	}
	return nil, nil
}

// declared returns the identifiers that a node declares.
func declared(n ast.Node) (names []*ast.Ident) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			names = identifiersOf(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			names = identifiersOf(n.Key, n.Value)
		}
	}
	return names
}

func identifiersOf(expressions ...ast.Expr) (names []*ast.Ident) {
	for _, e := range expressions {
		if name, ok := e.(*ast.Ident); ok {
			names = append(names, name)
		}
	}
	return names
}

func checkName(pass *analysis.Pass, at token.Pos, what, name string) {
	if instead, bad := identifiers.Names[strings.ToLower(name)]; bad {
		pass.Reportf(at, "%s %s: use %s", what, name, instead)
	}
	for _, word := range words(name) {
		if instead, bad := identifiers.Parts[word]; bad {
			pass.Reportf(at, "%s %s: use %s instead of %q", what, name, instead, word)
		}
	}
}

func checkString(pass *analysis.Pass, literal *ast.BasicLit, phrases []phrase) {
	if literal.Kind != token.STRING {
		return
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return
	}
	for _, p := range phrases {
		if found := p.pattern.FindString(text); found != "" {
			pass.Reportf(literal.Pos(), "string: instead of %q: %s", found, p.instead)
		}
	}
}

// words returns the parts of a name in camel case or with underscores, in lower case.
func words(name string) (parts []string) {
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			parts = append(parts, strings.ToLower(word.String()))
			word.Reset()
		}
	}
	var before rune
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			end()
		case unicode.IsUpper(r) && !unicode.IsUpper(before):
			end()
			word.WriteRune(r)
		default:
			word.WriteRune(r)
		}
		before = r
	}
	end()
	return parts
}

type phrase struct {
	pattern *regexp.Regexp
	instead string
}

// names are the words of identifiers.yaml.
type names struct{ Parts, Names map[string]string }

func readIdentifiers() (list names) {
	if err := yaml.UnmarshalStrict(identifiersFile, &list); err != nil {
		panic(fmt.Sprintf("identifiers.yaml: %v", err))
	}
	return list
}

// readPhrases reads a list of Vale.
func readPhrases(file []byte) (list []phrase) {
	var rule struct{ Swap map[string]string }
	if err := yaml.Unmarshal(file, &rule); err != nil {
		panic(fmt.Sprintf("a list of Vale: %v", err))
	}
	for pattern, instead := range rule.Swap {
		list = append(list, phrase{regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`), instead})
	}
	return list
}
