package controller

import (
	"cmp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// postgres is the user and group in Debian's images of PostgreSQL. initdb refuses a user that is not in /etc/passwd of
// the image.
const postgres = 999

// A step is a container that runs one verb of pgbackup. Its name is the verb.
type step struct {
	verb     string
	settings []corev1.EnvVar
	access   []access
}

// An access is what a container gets to reach something: the database, the repository, a folder.
type access struct {
	settings []corev1.EnvVar
	volumes  []corev1.Volume
	mounts   []corev1.VolumeMount
}

// mount adds a volume, and mounts it.
func (a *access) mount(name, path string, source corev1.VolumeSource, readOnly bool) {
	a.volumes = append(a.volumes, corev1.Volume{Name: name, VolumeSource: source})
	a.mounts = append(a.mounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
}

// podOf is a pod that meets the restricted Pod Security Standard. Its containers run one after another, and are never
// restarted: each try is a new pod.
func podOf(image string, resources databasesv1.Resources, steps ...step) corev1.PodSpec {
	pod := corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(postgres)), RunAsGroup: new(int64(postgres)),
			FSGroup:             new(int64(postgres)),
			FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	for _, s := range steps {
		c := corev1.Container{
			Name: s.verb, Image: image, Command: []string{"pgbackup"}, Args: []string{s.verb}, Env: s.settings,
			Resources: corev1.ResourceRequirements{Requests: resources.Requests, Limits: resources.Limits},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}
		for _, a := range append(s.access, temporary(s.verb)) {
			c.Env = append(c.Env, a.settings...)
			c.VolumeMounts = append(c.VolumeMounts, a.mounts...)
			for _, v := range a.volumes {
				if !slices.ContainsFunc(pod.Volumes, func(x corev1.Volume) bool { return x.Name == v.Name }) {
					pod.Volumes = append(pod.Volumes, v)
				}
			}
		}
		pod.InitContainers = append(pod.InitContainers, c)
	}
	last := len(steps) - 1
	pod.InitContainers, pod.Containers = pod.InitContainers[:last:last], pod.InitContainers[last:]
	return pod
}

// containersOf returns the names of the containers of a Job, in the order in which they run.
func containersOf(job *batchv1.Job) (names []string) {
	pod := job.Spec.Template.Spec
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		names = append(names, c.Name)
	}
	return names
}

// temporary is /tmp. Each container has another one: verify, which runs code of the dump, shares no folder with finish,
// which has the repository.
func temporary(verb string) (a access) {
	a.mount("tmp-"+verb, "/tmp", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, false)
	return a
}

// scratchFolder is the folder into which backup writes the dump, and in which verify restores it. A restore runs code
// that the owners of tables wrote, so verify has nothing but this folder.
func scratchFolder(resources databasesv1.Resources) (a access) {
	folder := &corev1.EmptyDirVolumeSource{}
	if limit, ok := resources.Limits[corev1.ResourceEphemeralStorage]; ok {
		folder.SizeLimit = &limit
	}
	a.mount("scratch", scratch, corev1.VolumeSource{EmptyDir: folder}, false)
	return a
}

// serverOf is the access to the server. The host is a Service of the namespace, so that the password is not sent to
// another host. The kubelet reads the credentials from Secrets: they are not in the Job, and the operator may not read
// them.
func serverOf(namespace string, target *databasesv1.TargetReference, auth *databasesv1.Auth) (a access) {
	a.settings = values(
		"PGHOST", serviceOf(target)+"."+namespace+".svc",
		"PGPORT", number(cmp.Or(target.Port, 5432)),
		// libpq before 16 does not know this variable, and ignores it.
		"PGREQUIREAUTH", "scram-sha-256",
		"PGSSLMODE", string(cmp.Or(target.TLS.Mode, databasesv1.TLSPrefer)))
	a.settings = append(a.settings,
		secret("PGUSER", auth.UsernameSecretRef.Name, auth.UsernameSecretRef.Key),
		secret("PGPASSWORD", auth.PasswordSecretRef.Name, auth.PasswordSecretRef.Key))
	ca := target.TLS.CA
	if ca == nil {
		return a
	}
	a.settings = append(a.settings, values("PGSSLROOTCERT", caFolder+"/"+caFile)...)
	var source corev1.VolumeSource
	if ref := ca.ConfigMapKeyRef; ref != nil {
		source.ConfigMap = &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name},
			Items:                []corev1.KeyToPath{{Key: ref.Key, Path: caFile}}, Optional: new(true)}
	} else {
		source = secretFile(ca.SecretKeyRef, caFile)
	}
	a.mount("ca", caFolder, source, true)
	return a
}

// secretFile is a volume with one key of a Secret. It is optional: when the Secret or the key is missing, the pod still
// starts, and pgbackup reports it at once.
func secretFile(ref *databasesv1.KeyReference, file string) corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: ref.Name, DefaultMode: new(int32(0o400)),
		Items: []corev1.KeyToPath{{Key: ref.Key, Path: file}}, Optional: new(true)}}
}

func secret(variable, name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}}
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
