package manifests

const (
	name      = "nginx-operator"
	namespace = name + "-system"
)

// ways are the folders of config/ that a user can apply.
var ways = []string{"default", "one-namespace", "several-namespaces", "prometheus"}

// scopes are the namespaces that each way watches, and the roles that it grants in each namespace.
var scopes = map[string]struct {
	watched string
	grants  []string
}{
	"default": {
		"", []string{"everywhere: manager-role", "everywhere: metrics-auth-role", "system: leader-election-role"}},
	"one-namespace": {"metadata.namespace", []string{"system: leader-election-role", "system: manager-role"}},
	"several-namespaces": {"team-a,team-b",
		[]string{"system: leader-election-role", "team-a: manager-role", "team-b: manager-role"}},
}
