// Package utils has the code that the end-to-end tests share: it runs commands, and reads the operator's metrics.
package utils

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/programtest"
)

// ProjectDir returns the project's folder: the nearest one above that has a PROJECT file.
func ProjectDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "PROJECT")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("no folder above has a PROJECT file: run the tests in the project")
}

// Run runs a program in the project's folder and returns its output. The error contains the output too.
func Run(name string, args ...string) (string, error) { return Feed("", name, args...) }

// Feed is like Run, and gives the program a text as its standard input.
func Feed(text, name string, args ...string) (string, error) {
	dir, err := ProjectDir()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Kubectl runs kubectl.
func Kubectl(args ...string) (string, error) { return Run("kubectl", args...) }

// Lines returns the lines of a text that are not empty.
func Lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

var forwarding = regexp.MustCompile(`127\.0\.0\.1:(\d+) ->`)

// Metrics requests /metrics from a Service of the cluster, with a token unless it is empty, and returns the
// code and the text of the response. The token is in a header, because every user can read command lines.
func Metrics(ctx context.Context, namespace, service, token string) (code int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	forward := exec.CommandContext(ctx, "kubectl", "port-forward", "--address=127.0.0.1",
		"-n", namespace, "service/"+service, ":8443")
	out, err := forward.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	if err := forward.Start(); err != nil {
		return 0, "", err
	}
	defer func() { cancel(); _ = forward.Wait() }() // it was killed
	line, err := bufio.NewReader(out).ReadString('\n')
	port := forwarding.FindStringSubmatch(line)
	if port == nil {
		return 0, "", fmt.Errorf("forward a port to Service %s: %q: %w", service, line, err)
	}
	code, text = programtest.Get("https://127.0.0.1:"+port[1]+"/metrics", token)
	return code, text, nil
}
