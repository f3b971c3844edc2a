package env_test

import (
	"testing"

	. "github.com/onsi/gomega"

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
		g.Expect(lookaround.KubeletOf(n)).To(Equal(lookaround.KubeletSimulated), "node %s", n.Name)
	}
	g.Expect(facts.Environment()).To(Equal(lookaround.EnvironmentLocal))
}
