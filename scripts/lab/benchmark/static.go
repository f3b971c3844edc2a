package benchmark

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// static says what can be said of the programs without running them.
func (b *bench) static(ctx context.Context) error {
	for n, i := range b.Implementations {
		info, err := os.Stat(i.Path)
		if err != nil {
			return err
		}
		s := &b.result.Implementations[n].Static
		s.BinaryBytes = info.Size()
		if build, err := buildinfo.ReadFile(i.Path); err == nil {
			s.Modules = len(build.Deps) + 1
		} else {
			b.note("%s: no Go program, so that its modules are not known.", i.Name)
		}
		if i.Folder == "" {
			b.note("%s: its source is not known, so that its lines are not counted.", i.Name)
			continue
		}
		if s.Written, s.Generated, err = countSource(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// countSource counts the lines of the packages of the implementation's own module that the program is
// linked from.
func countSource(ctx context.Context, i impl.Implementation) (written, generated int, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,GoFiles,Module", i.Package)
	cmd.Dir = i.Folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("list the packages of %s: %w", i.Name, err)
	}
	for packages := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir     string
			GoFiles []string
			Module  *struct{ Main bool }
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return written, generated, nil
		} else if err != nil {
			return 0, 0, err
		}
		if p.Module == nil || !p.Module.Main {
			continue
		}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return 0, 0, err
			}
			if isGenerated(text) {
				generated += codeLines(text)
			} else {
				written += codeLines(text)
			}
		}
	}
}

// isGenerated reports whether a program has written the file.
func isGenerated(text []byte) bool {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.PackageClauseOnly|parser.ParseComments)
	return err == nil && ast.IsGenerated(f)
}

// codeLines counts the lines that hold more than comments.
func codeLines(text []byte) int {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, func(token.Position, string) {}, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && literal == "\n" { // the scanner's own
			continue
		}
		first := file.Line(pos)
		for n := range strings.Count(literal, "\n") + 1 {
			lines[first+n] = true
		}
	}
}
