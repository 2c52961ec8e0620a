//go:build real || soak

package load_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// certified is a key and the certificate that it has signed itself.
type certified struct {
	pair      tls.Certificate
	pool      *x509.CertPool
	cert, key string // files
}

func certify(t *testing.T, name string) certified {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	testkit.Must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	testkit.Must(t, err)
	folder := t.TempDir()
	c := certified{cert: filepath.Join(folder, "cert.pem"), key: filepath.Join(folder, "key.pem"), pool: x509.NewCertPool()}
	for file, block := range map[string]*pem.Block{c.cert: {Type: "CERTIFICATE", Bytes: raw}, c.key: {Type: "PRIVATE KEY", Bytes: secret}} {
		testkit.Must(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	if c.pair, err = tls.LoadX509KeyPair(c.cert, c.key); err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(raw)
	testkit.Must(t, err)
	c.pool.AddCert(parsed)
	return c
}

// serveTLS serves health and reflection over TLS.
func serveTLS(t *testing.T, config *tls.Config) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-ended })
	return l.Addr().String()
}

const checkHealth = "grpc.health.v1.Health/Check"

// Reflection and calls go over TLS: the server is checked, by whom and for which name
// one likes, and the caller shows a certificate if it has to.
func TestLabLoadOverTLS(t *testing.T) {
	server, caller := certify(t, "service.test"), certify(t, "caller.test")
	open := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{server.pair}})
	strict := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{server.pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: caller.pool})
	trusted := []string{"--cacert", server.cert, "--servername", "service.test"}
	for _, test := range []struct {
		name, address string
		flags         []string
	}{
		{"by its authority", open, trusted},
		{"unchecked", open, []string{"--insecure-skip-verify"}},
		{"of both sides", strict, append([]string{"--cert", caller.cert, "--key", caller.key}, trusted...)},
		{"a connection for each call", open, append([]string{"--connections", "per-call"}, trusted...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"--data", "{}", "--callers", "2", "--duration", "300ms", "--fail", "errors<=0%"}, test.flags...)
			load := startLoad(t, test.address, checkHealth, args...)
			load.WantExit(harness.Patience, 0, "calls answered")
		})
	}
}

// A service that cannot be trusted is told in a line with what to do, by reflection and without.
func TestLabLoadTLSFaults(t *testing.T) {
	server := certify(t, "service.test")
	secured := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{server.pair}})
	strict := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{server.pair}, ClientAuth: tls.RequireAnyClientCert})
	plain := startDemo(t)
	proto := filepath.Join(t.TempDir(), "health.proto")
	text := `syntax = "proto3"; package grpc.health.v1; message M {} service Health { rpc Check(M) returns (M); }`
	testkit.Must(t, os.WriteFile(proto, []byte(text), 0o600))
	for _, test := range []struct {
		name, address string
		flags         []string
		want          string
	}{
		{"no authority", secured, []string{"--servername", "service.test"}, "--cacert FILE"},
		{"no authority, by file", secured, []string{"--servername", "service.test", "--proto", proto}, "--cacert FILE"},
		{"another name", secured, []string{"--cacert", server.cert, "--tls"}, "--servername"},
		{"a server without TLS", plain, []string{"--tls"}, "without --tls"},
		{"a server without TLS, by file", plain, []string{"--tls", "--proto", proto}, "without --tls"},
		{"a caller without TLS", secured, nil, "give --tls"},
		{"a caller without TLS, by file", secured, []string{"--proto", proto}, "give --tls"},
		{"a caller without certificate", strict, []string{"--insecure-skip-verify"}, "give --cert FILE --key FILE"},
		{"no such file", secured, []string{"--cacert", "/no/such/file"}, "--cacert: open /no/such/file"},
		{"no certificate", secured, []string{"--cacert", proto}, "there is no certificate in it"},
		{"a certificate alone", secured, []string{"--cert", server.cert}, "give both or none"},
		{"both at once", secured, []string{"--cacert", server.cert, "--insecure-skip-verify"}, "give one of them"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"--data", "{}", "--callers", "1", "--duration", "100ms"}, test.flags...)
			load := startLoad(t, test.address, checkHealth, args...)
			load.WantRefusal(2, test.want)
		})
	}
}
