package examine

import (
	"context"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// provide creates a volume for each claim, as the provisioner of a cluster does, until ctx ends. The volume stores no
// data, because no container runs.
func (r *run) provide(ctx context.Context) {
	claims := r.fixture.Kube.CoreV1().PersistentVolumeClaims("")
	for fixture.Pause(ctx, 200*time.Millisecond) == nil {
		all, err := claims.List(ctx, metav1.ListOptions{})
		if err != nil {
			continue // the API server is down in some experiments
		}
		for _, c := range all.Items {
			if c.Spec.VolumeName != "" || c.Status.Phase != corev1.ClaimPending {
				continue
			}
			name := "volume-" + string(c.UID) // no name of a namespace is a part of it
			_, _ = r.fixture.Kube.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.PersistentVolumeSpec{AccessModes: c.Spec.AccessModes,
					Capacity:                      c.Spec.Resources.Requests,
					PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, VolumeMode: c.Spec.VolumeMode,
					StorageClassName: ptr.Deref(c.Spec.StorageClassName, ""),
					ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace,
						Name: c.Name, UID: c.UID},
					PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
						Path: filepath.Join("/examine", name)}}}}, metav1.CreateOptions{}) // it exists the second time
		}
	}
}
