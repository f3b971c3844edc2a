package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/examine/supervisor"
)

// A session acts for a page like a reader's terminal: variables that one block sets are set in the next block.
type session struct {
	dir, state string
	env        []string
	w          io.Writer // for lines about a wait
	jobs       map[string]*job
}

// A job is a background block. It ends with the page, and so does every process that it has started. The other blocks
// have no supervisor: processes that `make up` starts outlive its block.
type job struct {
	*supervisor.Child
	name   string
	output *output.Buffer
	shown  int64 // bytes of the output
}

// grace is how long a process may take to end after SIGINT or SIGTERM, when the page is over.
const grace = 10 * time.Second

// Each block runs in a separate bash that first loads the variables and the directory of the block before it, and saves
// them at its end. Bash 3.2 must understand these commands. PAGE_STATE is the folder of the saved files.
const (
	// Load has the commands that load them.
	Load = `
if [ -f "$PAGE_STATE/vars" ]; then . "$PAGE_STATE/vars" 2>/dev/null || true; cd "$(cat "$PAGE_STATE/cwd")"; fi
`
	// Save defines __save, which saves them.
	Save = `
__save() {
  local __v __d __f
  for __v in $(compgen -v); do
    case $__v in __*|BASH*|PAGE_STATE|FUNCNAME|DIRSTACK|GROUPS|PIPESTATUS|LINENO|RANDOM|SECONDS|_|OPTIND|SHLVL|EPOCH*|SRANDOM|COMP_*|HISTCMD|IFS) continue;; esac
    __d=$(declare -p "$__v" 2>/dev/null) || continue
    __f=${__d#declare -}; __f=${__f%% *}
    case $__f in *r*) continue;; esac
    printf '%s\n' "$__d"
  done >"$PAGE_STATE/vars.new"
  mv "$PAGE_STATE/vars.new" "$PAGE_STATE/vars"
  pwd >"$PAGE_STATE/cwd"
}
`
	epilogue = Save + `trap '__code=$?; set +e; __save; exit $__code' EXIT
set -eo pipefail
`
)

func newSession(dir string, env []string, w io.Writer) (*session, error) {
	state, err := os.MkdirTemp("", "page-")
	if err != nil {
		return nil, err
	}
	env = append(append([]string{}, env...), "PAGE_STATE="+state)
	return &session{dir: dir, state: state, env: env, w: w, jobs: map[string]*job{}}, nil
}

// command prepares a block as a separate process group. A block that reads its input finds the input empty.
func (s *session) command(b *Block, save bool) *exec.Cmd {
	script := Load + "set -eo pipefail\n" + b.Text
	if save {
		script = Load + epilogue + b.Text
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs a block to its end and returns its output. It fails when the block does not end as its words require.
func (s *session) run(ctx context.Context, b *Block) (string, error) {
	out := &output.Buffer{}
	cmd := s.command(b, true)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second // a child that went into the background may hold the output open
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan struct{})
	var err error
	go func() { err = cmd.Wait(); close(ended) }()
	waiting := newWait(s.w, b.Timeout, "the command ends")
	if err := waiting.forProgram(ctx, cmd.Process.Pid, out.Total, isClosed(ended)); err != nil {
		end(cmd, ended)
		return out.String(), failure(err, b, out)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // its processes in the background
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	switch {
	case b.Fails && err == nil:
		return out.String(), failure(errors.New("the command succeeded, the page says that it fails"), b, out)
	case !b.Fails && err != nil:
		return out.String(), failure(fmt.Errorf("the command failed (%w)", err), b, out)
	}
	return out.String(), nil
}

// failure adds the command and its output to an error.
func failure(err error, b *Block, out *output.Buffer) error {
	return fmt.Errorf("%w\n$ %s\n%s", err, strings.TrimSpace(b.Text), out)
}

// isClosed returns a function that reports whether a channel is closed.
func isClosed(ended <-chan struct{}) func() bool {
	return func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
}

// end ends a block that takes too long, with its processes. The block may have to end its own processes, so SIGKILL
// follows only after the grace period.
func end(cmd *exec.Cmd, ended <-chan struct{}) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(grace):
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	}
}

// background starts a block and waits for the text that shows that the block is ready.
func (s *session) background(ctx context.Context, b *Block) error {
	if s.jobs[b.Background] != nil {
		return fmt.Errorf("background=%s runs already", b.Background)
	}
	cmd := s.command(b, false)
	j := &job{name: b.Background, output: &output.Buffer{}}
	var err error
	j.Child, err = supervisor.Start(supervisor.Command{Path: cmd.Path, Args: cmd.Args[1:], Env: cmd.Env, Dir: cmd.Dir,
		Output: j.output})
	if err != nil {
		return err
	}
	s.jobs[b.Background] = j
	if b.Until == "" {
		return nil
	}
	hasPrinted := func() bool { return strings.Contains(j.output.String(), b.Until) }
	ended := isClosed(j.Ended())
	waiting := newWait(s.w, b.Timeout, fmt.Sprintf("%s prints %q", b.Background, b.Until))
	err = waiting.forProgram(ctx, j.PID(), j.output.Total, func() bool { return hasPrinted() || ended() })
	if err == nil && !hasPrinted() {
		err = fmt.Errorf("%s ended before it printed %q", b.Background, b.Until)
	}
	if err != nil {
		return failure(err, b, j.output)
	}
	return nil
}

// printed returns the output of background processes since the last call.
func (s *session) printed() (text string) {
	for _, name := range slices.Sorted(maps.Keys(s.jobs)) {
		text += s.jobs[name].printed()
	}
	return text
}

// mostPrinted is how many lines of a background process, its last lines, are shown at once.
const mostPrinted = 20

// printed returns the output of the process since the last call: whole lines, which begin with its name.
func (j *job) printed() string {
	some := j.output.Since(j.shown)
	some = some[:strings.LastIndexByte(some, '\n')+1]
	j.shown += int64(len(some))
	lines := slices.Collect(strings.Lines(some))
	if left := len(lines) - mostPrinted; left > 0 {
		lines = append([]string{fmt.Sprintf("… %d lines …\n", left)}, lines[left:]...)
	}
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&text, "%s | %s", j.name, line)
	}
	return text.String()
}

// stop ends a background process as Ctrl-C would. It is an error when the process has ended by itself before.
func (s *session) stop(ctx context.Context, name string) error {
	j := s.jobs[name]
	if !j.Running() {
		delete(s.jobs, name)
		return fmt.Errorf("%s ended by itself before it was stopped:\n%s", name, j.output)
	}
	_ = j.Signal(syscall.SIGINT)
	waiting := newWait(s.w, leastPatience, name+" ends after SIGINT")
	if err := waiting.forProgram(ctx, j.PID(), j.output.Total, isClosed(j.Ended())); err != nil {
		return fmt.Errorf("%w\n%s", err, j.output)
	}
	delete(s.jobs, name)
	return nil
}

// close ends the processes that still run, when the page failed or was interrupted, and removes the session's files.
func (s *session) close() error {
	for _, j := range s.jobs {
		j.Terminate(syscall.SIGTERM, grace)
	}
	return os.RemoveAll(filepath.Clean(s.state))
}
