// Command three runs three replicas of the operator, which the lab judges as one program:
//
//	three shards|ring FOLDER [FLAGS]
//
// FOLDER has the programs myweb-shard and, for a ring, sharder. The flags are those of a replica.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"example.com/operator-workshop/06-deploy/scale/internal/ring"
)

func main() {
	if slices.Contains(os.Args, "--help") { // the flags that the lab may set
		fmt.Println("  --leader-elect\n  --leader-election-namespace\n  --health-probe-bind-address")
		return
	}
	dir, err := os.MkdirTemp("", "three-")
	if err == nil {
		err = errors.Join(run(dir, os.Args[1], os.Args[2], os.Args[3:]), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "three:", err)
		os.Exit(1)
	}
}

// run returns when all programs have ended. When one of them ends by itself, the others are stopped.
func run(dir, way, folder string, flags []string) error {
	// The lab signals the process group, so each program gets the signal.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	var all []*exec.Cmd
	if way == "ring" {
		sharder, err := startSharder(ctx, filepath.Join(folder, "sharder"), dir)
		if err != nil {
			return err
		}
		all = append(all, sharder)
	}
	for i := range 3 {
		part := []string{fmt.Sprintf("--shard=%d/3", i), fmt.Sprintf("--replica=%d-%d", os.Getpid(), i)}
		if way == "ring" { // a member without a lease gets no MyWebs; one that is started again has the same name
			part = []string{"--ring=" + ring.Name, fmt.Sprintf("--replica=member-%d", i), "--leader-elect",
				"--leader-election-namespace=default"}
		}
		if i > 0 { // the address is that of the first
			part = append(part, "--health-probe-bind-address=0")
		}
		replica := exec.Command(filepath.Join(folder, "myweb-shard"), slices.Concat(flags, part)...)
		replica.Stdout, replica.Stderr = os.Stdout, os.Stderr
		if err := replica.Start(); err != nil {
			return err
		}
		all = append(all, replica)
	}
	ended := make(chan error, len(all))
	for _, cmd := range all {
		go func() { ended <- cmd.Wait() }()
	}
	err := <-ended
	if ctx.Err() == nil {
		for _, cmd := range all {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	for range len(all) - 1 {
		err = errors.Join(err, <-ended)
	}
	return err
}

// startSharder waits until the API server serves ControllerRings.
func startSharder(ctx context.Context, program, dir string) (sharder *exec.Cmd, err error) {
	cfg, err := config.GetConfig()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		sharder, err = ring.Start(ctx, c, program, os.Getenv("KUBECONFIG"), dir)
		return err == nil, ignoreNoMatch(err)
	})
	return sharder, err
}

func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
