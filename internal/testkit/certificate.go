package testkit

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
	"testing"
	"time"
)

// Certificate writes a certificate of its own, for a name and the loopback address, with its
// key into a folder, as NAME.crt and NAME.key, and returns who trusts it.
func Certificate(t testing.TB, folder, name string, until time.Time) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: until, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	for of, block := range map[string]*pem.Block{"crt": {Type: "CERTIFICATE", Bytes: raw}, "key": {Type: "PRIVATE KEY", Bytes: encoded}} {
		text := pem.EncodeToMemory(block)
		if err := os.WriteFile(filepath.Join(folder, name+"."+of), text, 0o600); err != nil {
			t.Fatal(err)
		}
		trust.AppendCertsFromPEM(text) // the key is none, and passed over
	}
	return filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key"), trust
}
