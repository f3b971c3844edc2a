package webhook

import (
	"strings"
	"testing"
)

func TestImageWarnings(t *testing.T) {
	const (
		sha256 = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		sha384 = "@sha384:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	)
	for name, test := range map[string]struct{ image, want string }{
		"a bare name":                              {"nginx", "neither tag nor digest"},
		"a path":                                   {"team/web", "neither tag nor digest"},
		"a registry":                               {"registry.example.com/web", "neither tag nor digest"},
		"a registry's port is no tag":              {"registry:5000/web", "neither tag nor digest"},
		"a port and an IPv6 address":               {"[::1]:5000/web", "neither tag nor digest"},
		"localhost is a registry":                  {"localhost/web", "neither tag nor digest"},
		"the tag latest":                           {"nginx:latest", "the tag latest"},
		"the tag latest behind a port":             {"registry:5000/team/web:latest", "the tag latest"},
		"a repository called latest":               {"registry:5000/latest:1.0", ""},
		"another tag":                              {"nginx:1.29", ""},
		"a tag that only begins so":                {"nginx:latest-alpine", ""},
		"a tag in capitals is another tag":         {"nginx:LATEST", ""},
		"a tag behind a port":                      {"registry:5000/team/web:v1", ""},
		"a digest":                                 {"nginx" + sha256, ""},
		"a digest behind a port":                   {"registry:5000/team/web" + sha256, ""},
		"a digest decides, whatever the tag":       {"nginx:latest" + sha256, ""},
		"a longer digest":                          {"nginx" + sha384, ""},
		"what the schema accepts, but nobody else": {strings.Repeat("0123456789abcdef", 4), "no node can pull"},
	} {
		t.Run(name, func(t *testing.T) {
			got := imageWarnings(test.image)
			switch {
			case test.want == "" && len(got) != 0:
				t.Errorf("%s: got %q, want no warning", test.image, got)
			case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("%s: got %q, want one warning with %q", test.image, got, test.want)
			}
			for _, w := range got {
				if len(w) > 120 {
					t.Errorf("the warning has %d bytes, clients show 120: %q", len(w), w)
				}
			}
		})
	}
}
