package relay

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// wireTLS is what callers of a case over TLS have.
type wireTLS struct {
	trust *x509.CertPool             // of the port's certificate
	certs map[string]tls.Certificate // of callers
}

// tlsConfig is that of the port; callers may show a certificate with the name asks.
func (w *wire) tlsConfig(asks string) *tls.Config {
	certificate, trust := keyPair(w, tlsName)
	w.tls = wireTLS{trust, map[string]tls.Certificate{}}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	if asks != "" {
		w.tls.certs[asks], config.ClientCAs = keyPair(w, asks)
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return config
}

// dialTLS connects a caller that speaks a protocol, and shows its certificate if it has a name.
func (w *wire) dialTLS(protocol, name string) net.Conn {
	config := &tls.Config{RootCAs: w.tls.trust, ServerName: tlsName, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}
	if name != "" {
		config.Certificates = []tls.Certificate{w.tls.certs[name]}
	}
	return tls.Client(w.rig().dialPipe(), config)
}

// identity names callers by their certificates, or lets nobody in that has one.
func identity(refuses bool) func(*tls.ConnectionState) (string, error) {
	return func(state *tls.ConnectionState) (string, error) {
		switch {
		case len(state.PeerCertificates) == 0:
			return "", nil
		case refuses:
			return "", errors.New("not let in")
		}
		return state.PeerCertificates[0].DNSNames[0], nil
	}
}

// overTLS brings in a raw caller whose connection another server of TLS has accepted.
func (w *wire) overTLS() *testkit.Peer {
	certificate, _ := keyPair(w, tlsName)
	ours, theirs := net.Pipe()
	w.rig().ServeConn(tls.Server(ours, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}))
	return testkit.NewCaller(w, theirs)
}

// keyPair makes a certificate and a pool that trusts it.
func keyPair(t testing.TB, name string) (certificate tls.Certificate, trust *x509.CertPool) {
	t.Helper()
	cert, key, trust := testkit.Certificate(t, t.TempDir(), name, time.Now().Add(time.Hour))
	certificate, err := tls.LoadX509KeyPair(cert, key)
	testkit.Must(t, err)
	return certificate, trust
}
