package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/cluster"
)

// chosen are the requests of testdata/audit.log, recorded on a local cluster, that a filter chooses.
func chosen(t *testing.T, filter requestFilter) (lines []string) {
	t.Helper()
	path := filepath.Join("testdata", "audit.log")
	if err := readAuditLog(t.Context(), path, false, func(line []byte) error {
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if filter.matches(e) {
			lines = append(lines, strings.Join(e.columns()[1:], " "))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestRequestsOfARecordedAuditLog(t *testing.T) {
	for name, test := range map[string]struct {
		filter requestFilter
		want   []string
	}{
		"a watch counts once, when it begins": {requestFilter{by: []string{"2-queue"}}, []string{
			"2-queue watch 200 mywebs ", "2-queue get 404 configmaps default/myweb",
			"2-queue get 200 configmaps default/myweb"}},
		"writes of a program": {requestFilter{by: []string{"kubectl"}, writes: true}, []string{
			"kubectl create 201 customresourcedefinitions mywebs.operator.k8s-summit.org",
			"kubectl create 201 mywebs default/myweb", "kubectl patch 200 mywebs/scale default/myweb",
			"kubectl delete 200 mywebs default/myweb"}},
		"a user": {requestFilter{by: []string{"system:kube-controller-manager"}, writes: true}, []string{
			"kube-controller-manager create 201 serviceaccounts kube-system/pv-protection-controller"}},
		"no lease":              {requestFilter{by: []string{"8-lease"}, writes: true}, nil},
		"nothing before a time": {requestFilter{since: time.Now()}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := chosen(t, test.filter); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestALineOfRequestsFitsTheTerminal(t *testing.T) {
	var out strings.Builder
	long := strings.Repeat("ü", 60)
	printRequest(&out, []string{"08:34:51", long, "deletecollection", "200", long, long})
	line := []rune(strings.TrimRight(out.String(), "\n"))
	if len(line) != 100 || strings.Count(string(line), "…") != 4 {
		t.Errorf("%d characters: %s", len(line), string(line))
	}
}

// atEnd is a context that calls f each time when a reader, at the end of what there is, looks whether to go on.
type atEnd struct {
	context.Context
	f func()
}

func (c atEnd) Done() <-chan struct{} {
	c.f()
	return c.Context.Done()
}

// A log that grows by a line in two parts, is replaced, and grows until the reader is stopped, is read to its end.
func TestAFollowedLogIsReadWhenItGrowsAndWhenItIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = file.WriteString(text)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
	write("one\ntw")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	err := readAuditLog(atEnd{ctx, func() {
		switch len(got) {
		case 1:
			write("o\n")
		case 2:
			write("three\n")
			if err := os.Rename(path, path+".1"); err != nil {
				t.Error(err)
			}
			write("four\n")
		case 4:
			write("five\n")
			cancel()
		}
	}}, path, true, func(line []byte) error {
		got = append(got, strings.TrimSpace(string(line)))
		return nil
	})
	if want := []string{"one", "two", "three", "four", "five"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestRequestsWithoutACluster(t *testing.T) {
	w := workshop{root: t.TempDir(), state: t.TempDir()}
	if err := w.eachRequest(t.Context(), requestFilter{}, false, func(auditEvent) {}); !errors.Is(err,
		cluster.ErrNoCluster) {
		t.Errorf("got %v, want %v", err, cluster.ErrNoCluster)
	}
}
