package harness

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/cabrank/cabrank/internal/testkit"
)

// WithTLS writes a configuration of a port that speaks TLS, with more in it, and returns the
// certificate, which is for port.test and the loopback address, and who trusts it.
func WithTLS(t testing.TB, more string) (config, cert string, trust *x509.CertPool) {
	t.Helper()
	folder := t.TempDir()
	cert, key, trust := testkit.Certificate(t, folder, "port.test", time.Now().Add(time.Hour))
	config = filepath.Join(folder, "cabrank.yml")
	testkit.Must(t, os.WriteFile(config, fmt.Appendf(nil, "tls: [{cert: %s, key: %s}]\n%s", cert, key, more), 0o600))
	return config, cert, trust
}

// DialTLS is Dial over TLS.
func DialTLS(t testing.TB, addr string, trust *x509.CertPool) *grpc.ClientConn {
	t.Helper()
	secret := credentials.NewTLS(&tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12})
	return Dial(t, addr, grpc.WithTransportCredentials(secret))
}
