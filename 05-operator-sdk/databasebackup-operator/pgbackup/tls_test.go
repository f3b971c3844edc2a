//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// selfSigned returns a certificate for a host that is its own authority, and its key.
func selfSigned(t *testing.T, host string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	noError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: rand.Text()},
		DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	noError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	noError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// turnTLS switches TLS on or off in the server of the tests. Only for these tests does the server listen on 127.0.0.1.
func turnTLS(t *testing.T, on string) {
	t.Helper()
	sql(t, "postgres", "ALTER SYSTEM SET ssl = "+on+";")
	sql(t, "postgres", "SELECT pg_reload_conf();")
	await(t, "TLS "+on, func() bool { return sql(t, "postgres", "SHOW ssl;") == on })
}

// authorities gives the server a certificate, and writes the authority of this certificate, and another authority.
func authorities(t *testing.T, dir string) (ours, others string) {
	t.Helper()
	certificate, key := selfSigned(t, "localhost")
	stranger, _ := selfSigned(t, "localhost")
	p, _ := workplace()
	ours, others = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "other.crt")
	for path, text := range map[string][]byte{ours: certificate, others: stranger,
		filepath.Join(serverDir, "data/server.crt"): certificate, filepath.Join(serverDir, "data/server.key"): key} {
		noError(t, os.WriteFile(path, text, 0o600))
		p.give(t, path)
	}
	return ours, others
}

// The TLS settings hold, and each fault gets a reason. Each run ends at once, because another try would find the same.
// The password does not go to a server that asks for it in clear text.
func TestTLS(t *testing.T) {
	settings := target(t)
	ours, others := authorities(t, settings["TMPDIR"])
	sql(t, "postgres", "CREATE ROLE plain SUPERUSER LOGIN PASSWORD 'plain-password';")
	t.Cleanup(func() { sql(t, "postgres", "DROP ROLE plain;") })
	for name, test := range map[string]struct {
		tls, host, mode, ca string
		want                Reason
	}{
		"the right authority and host":         {"on", "localhost", "verify-full", ours, ReasonBackupSucceeded},
		"the right authority, another host":    {"on", "127.0.0.1", "verify-ca", ours, ReasonBackupSucceeded},
		"the wrong host":                       {"on", "127.0.0.1", "verify-full", ours, ReasonTLSFailed},
		"the wrong authority":                  {"on", "localhost", "verify-ca", others, ReasonTLSFailed},
		"any certificate":                      {"on", "localhost", "require", "", ReasonBackupSucceeded},
		"no TLS where a certificate is wanted": {"off", "localhost", "verify-full", ours, ReasonTLSFailed},
		"no TLS where it is required":          {"off", "localhost", "require", "", ReasonTLSFailed},
		"no TLS where it is preferred":         {"off", "localhost", "prefer", "", ReasonBackupSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			turnTLS(t, test.tls)
			must(t, verbBackup, with(settings, "PGHOST", test.host, "PGSSLMODE", test.mode, "PGSSLROOTCERT", test.ca,
				"BACKUP_NAME", strings.NewReplacer(" ", "-", ",", "", "TLS", "tls").Replace(name)), test.want)
		})
	}
	t.Run("a server that asks for the password in clear text", func(t *testing.T) {
		must(t, verbBackup, with(settings, "PGHOST", "localhost", "PGUSER", "plain", "PGPASSWORD", "plain-password",
			"BACKUP_NAME", "clear"), ReasonAuthenticationFailed)
	})
}
