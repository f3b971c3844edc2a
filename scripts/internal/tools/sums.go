package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// sumsFile holds the SHA-256 of each release that may be downloaded, in lines "SUM  URL". Who can replace a program on
// its server can replace its published checksum, too, but not this file.
const sumsFile = "releases.sum"

// recordedSums are the checksums in sumsFile, by URL.
func (b Builder) recordedSums() (map[string]string, error) {
	path := filepath.Join(b.moduleDir(""), sumsFile)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	recorded := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, url, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || !sha256Hex.MatchString(sum) {
			return nil, fmt.Errorf("%s: the line %q is not a SHA-256 checksum, two blanks and a URL: "+
				"`scripts/workshop record-sums` writes the file", path, line)
		}
		recorded[url] = sum
	}
	return recorded, nil
}

// RecordSums writes the published checksums of the pinned versions into scripts/tools/releases.sum. Checksums of pinned
// versions that are recorded already stay: a server that publishes another one is an error.
func (b Builder) RecordSums(ctx context.Context) error {
	recorded, err := b.recordedSums()
	if err != nil {
		return err
	}
	var lines []string
	for _, tool := range b.tools() {
		t, err := b.pinned(tool, "")
		if err != nil {
			return err
		}
		for _, arch := range []string{"amd64", "arm64"} {
			from, ok := b.Releases.of(t, arch)
			if !ok {
				continue
			}
			sum, err := b.Releases.published(ctx, from)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", t.Name, arch, err)
			}
			if was := recorded[from.url]; was != "" && was != sum {
				return fmt.Errorf("%s: the published checksum is %s, and %s was recorded: "+
					"the release was replaced, do not use it before its project says why", from.url, sum, was)
			}
			lines = append(lines, sum+"  "+from.url+"\n")
		}
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	path := filepath.Join(b.moduleDir(""), sumsFile)
	return os.WriteFile(path, []byte(strings.Join(slices.Compact(lines), "")), 0o644)
}

// published returns the checksum of a release that its project publishes.
func (r Releases) published(ctx context.Context, from release) (string, error) {
	data, err := r.sums(ctx, from.sums)
	if err != nil {
		return "", err
	}
	sum, err := checksum(data, filepath.Base(from.url))
	if err != nil {
		return "", fmt.Errorf("%s %w", from.sums, err)
	}
	return sum, nil
}

// sums returns the small file at url.
func (r Releases) sums(ctx context.Context, url string) ([]byte, error) {
	response, _, err := r.ask(ctx, url, 0)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, cmp.Or(context.Cause(response.Request.Context()), err))
	}
	return data, nil
}

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// checksum finds the SHA-256 of a file in what its project publishes: the sum alone, a list of sums with names, or
// GitHub's description of a release.
func checksum(published []byte, name string) (string, error) {
	var found string
	var description struct {
		Assets []struct{ Name, Digest string }
	}
	if json.Unmarshal(published, &description) == nil {
		for _, asset := range description.Assets {
			if asset.Name == name {
				found = strings.TrimPrefix(asset.Digest, "sha256:")
			}
		}
	} else {
		for line := range strings.Lines(string(published)) {
			words := strings.Fields(line)
			if len(words) == 1 || len(words) == 2 && strings.TrimPrefix(words[1], "*") == name {
				found = words[0]
			}
		}
	}
	if !sha256Hex.MatchString(found) {
		return "", fmt.Errorf("has no SHA-256 checksum of %s", name)
	}
	return found, nil
}
