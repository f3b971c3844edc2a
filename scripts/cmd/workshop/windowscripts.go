package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/process"
)

// windowScripts is the folder of the window. Its package-lock.json names TypeScript, esbuild, and the packages of the
// editor, with their checksums. No reader needs npm.
const windowScripts = "scripts/internal/window"

// lintWindow has TypeScript check the JSDoc types of the window's scripts, and compares the editor's module with its
// packages, where npm can install them.
func (w workshop) lintWindow(ctx context.Context, out io.Writer) error {
	said, err := w.installPackages(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound), err != nil && os.Getenv("CI") == "":
		fmt.Fprintf(out, "  skipped: the packages cannot be installed: %v\n%s", err, said)
		return nil
	case err != nil:
		return fmt.Errorf("install the packages of the window: %w\n%s", err, said)
	}
	made, err := w.bundleEditor(ctx)
	if err != nil {
		return err
	}
	if is, err := os.ReadFile(w.editorModule()); err != nil || !bytes.Equal(is, made) {
		return errors.Join(err, fmt.Errorf("%s is not what its packages make: `scripts/workshop bundle-editor`", w.editorModule()))
	}
	return foreground(process.Command(ctx, cleanUp, w.packageProgram("tsc"), "-p", filepath.Join(w.root, windowScripts)), out)
}

// bundleEditorCommand is for a maintainer who has changed the list of names or a version.
func bundleEditorCommand() *cobra.Command {
	return newCommand("bundle-editor", "Make the window's editor anew from the packages of its package-lock.json", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			if said, err := w.installPackages(cmd.Context()); err != nil {
				return fmt.Errorf("install the packages of the window: %w\n%s", err, said)
			}
			made, err := w.bundleEditor(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Println("Record the new sum in web/vendor/SHA256SUMS.")
			return os.WriteFile(w.editorModule(), made, 0o644)
		})
}

// editorModule is the module of the editor; beside it is the list of its names.
func (w workshop) editorModule() string {
	return filepath.Join(w.root, windowScripts, "web", "vendor", "codemirror", "codemirror.mjs")
}

// packages is the folder in which npm installs the packages. tsconfig.json has it, too.
func (w workshop) packages() string { return filepath.Join(w.bin(), ".npm") }

func (w workshop) packageProgram(name string) string {
	return filepath.Join(w.packages(), "node_modules", ".bin", name)
}

// bundleEditor makes one module from the list of names.
func (w workshop) bundleEditor(ctx context.Context) ([]byte, error) {
	var said bytes.Buffer
	bundle := exec.CommandContext(ctx, w.packageProgram("esbuild"), "codemirror.d.mts", "--bundle", "--format=esm", "--minify",
		"--charset=utf8", "--legal-comments=none", "--log-level=warning")
	bundle.Dir, bundle.Stderr = filepath.Dir(w.editorModule()), &said
	bundle.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(w.packages(), "node_modules"))
	made, err := bundle.Output()
	if err != nil {
		return nil, fmt.Errorf("bundle the editor: %w\n%s", err, &said)
	}
	return made, nil
}

// installPackages installs the versions that package-lock.json names. None of their scripts run.
func (w workshop) installPackages(ctx context.Context) (said []byte, err error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, err
	}
	from, to := filepath.Join(w.root, windowScripts), w.packages()
	lock, err := os.ReadFile(filepath.Join(from, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	installed := filepath.Join(to, "installed")
	if was, err := os.ReadFile(installed); err == nil && string(was) == string(lock) {
		return nil, nil
	}
	about, err := os.ReadFile(filepath.Join(from, "package.json"))
	if err == nil {
		err = os.MkdirAll(to, 0o755)
	}
	if err != nil {
		return nil, err
	}
	err = errors.Join(os.WriteFile(filepath.Join(to, "package.json"), about, 0o644),
		os.WriteFile(filepath.Join(to, "package-lock.json"), lock, 0o644))
	if err != nil {
		return nil, err
	}
	install := process.Command(ctx, cleanUp, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = to
	if said, err = install.CombinedOutput(); err != nil {
		return said, err
	}
	return nil, os.WriteFile(installed, lock, 0o644)
}
