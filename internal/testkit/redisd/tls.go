package redisd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Certificates are files of a CA, and of a pair signed by it, which both sides use.
type Certificates struct{ CA, Cert, Key string }

// StartTLS starts a Redis with a port for TLS, at which callers show a certificate, too.
func StartTLS(t testing.TB) (*Server, Certificates) {
	t.Helper()
	c := newCertificates(t, t.TempDir())
	servers := launchAll(t, 1, 1, func(_, port int) []string {
		return []string{
			"--port", "0", "--tls-port", strconv.Itoa(port),
			"--tls-ca-cert-file", c.CA, "--tls-cert-file", c.Cert, "--tls-key-file", c.Key,
		}
	})
	return servers[0], c
}

// newCertificates writes certificates for localhost, good for an hour.
func newCertificates(t testing.TB, folder string) Certificates {
	t.Helper()
	c := Certificates{filepath.Join(folder, "ca"), filepath.Join(folder, "cert"), filepath.Join(folder, "key")}
	caKey, key := newKey(t), newKey(t)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: ca.NotAfter, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	writeCertificate(t, c.CA, ca, ca, &caKey.PublicKey, caKey)
	writeCertificate(t, c.Cert, leaf, ca, &key.PublicKey, caKey)
	der, err := x509.MarshalECPrivateKey(key)
	testkit.Must(t, err)
	writePEM(t, c.Key, "EC PRIVATE KEY", der)
	return c
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	return key
}

func writeCertificate(t testing.TB, file string, of, by *x509.Certificate, public *ecdsa.PublicKey, signer *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, of, by, public, signer)
	testkit.Must(t, err)
	writePEM(t, file, "CERTIFICATE", der)
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	testkit.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
