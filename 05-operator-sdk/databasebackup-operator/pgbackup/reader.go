package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reader reads variables and keeps the first error.
type reader struct {
	values map[string]string
	err    error
}

func (r *reader) wrong(variable, reason, fix string) {
	if r.err == nil {
		r.err = failf(ReasonInvalidSettings, "%s %s: %s", variable, reason, fix)
	}
}

func (r *reader) or(variable, otherwise string) string {
	if value := r.values[variable]; value != "" {
		return value
	}
	return otherwise
}

func (r *reader) required(variable, fix string) string {
	value := r.values[variable]
	if value == "" {
		r.wrong(variable, "is not set", fix)
	}
	return value
}

// formed returns a value that is not set, or has a form.
func (r *reader) formed(variable string, form *regexp.Regexp, fix string) string {
	value := r.values[variable]
	if value != "" && !form.MatchString(value) {
		r.wrong(variable, fmt.Sprintf("is %q", value), fix)
	}
	return value
}

func (r *reader) number(variable string, otherwise, limit int) int {
	text := r.values[variable]
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > limit {
		r.wrong(variable, fmt.Sprintf("is %q", text), fmt.Sprintf("set a whole number from 0 to %d", limit))
	}
	return n
}

// path checks an absolute path. Long ones are refused: a path is part of the result, which has a limit.
func (r *reader) path(variable, path string) string {
	switch {
	case path == "": // required has reported that
	case !filepath.IsAbs(path):
		r.wrong(variable, fmt.Sprintf("is %q, no absolute path", path), "begin it with /")
	case slices.Contains(strings.Split(path, "/"), ".."):
		r.wrong(variable, fmt.Sprintf("is %q, which holds ..", path), "write the path without it")
	case len(path) > 512:
		r.wrong(variable, "is longer than 512 bytes", "choose a shorter path")
	}
	return filepath.Clean(path)
}

// inside reports whether a clean path is a directory or below it.
func inside(directory, path string) bool {
	return path == directory || directory == "/" || strings.HasPrefix(path, directory+"/")
}
