package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/doctor"
	"example.com/operator-workshop/scripts/internal/room"
	"example.com/operator-workshop/scripts/internal/tools"
	"example.com/operator-workshop/scripts/internal/window"
)

// openGrace is how long the programs in the window's terminals may take to end.
const openGrace = 10 * time.Second

func openCommand() *cobra.Command {
	var check, present bool
	var port int
	var address, name string
	cmd := newCommand("open", "Show the workshop in a browser", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			if check {
				return w.run(cmd.Context(), os.Stdout, "scripts", "go", "test", "-count=1", "./internal/window")
			}
			course, err := w.course()
			if err != nil {
				return err
			}
			attendee, err := room.Join(address, name, w.state)
			if err != nil {
				return err
			}
			// After Ctrl-C the reader of a pipe may end first, and the window must still end its programs. Ignored signals
			// would be ignored by the programs in the terminals, too.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			server, err := window.New(window.Config{Root: w.root, State: w.state, Env: w.pageEnv(), Course: course,
				Ledger: w.cluster().Ledger(), Port: port,
				Gopls: filepath.Join(w.bin(), tools.Gopls.Name), Memory: func() (uint64, error) {
					available, _, err := doctor.Local(w.root).Memory(cmd.Context())
					return available, err
				},
				Objects: func() (window.Reader, error) { return w.cluster().Reader() },
				Present: present, Grace: openGrace, Room: attendee.Words()})
			if err != nil {
				return err
			}
			fmt.Printf("Open this address in your browser. It lets in one browser, once; Ctrl-C here ends the window.\n\n  %s\n\n",
				server.Address())
			return server.Serve(cmd.Context(), os.Stdout)
		})
	cmd.Flags().BoolVar(&check, "check", false, "run the tests in a browser, and end")
	cmd.Flags().BoolVar(&present, "present", false, "large letters and one pane, for a projector")
	cmd.Flags().IntVar(&port, "port", 4180, "the port on 127.0.0.1; another one when it is taken")
	cmd.Flags().StringVar(&address, "room", "", "where the button Check sends the verdict; nothing is sent without it")
	cmd.Flags().StringVar(&name, "name", "", "the name under which the room shows it")
	return cmd
}
