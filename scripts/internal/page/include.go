package page

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// checkInclude compares a block with the file whose text it shows.
func checkInclude(dir string, b *Block) error {
	path := filepath.Join(dir, b.File)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	switch {
	case b.Func != "":
		whole, bare, err := declaration(path, b.Func)
		if err != nil {
			return err
		}
		if text := strings.TrimSpace(b.Text); text != whole && text != bare {
			return differs(b, b.File+" "+b.Func, whole)
		}
	case b.Part:
		if !hasExcerpt(strings.Split(string(data), "\n"), strings.Split(strings.TrimRight(b.Text, "\n"), "\n")) {
			return fmt.Errorf("the block is not a run of whole lines of %s", b.File)
		}
	case b.Text != string(data):
		return differs(b, b.File, string(data))
	}
	return nil
}

func differs(b *Block, name, want string) error {
	return fmt.Errorf("the block differs from %s:\n%s", name,
		diff(name, "page", strings.TrimRight(want, "\n")+"\n", b.Text))
}

// hasExcerpt reports whether whole contains the runs of lines of an excerpt, in this order. A line "…" separates two
// runs.
func hasExcerpt(whole, excerpt []string) bool {
	var run []string
	for _, line := range append(excerpt, "…") {
		if strings.TrimSpace(line) != "…" {
			run = append(run, line)
			continue
		}
		end := runEnd(whole, run)
		if end < 0 {
			return false
		}
		whole, run = whole[end:], nil
	}
	return true
}

// runEnd returns the index after the first run of lines of whole that equals part, perhaps with less indentation, or
// -1.
func runEnd(whole, part []string) int {
	if len(part) == 0 {
		return 0
	}
	for start := 0; start+len(part) <= len(whole); start++ {
		indent, ok := strings.CutSuffix(whole[start], part[0])
		if !ok || strings.TrimLeft(indent, " \t") != "" {
			continue
		}
		same := true
		for i, line := range part {
			same = same && (whole[start+i] == indent+line || line == "" && whole[start+i] == "")
		}
		if same {
			return start + len(part)
		}
	}
	return -1
}

// declaration returns the source of a function, method (Type.Name) or type, with and without its
// comment.
func declaration(path, name string) (whole, bare string, err error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments)
	if err != nil {
		return "", "", err
	}
	for _, decl := range file.Decls {
		var doc *ast.CommentGroup
		found := false
		switch d := decl.(type) {
		case *ast.FuncDecl:
			doc, found = d.Doc, funcName(d) == name
		case *ast.GenDecl:
			if len(d.Specs) == 1 {
				if spec, ok := d.Specs[0].(*ast.TypeSpec); ok {
					doc, found = d.Doc, spec.Name.Name == name
				}
			}
		}
		if !found {
			continue
		}
		start, end := files.Position(decl.Pos()).Offset, files.Position(decl.End()).Offset
		bare = string(source[start:end])
		if doc != nil {
			start = files.Position(doc.Pos()).Offset
		}
		return string(source[start:end]), bare, nil
	}
	return "", "", fmt.Errorf("%s has no function or type %s", path, name)
}

func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	recv := d.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	if ident, ok := recv.(*ast.Ident); ok {
		return ident.Name + "." + d.Name.Name
	}
	return d.Name.Name
}
