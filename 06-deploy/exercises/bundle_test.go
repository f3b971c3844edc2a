package exercises

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/06-deploy/internal/manifests"
	"example.com/operator-workshop/06-deploy/internal/testenv"
)

// A serviceVersion has the fields of a ClusterServiceVersion that decide whether OLM can install an operator, and
// whether the operator works then.
type serviceVersion struct {
	Spec struct {
		InstallModes []struct {
			Type      string
			Supported bool
		}
		CustomResourceDefinitions struct {
			Owned []struct{ Name, Version, Kind string }
		}
		Install struct {
			Spec struct {
				ClusterPermissions []struct {
					ServiceAccountName string
					Rules              []rbacv1.PolicyRule
				}
				Deployments []struct{ Spec appsv1.DeploymentSpec }
			}
		}
	}
}

func readServiceVersion(t *testing.T) (s serviceVersion) {
	t.Helper()
	all := answer(t, "clusterserviceversion.yaml", "../bundle/manifests/myweb-operator.clusterserviceversion.yaml")
	if len(all) != 1 || all[0].GetKind() != "ClusterServiceVersion" {
		t.Fatal("the file must have one object, a ClusterServiceVersion")
	}
	data, err := all[0].MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	testenv.Must(t, err)
	if len(s.Spec.Install.Spec.Deployments) != 1 {
		t.Fatal("the ClusterServiceVersion must have one Deployment")
	}
	return s
}

// crd returns the CRD that is in the bundle.
func crd(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	root, err := testenv.Root()
	testenv.Must(t, err)
	file, err := os.Open(filepath.Join(root, "06-deploy/bundle/manifests/operator.k8s-summit.org_mywebs.yaml"))
	testenv.Must(t, err)
	defer file.Close()
	all, err := manifests.Read(file)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d objects in the file of the CRD: %v", len(all), err)
	}
	return all[0]
}

func TestBundle(t *testing.T) {
	s := readServiceVersion(t)
	t.Run("owned", s.ownsTheCRD)
	t.Run("permissions", s.mayAllThatItSends)
	t.Run("namespaces", s.servesTheNamespacesOfTheAdministrator)
}

// OLM finds an owned CRD in the bundle by its name and version, and refuses a bundle that lacks it.
func (s serviceVersion) ownsTheCRD(t *testing.T) {
	crd := crd(t)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	testenv.Must(t, err)
	var there []string
	for _, version := range versions {
		there = append(there, fmt.Sprint(crd.GetName(), " ", version.(map[string]any)["name"]))
	}
	var owned []string
	for _, o := range s.Spec.CustomResourceDefinitions.Owned {
		owned = append(owned, o.Name+" "+o.Version)
		if o.Kind != "MyWeb" {
			t.Errorf("the owned CRD %s must have the kind MyWeb, not %q", o.Name, o.Kind)
		}
	}
	slices.Sort(owned)
	if !slices.Equal(owned, there) {
		t.Errorf("OLM refuses the bundle: it owns the CRDs %q, and the bundle contains %q", owned, there)
	}
}

// OLM makes roles of the permissions, and binds them to the service accounts that are named beside them.
func (s serviceVersion) mayAllThatItSends(t *testing.T) {
	account := s.Spec.Install.Spec.Deployments[0].Spec.Template.Spec.ServiceAccountName
	var rules []rbacv1.PolicyRule
	for _, p := range s.Spec.Install.Spec.ClusterPermissions {
		if p.ServiceAccountName != account {
			t.Errorf("OLM gives permissions to the service account %q, and the pod has the service account %q",
				p.ServiceAccountName, account)
			return
		}
		rules = append(rules, p.Rules...)
	}
	checkRules(t, rules)
}

// The administrator chooses all namespaces, which is the default, or some. OLM writes the choice into an annotation of
// the pod.
func (s serviceVersion) servesTheNamespacesOfTheAdministrator(t *testing.T) {
	supported := map[string]bool{}
	for _, mode := range s.Spec.InstallModes {
		supported[mode.Type] = mode.Supported
	}
	for _, mode := range []string{"AllNamespaces", "OwnNamespace", "SingleNamespace"} {
		if !supported[mode] {
			t.Errorf("an administrator chooses the mode %s, and OLM refuses: UnsupportedOperatorGroup", mode)
		}
	}
	for _, container := range s.Spec.Install.Spec.Deployments[0].Spec.Template.Spec.Containers {
		for _, env := range container.Env {
			if env.Name == "WATCH_NAMESPACE" && env.ValueFrom != nil && env.ValueFrom.FieldRef != nil &&
				env.ValueFrom.FieldRef.FieldPath == "metadata.annotations['olm.targetNamespaces']" {
				return
			}
		}
	}
	t.Error("an administrator chooses the namespace team-a, and the operator watches all namespaces: " +
		"it does not read the annotation olm.targetNamespaces")
}
