package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
	"example.com/operator-workshop/scripts/internal/window"
)

// Other users of the machine read nothing in .workshop, whichever command makes it. TestImagesArePackedAndLoaded does the same
// with make from-bundle.
func TestTheStateFolderIsPrivate(t *testing.T) {
	for name, first := range map[string]func(w workshop) error{
		"make open": func(w workshop) error {
			server, err := window.New(window.Config{Root: w.root, State: w.state})
			if err != nil {
				return err
			}
			ended, end := context.WithCancel(t.Context())
			end()
			return server.Serve(ended, os.Stdout)
		},
		"make kind-up": func(w workshop) error {
			cmd := exec.Command("bash", "-c", ". ./kind-lib.sh")
			cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "WORKSHOP_STATE="+w.state)
			return cmd.Run()
		},
		"a command in a checkout of an older version": func(w workshop) error {
			if err := os.Mkdir(w.state, 0o755); err != nil {
				return err
			}
			return w.hideState()
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			w := workshop{root: root, state: filepath.Join(root, ".workshop")}
			testkit.Must(t, first(w))
			if about, err := os.Stat(w.state); err != nil || about.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", about.Mode(), err)
			}
		})
	}
}
