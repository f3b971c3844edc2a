package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/bundle"
	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/unbundle"
)

// bundles is the folder with the bundles for a room without a network.
func (w workshop) bundles() string { return filepath.Join(w.root, "out", "bundle") }

func packCommand() *cobra.Command {
	var platforms string
	var kind bool
	cmd := newCommand("pack", "Pack what a room without a network needs", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			p := bundle.Packer{Builder: w.builder(), Out: w.bundles(),
				Platforms: strings.Split(cmp.Or(platforms, runtime.GOOS+"/"+runtime.GOARCH), ",")}
			if kind {
				list, err := os.ReadFile(filepath.Join(w.root, "scripts", "images.txt"))
				if err != nil {
					return err
				}
				p.Images = strings.Fields(string(list))
				if p.NodeImage = os.Getenv("KIND_NODE_IMAGE"); p.NodeImage == "" {
					if p.NodeImage, err = bundle.DefaultNode(cmd.Context(), p.Builder); err != nil {
						return err
					}
				}
			}
			if err := p.Pack(cmd.Context()); err != nil {
				return err
			}
			sums, err := os.ReadFile(filepath.Join(p.Out, unbundle.SumsFile))
			if err != nil {
				return err
			}
			fmt.Printf("The bundles are in %s, with their checksums. Their code is %s: show it to your attendees, who type it\n"+
				"after make from-bundle FILE=… CODE=. `make serve-bundle` gives the bundles to a room.\n", p.Out,
				unbundle.Code(sums))
			return nil
		})
	cmd.Flags().StringVar(&platforms, "platforms", "", "what to pack for, such as linux/amd64,darwin/arm64")
	cmd.Flags().BoolVar(&kind, "kind", false, "with the images that kind needs")
	return cmd
}

// fromBundleCommand is the second half of `make from-bundle`; scripts/workshop has unpacked the bundle.
func fromBundleCommand() *cobra.Command {
	cmd := newCommand("from-bundle", "Install a bundle, without a network", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			if err := bundle.Install(cmd.Context(), w.builder(), w.state); err != nil {
				return err
			}
			fmt.Println(`Installed. Begin with "make demo", which compiles for some minutes the first time. Neither it nor the
exercises need a network. The page of 05, "make verify" and "make lint" still do.`)
			return nil
		})
	cmd.Flags().String("file", "", "the bundle")
	cmd.Flags().String("code", "", "the code on the screen of the person who made it")
	return cmd
}

// exerciseIDs returns the IDs with which `make check` reports.
func (w workshop) exerciseIDs() ([]string, error) {
	all, err := exercise.Load(w.root)
	if err != nil {
		return nil, err
	}
	bugs, err := exercise.Bugs(w.root)
	if err != nil {
		return nil, err
	}
	ids := []string{exercise.CapstoneID}
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	for _, b := range bugs {
		ids = append(ids, b.Exercise().ID)
	}
	return ids, nil
}

func serveCommand() *cobra.Command {
	var address string
	cmd := newCommand("serve-bundle", "Give the bundles to a room", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			exercises, err := w.exerciseIDs()
			if err != nil {
				return err
			}
			return bundle.Serve(cmd.Context(), w.bundles(), cmp.Or(address, "127.0.0.1:8400"), exercises, os.Stdout)
		})
	cmd.Flags().StringVar(&address, "address", "", "where to listen")
	return cmd
}
