package controller

import (
	"cmp"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// postgres is the user and group in Debian's images of PostgreSQL. initdb refuses a user that is not in /etc/passwd of
// the image.
const postgres = 999

// podOf is a pod that meets the restricted Pod Security Standard. Its containers are never restarted: each try is a new
// pod with its own outcome.
func podOf(verb, image, claim string, env []corev1.EnvVar, resources databasesv1.Resources) corev1.PodSpec {
	source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
	readOnly := verb == "restore"
	return corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(postgres)), RunAsGroup: new(int64(postgres)),
			FSGroup:             new(int64(postgres)),
			FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: containerName, Image: image, Command: []string{"pgbackup"}, Args: []string{verb}, Env: env,
			Resources: corev1.ResourceRequirements{Requests: resources.Requests, Limits: resources.Limits},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "backups", MountPath: volumeRoot, ReadOnly: readOnly},
				{Name: "tmp", MountPath: "/tmp"},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "backups", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
}

// addScratch adds the container that restores the backup to verify it. A restore runs code that the owners of tables
// wrote, so this container has neither the volume nor the credentials: pgbackup sends it the dump through a socket in
// the folder that they share. As a sidecar it starts before pgbackup, and the kubelet ends it after pgbackup.
func addScratch(pod *corev1.PodSpec) {
	folder := corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	main := &pod.Containers[0]
	if limit, ok := main.Resources.Limits[corev1.ResourceEphemeralStorage]; ok {
		folder.EmptyDir.SizeLimit = &limit
	}
	mount := corev1.VolumeMount{Name: folder.Name, MountPath: scratch}
	pod.Volumes = append(pod.Volumes, folder)
	main.VolumeMounts = append(main.VolumeMounts, mount)
	pod.InitContainers = []corev1.Container{{
		Name: scratchName, Image: main.Image, Command: main.Command, Args: []string{"scratch"},
		Env:           values("BACKUP_SCRATCH", scratch),
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		Resources:     main.Resources, SecurityContext: main.SecurityContext,
		VolumeMounts: []corev1.VolumeMount{mount},
	}}
}

// connection has the settings for the connection to the server. The host is a Service of the namespace, so that the
// password is not sent to another host. The kubelet reads the credentials from Secrets: they are not in the Job, and
// the operator may not read them.
func connection(
	namespace string, target *databasesv1.TargetReference, auth *databasesv1.Auth, database string,
) []corev1.EnvVar {
	env := values(
		"PGHOST", serviceOf(target)+"."+namespace+".svc",
		"PGPORT", number(cmp.Or(target.Port, 5432)),
		// libpq before 16 does not know this variable, and ignores it.
		"PGREQUIREAUTH", "scram-sha-256",
		"PGSSLMODE", string(cmp.Or(target.TLS.Mode, databasesv1.TLSPrefer)),
		"BACKUP_DATABASE", database)
	if target.TLS.CA != nil {
		env = append(env, values("PGSSLROOTCERT", path.Join(caFolder, caFile))...)
	}
	return append(env, secret("PGUSER", auth.UsernameSecretRef), secret("PGPASSWORD", auth.PasswordSecretRef))
}

// mountCA gives the container of a pod the certificates of the authorities. The volume is optional: when a key is
// missing the pod still starts, and pgbackup reports it at once.
func mountCA(pod *corev1.PodSpec, ca *databasesv1.CAReference) {
	if ca == nil {
		return
	}
	volume := corev1.Volume{Name: "ca"}
	item := func(ref *databasesv1.KeyReference) []corev1.KeyToPath {
		return []corev1.KeyToPath{{Key: ref.Key, Path: caFile}}
	}
	switch {
	case ca.SecretKeyRef != nil:
		volume.Secret = &corev1.SecretVolumeSource{
			SecretName: ca.SecretKeyRef.Name, Items: item(ca.SecretKeyRef), Optional: new(true)}
	case ca.ConfigMapKeyRef != nil:
		volume.ConfigMap = &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: ca.ConfigMapKeyRef.Name},
			Items:                item(ca.ConfigMapKeyRef), Optional: new(true)}
	}
	pod.Volumes = append(pod.Volumes, volume)
	main := &pod.Containers[0]
	mount := corev1.VolumeMount{Name: volume.Name, MountPath: caFolder, ReadOnly: true}
	main.VolumeMounts = append(main.VolumeMounts, mount)
}

func secret(variable string, ref *databasesv1.KeyReference) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name}, Key: ref.Key}}}
}

// values makes environment variables of names and values. Kubernetes would replace $(NAME) in a value: there a $ is
// written as $$.
func values(pairs ...string) (env []corev1.EnvVar) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			env = append(env, corev1.EnvVar{Name: pairs[i], Value: strings.ReplaceAll(pairs[i+1], "$", "$$")})
		}
	}
	return env
}
