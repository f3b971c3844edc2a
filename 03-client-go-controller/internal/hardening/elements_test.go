package hardening

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
)

func TestOnlyWhatDiffersOfOursIsReplaced(t *testing.T) {
	_, service := stored(t, 2, &corev1.Service{})
	service.Spec.Ports = append([]corev1.ServicePort{{Name: "metrics", Port: 9090}}, service.Spec.Ports...)
	service.Spec.Ports[1].Port = 81
	service.Labels = nil
	_, deployment := stored(t, 1, &appsv1.Deployment{})
	nginx := &deployment.Spec.Template.Spec.Containers[0]
	nginx.Image, nginx.Ports[0].ContainerPort = "evil", 81
	_, volume := stored(t, 1, &appsv1.Deployment{})
	volume.Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	_, injected := stored(t, 1, &appsv1.Deployment{})
	injected.Spec.Template.Spec.Containers[0].Image = "evil"
	injected.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ADDED", Value: "by an injector"}}
	_, probe := stored(t, 1, &appsv1.Deployment{})
	probe.Spec.Template.Spec.Containers[0].ReadinessProbe.HTTPGet = nil
	probe.Spec.Template.Spec.Containers[0].ReadinessProbe.Exec = &corev1.ExecAction{Command: []string{"true"}}
	_, outside := stored(t, 1, &appsv1.Deployment{})
	outside.Spec.Replicas = nil
	const version = `{"op":"replace","path":"/metadata/resourceVersion","value":"7"}`
	for name, test := range map[string]struct {
		kind int
		live myweb.Object
		want string
	}{
		"the port of a Service, which keeps its node port": {2, service, "[" + version +
			`,{"op":"replace","path":"/spec/ports/1","value":{"name":"http","nodePort":30100,"port":80,"protocol":"TCP",` +
			`"targetPort":"http"}}]`},
		"the port of a container, and not the container": {1, deployment, "[" + version +
			`,{"op":"replace","path":"/spec/template/spec/containers/0/ports/0","value":{"containerPort":80,"name":"http"}}]`},
		"a volume of another type": {1, volume, "[" + version +
			`,{"op":"replace","path":"/spec/template/spec/volumes/0","value":{"configMap":{"name":"site"},"name":"page"}}]`},
		"no container, which may hold what others added": {1, injected, ""},
		"a probe of another type": {1, probe,
			"[" + version + `,{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe",` +
				`"value":{"httpGet":{"path":"/","port":"http"},"periodSeconds":2}}]`},
		"nothing in a list": {1, outside, ""},
	} {
		t.Run(name, func(t *testing.T) {
			desired, _ := stored(t, test.kind, []myweb.Object{nil, &appsv1.Deployment{}, &corev1.Service{}}[test.kind])
			differences, err := Differences(desired, test.live)
			if err != nil || len(differences) == 0 {
				t.Fatal(differences, err)
			}
			patch, err := ReplaceElements(differences, test.live)
			if diff := cmp.Diff(test.want, string(patch)); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

func invalid(err *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "site", field.ErrorList{err})
}

func TestMustReplaceElements(t *testing.T) {
	ports := field.NewPath("spec", "ports").Index(1)
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                  {nil, false},
		"two ports of one name": {invalid(field.Duplicate(ports.Child("name"), "http")), true},
		"two of one node port":  {apierrors.NewInternalError(fmt.Errorf("duplicate nodePort: 30100")), true},
		"a volume of two types": {
			invalid(field.Forbidden(field.NewPath("spec", "volumes"), "may not specify more than 1 volume type")), true},
		"a quota, a policy": {apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "site",
			fmt.Errorf("exceeded quota: none")), false},
		"a conflict": {
			apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "site", fmt.Errorf("uid mismatch")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MustReplaceElements(test.err); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
