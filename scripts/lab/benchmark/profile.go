package benchmark

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// profiler is compiled into an operator's main package; the operator's source stays unchanged. At SIGUSR1, which no
// operator uses, it writes the profile and ends the process.
const profiler = `package main

import (
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

func init() {
	file, err := os.Create(os.Getenv("LAB_PROFILE"))
	if err != nil || pprof.StartCPUProfile(file) != nil {
		return
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGUSR1)
	go func() {
		<-end
		pprof.StopCPUProfile()
		os.Exit(0)
	}()
}
`

// profile runs each operator that has a source once more, and writes its processor profile.
func (b *bench) profile(ctx context.Context, s *stage, names []string) error {
	if b.Profile == "" {
		return nil
	}
	if err := os.MkdirAll(b.Profile, 0o755); err != nil {
		return err
	}
	for _, i := range b.Implementations {
		if !slices.Contains(names, i.Name) {
			continue
		}
		if i.Package == "" {
			b.note("%s: there is no profile of a program without source.", i.Name)
			continue
		}
		path, err := filepath.Abs(filepath.Join(b.Profile, i.Name+".pprof"))
		if err != nil {
			return err
		}
		if err := b.profileOf(ctx, s, i, path); err != nil {
			return fmt.Errorf("profile of %s: %w", i.Name, err)
		}
		b.Report("profile of %s: go tool pprof -top %s", i.Name, path)
	}
	return nil
}

func (b *bench) profileOf(ctx context.Context, s *stage, i impl.Implementation, path string) error {
	dir, err := os.MkdirTemp("", "profile-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "profile.go")
	if err := os.WriteFile(source, []byte(profiler), 0o600); err != nil {
		return err
	}
	err = i.Overlay(dir, map[string]string{filepath.Join(i.Folder, i.Package, "zz_lab_profile.go"): source})
	if err != nil {
		return err
	}
	built, err := i.Build(ctx, dir)
	if err != nil {
		return err
	}
	o := s.operators[i.Name]
	before := o.Impl
	defer func() { o.Impl, o.Env = before, nil }()
	o.Impl.Path, o.Env = built.Path, []string{"LAB_PROFILE=" + path}
	return s.inNamespace(ctx, func(ns string) error {
		_, err := s.converge(ctx, i.Name, ns, b.Objects)
		return err
	})
}

// end ends a process of an operator. A profiled operator writes its profile first.
func (s *stage) end(name string, p *fixture.Process) {
	if len(s.operators[name].Env) > 0 && p.Signal(syscall.SIGUSR1) == nil {
		select {
		case <-p.Ended():
		case <-time.After(10 * time.Second):
		}
	}
	p.Kill()
}
