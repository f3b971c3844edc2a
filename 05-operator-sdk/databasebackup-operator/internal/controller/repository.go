package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"path"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// passwordKey is the key of the password in the Secret that the operator creates.
const passwordKey = "password"

// passwordOf says where the password of the repository is: in the Secret of the user, or in the Secret that the operator
// creates.
func passwordOf(b *databasesv1.DatabaseBackup) *databasesv1.KeyReference {
	if b.Spec.Encryption != nil {
		return &b.Spec.Encryption.PasswordSecretRef
	}
	return &databasesv1.KeyReference{
		Name: cmp.Or(b.Status.EncryptionSecretName, b.Name+"-backup-encryption"), Key: passwordKey}
}

// createPassword creates the Secret with the password of the repository, before the first Job. When it exists it stays
// as it is: the response to an earlier try was lost, or a user brought the password of a repository. Once status lists a
// snapshot it is never created again, because another password would not open the repository. It has no owner: it
// survives the DatabaseBackup, as the backups do.
func (r *Base) createPassword(ctx context.Context, b *databasesv1.DatabaseBackup) error {
	if b.Spec.Encryption != nil || hasSnapshot(b.Status.Backups) {
		return nil
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: passwordOf(b).Name,
			Labels: labels(b.Name, componentBackup)},
		Immutable: new(true), Data: map[string][]byte{passwordKey: []byte(rand.Text())}}
	err := r.Create(ctx, s, fieldOwner, asCached)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errNamespaceTerminating
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return conditionError{explain(databasesv1.ReasonJobRejected,
			"Secret %s, for the password of the repository, is refused: %v", s.Name, err)}
	}
	return fmt.Errorf("create Secret %s/%s: %w", s.Namespace, s.Name, err)
}

func hasSnapshot(backups []databasesv1.Backup) bool {
	for _, backup := range backups {
		if backup.Snapshot != "" {
			return true
		}
	}
	return false
}

// repositoryOf is the access of a container to the repository of a DatabaseBackup. As with the database, the kubelet
// reads the Secrets.
func repositoryOf(b *databasesv1.DatabaseBackup, readOnly bool) (a access) {
	a.mount("password", passwordFolder, secretFile(passwordOf(b), passwordKey), true)
	a.settings = values("RESTIC_PASSWORD_FILE", path.Join(passwordFolder, passwordKey))
	switch d := b.Spec.Destination; {
	case d.PersistentVolumeClaim != nil:
		a.settings = append(a.settings, values("RESTIC_REPOSITORY", path.Join(volumeRoot, b.Spec.BackupPath))...)
		a.mount("backups", volumeRoot, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: d.PersistentVolumeClaim.ClaimName}}, readOnly)
	case d.S3 != nil:
		a.settings = append(a.settings, values(
			"RESTIC_REPOSITORY", "s3:"+d.S3.Endpoint+"/"+path.Join(d.S3.Bucket, d.S3.Prefix),
			"AWS_DEFAULT_REGION", d.S3.Region)...)
		a.addKeys(&d.S3.CredentialsSecretRef, "AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID",
			"AWS_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY")
		a.addStoreCA(d.S3.CASecretRef)
	case d.REST != nil:
		a.settings = append(a.settings, values("RESTIC_REPOSITORY", "rest:"+d.REST.URL)...)
		a.addKeys(d.REST.CredentialsSecretRef, "RESTIC_REST_USERNAME", "username", "RESTIC_REST_PASSWORD", "password")
		a.addStoreCA(d.REST.CASecretRef)
	}
	return a
}

// addKeys adds variables with keys of a Secret, given as pairs.
func (a *access) addKeys(ref *databasesv1.SecretReference, pairs ...string) {
	for i := 0; ref != nil && i < len(pairs); i += 2 {
		a.settings = append(a.settings, secret(pairs[i], ref.Name, pairs[i+1]))
	}
}

// addStoreCA adds the certificates of the authorities of a store.
func (a *access) addStoreCA(ref *databasesv1.KeyReference) {
	if ref != nil {
		a.mount("store-ca", storeCAFolder, secretFile(ref, caFile), true)
		a.settings = append(a.settings, values("RESTIC_CACERT", path.Join(storeCAFolder, caFile))...)
	}
}

// claimOf is the name of the volume claim, empty when the destination is none.
func claimOf(b *databasesv1.DatabaseBackup) string {
	if d := b.Spec.Destination; d != nil && d.PersistentVolumeClaim != nil {
		return d.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// storeOf is the host, and perhaps the port, to which a Job sends the credentials of a store; empty for a volume.
func storeOf(d *databasesv1.Destination) string {
	address := ""
	switch {
	case d == nil:
	case d.S3 != nil:
		address = d.S3.Endpoint
	case d.REST != nil:
		address = d.REST.URL
	}
	store, err := url.Parse(address)
	if err != nil {
		return address
	}
	return store.Host
}
