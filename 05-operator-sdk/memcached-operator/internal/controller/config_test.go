package controller

import (
	"strings"
	"testing"
)

func TestParseConfig(t *testing.T) {
	long := strings.Repeat("é", 50)
	for name, test := range map[string]struct {
		data  map[string]string
		want  Config
		wrong string
	}{
		"nothing": {nil, Config{64, 1024, 0}, ""},
		"everything": {map[string]string{"memoryMB": "2", "maxConnections": "65536", "verbose": "3"},
			Config{2, 65536, 3}, ""},
		"a key that is not read": {map[string]string{"memoryMb": "x"}, DefaultConfig, ""},
		"a line feed at the end": {map[string]string{"memoryMB": " 128\n"}, Config{128, 1024, 0}, ""},
		"verbose, by a word":     {map[string]string{"verbose": "true"}, Config{64, 1024, 1}, ""},
		"not verbose, by a word": {map[string]string{"verbose": "false"}, DefaultConfig, ""},
		"memory by a word": {map[string]string{"memoryMB": "true"}, DefaultConfig,
			`memoryMB is "true": it must be an integer from 2 to 1048576`},
		"too little":     {map[string]string{"memoryMB": "1"}, DefaultConfig, `memoryMB is "1"`},
		"a unit":         {map[string]string{"memoryMB": "64Mi"}, DefaultConfig, `memoryMB is "64Mi"`},
		"an empty value": {map[string]string{"maxConnections": ""}, DefaultConfig, `maxConnections is ""`},
		"too few connections": {map[string]string{"maxConnections": "63"}, DefaultConfig,
			`maxConnections is "63": it must be an integer from 64 to 65536`},
		"too many connections": {map[string]string{"maxConnections": "65537"}, DefaultConfig,
			`maxConnections is "65537": it must be an integer from 64 to 65536`},
		"more digits than an int": {map[string]string{"maxConnections": "99999999999999999999"}, DefaultConfig,
			"maxConnections is"},
		"too verbose": {map[string]string{"verbose": "4"}, DefaultConfig,
			`verbose is "4": it must be an integer from 0 to 3`},
		"a flag instead of a word": {map[string]string{"verbose": "-vv"}, DefaultConfig, `verbose is "-vv"`},
		"a whole file": {map[string]string{"memoryMB": long}, DefaultConfig,
			`memoryMB is "` + strings.Repeat("é", 40) + `…": it must`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseConfig(test.data)
			if got != test.want || (err != nil) != (test.wrong != "") || err != nil &&
				!strings.HasPrefix(err.Error(), test.wrong) {
				t.Errorf("got %+v, %v; want %+v, %q", got, err, test.want, test.wrong)
			}
		})
	}
}

func TestMemoryOfAPod(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"by default":        {DefaultConfig, "168Mi"},          // 64 + 16 + 24 + 64
		"a small one":       {Config{2, 1, 0}, "67Mi"},         // rounded up
		"many connections":  {Config{64, 65536, 0}, "1680Mi"},  // 1.5 GiB of buffers
		"a large one":       {Config{1024, 1024, 3}, "1368Mi"}, // how verbose it is costs nothing
		"the largest there": {Config{1 << 20, 1 << 16, 0}, "1312320Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.config.memory(); got.String() != test.want {
				t.Errorf("got %s, want %s", &got, test.want)
			}
		})
	}
}
