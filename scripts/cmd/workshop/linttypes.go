package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// lintTypes has TypeScript check the JSDoc types of the window's scripts, where npm can install it. No reader needs npm.
func (w workshop) lintTypes(ctx context.Context, out io.Writer) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		fmt.Fprintln(out, "  skipped: npm is not installed, which installs TypeScript")
		return nil
	}
	window, folder := filepath.Join(w.root, "scripts", "internal", "window"), filepath.Join(w.bin(), ".typescript")
	said, err := installTypeScript(ctx, npm, window, folder)
	switch {
	case err != nil && os.Getenv("CI") == "":
		fmt.Fprintf(out, "  skipped: npm cannot install TypeScript: %v\n%s", err, said)
		return nil
	case err != nil:
		return fmt.Errorf("install TypeScript: %w\n%s", err, said)
	}
	return foreground(exec.CommandContext(ctx, filepath.Join(folder, "node_modules", ".bin", "tsc"), "-p", window), out)
}

// installTypeScript installs the version that package-lock.json in the folder from names, with its checksum. None of
// its scripts run.
func installTypeScript(ctx context.Context, npm, from, to string) (said []byte, err error) {
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
	install := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = to
	if said, err = install.CombinedOutput(); err != nil {
		return said, err
	}
	return nil, os.WriteFile(installed, lock, 0o644)
}
