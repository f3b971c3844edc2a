package main

import (
	"strings"
	"testing"
)

func TestWithTable(t *testing.T) {
	page := strings.ReplaceAll("# A page\n\n'''sh\nbin/lab ways x.json\n'''\nOutput:\n'''console\nold\n\nrow\n'''\nafter\n"+
		"'''console\nother\n'''\n", "'", "`")
	got, err := withTable([]byte(page), []byte("new\n"))
	if want := strings.Replace(page, "old\n\nrow", "new", 1); err != nil || string(got) != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	if _, err := withTable([]byte("no block"), nil); err == nil {
		t.Error("a page without the block, and no error")
	}
}
