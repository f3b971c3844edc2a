package env_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/operator-workshop/00-env/internal/lookaround"
)

// The tests named TestLocal… pass in the local environment only.

func TestLocalVersionIsThatOfTheLibraries(t *testing.T) {
	g := NewWithT(t)
	_, full := libraryVersion(t)
	version, err := newClient(t, local(t).Config).Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.GitVersion).To(Equal(full))
}

func TestLocalNodesAreThreeSimulatedOnes(t *testing.T) {
	g := NewWithT(t)
	facts, err := lookaround.Look(t.Context(), local(t).Config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Nodes).To(HaveLen(3))
	for _, n := range facts.Nodes {
		g.Expect(n.Kubelet).To(Equal(lookaround.KubeletSimulated), "node %s", n.Name)
	}
	g.Expect(lookaround.EnvironmentOf(facts)).To(Equal(lookaround.EnvironmentLocal))
}

func TestLocalUserMayDoNothingAtFirst(t *testing.T) {
	t.Parallel()
	g, l := NewWithT(t), local(t)
	c := newClient(t, l.Config)
	ns := newNamespace(t, c)
	kubeconfig, err := l.User("alice")
	g.Expect(err).NotTo(HaveOccurred())
	alice, err := lookaround.Config(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())

	checkPermissions(t, c, ns, "alice", kubernetes.NewForConfigOrDie(alice),
		rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"})

	_, err = lookaround.Look(t.Context(), alice)
	g.Expect(err).To(MatchError(And(
		ContainSubstring("list the nodes of "+alice.Host),
		ContainSubstring(`User "alice" cannot list resource "nodes"`),
		ContainSubstring("fix: have a role with that verb bound"))))
}

func TestLocalAuditLogRecordsWhoAskedForWhat(t *testing.T) {
	t.Parallel()
	g, l := NewWithT(t), local(t)
	ns := newNamespace(t, newClient(t, l.Config))
	kubeconfig, err := l.User("mallory", "visitors")
	g.Expect(err).NotTo(HaveOccurred())
	mallory, err := lookaround.Config(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = newClient(t, mallory).CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(beDenied("mallory", `list resource "secrets"`, ns))

	g.Eventually(func() ([]auditEvent, error) { return auditEvents(l.AuditLog, "mallory") }).
		Should(ContainElement(And(
			HaveField("Verb", "list"),
			HaveField("Level", "Metadata"), // neither the body of a request nor that of an answer
			HaveField("User.Groups", ContainElement("visitors")),
			HaveField("ObjectRef.Resource", "secrets"),
			HaveField("ObjectRef.Namespace", ns),
			HaveField("ResponseStatus.Code", 403))))
}

// auditEvent is the part of a line of the audit log that has the user, the request and the response.
// Its fields are fields of audit.k8s.io/v1, kind Event.
type auditEvent struct {
	Verb, Level string
	User        struct {
		Username string
		Groups   []string
	}
	ObjectRef      struct{ Resource, Namespace, Name string }
	ResponseStatus struct{ Code int }
}

// auditEvents returns the events of a user in the audit log.
func auditEvents(path, user string) ([]auditEvent, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var events []auditEvent
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("audit log: %w in %s", err, lines.Bytes())
		}
		if event.User.Username == user {
			events = append(events, event)
		}
	}
	return events, lines.Err()
}
