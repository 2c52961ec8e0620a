//go:build real || soak

package load_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// certify makes a certificate of service.test that it has signed itself.
func certify(t *testing.T) (file string, pair []tls.Certificate) {
	t.Helper()
	file, key, _ := testkit.Certificate(t, t.TempDir(), "service.test", time.Now().Add(time.Hour))
	loaded, err := tls.LoadX509KeyPair(file, key)
	testkit.Must(t, err)
	return file, []tls.Certificate{loaded}
}

// Reflection and calls go over TLS: the server is checked, by whom and for which name
// one likes, and the caller shows a certificate if it has to.
func TestLabLoadOverTLS(t *testing.T) {
	cert, pair := certify(t)
	callerCert, callerKey, trust := testkit.Certificate(t, t.TempDir(), "caller.test", time.Now().Add(time.Hour))
	open := serveHealth(t, &tls.Config{Certificates: pair})
	strict := serveHealth(t, &tls.Config{Certificates: pair, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trust})
	trusted := []string{"--cacert", cert, "--servername", "service.test"}
	for _, test := range []struct {
		name, address string
		flags         []string
	}{
		{"by its authority", open, trusted},
		{"unchecked", open, []string{"--insecure-skip-verify"}},
		{"of both sides", strict, append([]string{"--cert", callerCert, "--key", callerKey}, trusted...)},
		{"a connection for each call", open, append([]string{"--connections", "per-call"}, trusted...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"--data", "{}", "--callers", "2", "--duration", "300ms", "--fail", "errors<=0%"}, test.flags...)
			startLoad(t, test.address, checkHealth, args...).WantExit(harness.Patience, 0, "calls answered")
		})
	}
}

// A service that cannot be trusted is told in a line with what to do, by reflection and without.
func TestLabLoadTLSFaults(t *testing.T) {
	cert, pair := certify(t)
	secured := serveHealth(t, &tls.Config{Certificates: pair})
	strict := serveHealth(t, &tls.Config{Certificates: pair, ClientAuth: tls.RequireAnyClientCert})
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
		{"another name", secured, []string{"--cacert", cert, "--servername", "other.test"}, "--servername"},
		{"a server without TLS", plain, []string{"--tls"}, "without --tls"},
		{"a server without TLS, by file", plain, []string{"--tls", "--proto", proto}, "without --tls"},
		{"a caller without TLS", secured, nil, "give --tls"},
		{"a caller without TLS, by file", secured, []string{"--proto", proto}, "give --tls"},
		{"a caller without certificate", strict, []string{"--insecure-skip-verify"}, "give --cert FILE --key FILE"},
		{"no such file", secured, []string{"--cacert", "/no/such/file"}, "--cacert: open /no/such/file"},
		{"no certificate", secured, []string{"--cacert", proto}, "there is no certificate in it"},
		{"a certificate alone", secured, []string{"--cert", cert}, "give both or none"},
		{"both at once", secured, []string{"--cacert", cert, "--insecure-skip-verify"}, "give one of them"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"--data", "{}", "--callers", "1", "--duration", "100ms"}, test.flags...)
			startLoad(t, test.address, checkHealth, args...).WantRefusal(2, test.want)
		})
	}
}
