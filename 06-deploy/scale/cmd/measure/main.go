// Command measure compares three ways to divide the work of three replicas, on an API server that it starts: what each
// replica receives, keeps and uses, by the number of MyWebs.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/operator-workshop/06-deploy/scale/shard"
)

// A way has the flags of replica i of three.
type way struct {
	name  string
	flags func(i int) []string
}

var ways = []way{
	{"one leader", func(int) []string { return nil }},
	{"shards", func(i int) []string {
		return []string{fmt.Sprintf("--shard=%d/%d", i, replicas), "--bounds=" + bounds()}
	}},
	{"ring", func(int) []string { return []string{"--ring=myweb"} }},
}

const replicas = 3

func main() {
	sizes := flag.String("mywebs", "1000", "numbers of MyWebs, ascending, separated by commas")
	into := flag.String("into", "", "folder for results.json and the pictures (default: they are not written)")
	most := flag.Int("ring", 1000, "largest number of MyWebs for the ring, whose sharder labels one object after the other")
	only := flag.Bool("pictures", false, "measure nothing: print results.json, and draw its pictures again")
	far := flag.Bool("limits", false, "measure nothing: print where the limits are, by results.json")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *sizes, *into, *most, *only, *far); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, sizes, into string, most int, only, far bool) error {
	file := filepath.Join(into, "results.json")
	var all []result
	if only || far {
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &all)
		}
		if err != nil {
			return err
		}
		if far {
			limits(all)
			return nil
		}
		for from, to := 0, 1; to <= len(all); to++ {
			if to == len(all) || all[to].MyWebs != all[from].MyWebs {
				print(all[from:to])
				from = to
			}
		}
		return pictures(into, all)
	}
	m, err := start(ctx)
	if err != nil {
		return err
	}
	defer m.stop()
	for _, word := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("--mywebs: %w", err)
		}
		chosen := ways
		if n > most {
			chosen = ways[:2]
		}
		results, err := m.measure(n, chosen)
		if err != nil {
			return fmt.Errorf("with %d MyWebs: %w", n, err)
		}
		print(results)
		if all = append(all, results...); into == "" {
			continue
		}
		data, err := json.MarshalIndent(all, "", "  ")
		if err == nil {
			err = os.WriteFile(file, append(data, '\n'), 0o644)
		}
		if err == nil {
			err = pictures(into, all)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bounds are the first hashes of shards that have equal numbers of namespaces.
func bounds() string {
	var hashes []uint64
	for n := range namespaces {
		hashes = append(hashes, shard.Hash(namespace(n)))
	}
	slices.Sort(hashes)
	var firsts []string
	for i := 1; i < replicas; i++ {
		firsts = append(firsts, fmt.Sprintf("%#x", hashes[i*namespaces/replicas]))
	}
	return strings.Join(firsts, ",")
}
