package testkit

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/certificate"
)

// Certificate writes a certificate of its own, for a name and the loopback address, with its
// key into a folder, as NAME.crt and NAME.key, and returns who trusts it.
func Certificate(t testing.TB, folder, name string, until time.Time) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	certText, keyText, err := certificate.Make(name, until)
	if err != nil {
		t.Fatal(err)
	}
	for of, text := range map[string][]byte{"crt": certText, "key": keyText} {
		if err := os.WriteFile(filepath.Join(folder, name+"."+of), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trust = x509.NewCertPool()
	trust.AppendCertsFromPEM(certText)
	return filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key"), trust
}

// Trust writes a certificate into a folder, as NAME.crt.
func Trust(t testing.TB, folder, name string, certificate *x509.Certificate) (file string) {
	t.Helper()
	file = filepath.Join(folder, name+".crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
