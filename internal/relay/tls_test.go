package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

const tlsName = "greeter.test"

// withTLS has the relay serve TLS on its port.
func withTLS(t *testing.T) (trust *x509.CertPool, option func(*Options)) {
	t.Helper()
	certificate, trust := keyPair(t, tlsName)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	return trust, func(o *Options) { o.TLS = config }
}

// overTLS has the relay serve on a listener of crypto/tls, too.
func (g *rig) overTLS(t *testing.T) (at string, trust *x509.CertPool) {
	t.Helper()
	certificate, trust := keyPair(t, tlsName)
	ln := testkit.Listen(t)
	g.serve(tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS13}))
	return ln.Addr().String(), trust
}

func tlsCaller(t *testing.T, at string, trust *x509.CertPool, two bool) *http.Transport {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!two)
	protocols.SetHTTP2(two)
	transport := &http.Transport{
		Protocols:       protocols,
		TLSClientConfig: &tls.Config{RootCAs: trust, ServerName: tlsName, MinVersion: tls.VersionTLS13},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", at)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// R22: a connection over TLS, of the port or accepted elsewhere by crypto/tls, is a caller's
// like any other: calls with large bodies both ways, several connections at once, limits
// and counts; HTTP/1 over it is served, too, and nothing is left.
func TestConnectionsOfTLS(t *testing.T) {
	t.Run("of the port", func(t *testing.T) {
		trust, option := withTLS(t)
		g := newRig(t, withHTTP1(t), option, func(o *Options) { o.Shards = 2 })
		serveOverTLS(t, g, g.addr, trust)
	})
	t.Run("of others", func(t *testing.T) {
		g := newRig(t, withHTTP1(t), func(o *Options) { o.Shards = 2 })
		at, trust := g.overTLS(t)
		serveOverTLS(t, g, at, trust)
	})
}

func serveOverTLS(t *testing.T, g *rig, at string, trust *x509.CertPool) {
	t.Helper()
	const all = 20
	g.shop(50, messages(all, new(atomic.Pointer[http.Header])))
	var calling sync.WaitGroup
	for range 4 {
		transport := tlsCaller(t, at, trust, true)
		for range 5 {
			calling.Go(func() { callOverTLS(t, transport, all) })
		}
	}
	calling.Wait()
	n := g.sources.Open.Load()
	testkit.Want(t, n >= 4, "%d connections are counted, want 4", n)
	plain := tlsCaller(t, at, trust, false)
	for range 3 {
		answer, err := plain.RoundTrip(request1(t, http.MethodGet, "/", nil))
		testkit.Must(t, err)
		testkit.Want(t, answer.StatusCode == http.StatusOK && answer.ProtoMajor == 1, "%s, %s", answer.Proto, answer.Status)
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	testkit.Eventually(t, soon, "the last of HTTP/1 to go", func() bool { return g.numbers()["guests"] == 0 })
}

func request1(t *testing.T, method, path string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+tlsName+path, body)
	testkit.Must(t, err)
	return r
}

// callOverTLS sends a message of 200 KB, and wants so many back.
func callOverTLS(t *testing.T, transport *http.Transport, back int) {
	t.Helper()
	const size = 200_000
	message := append([]byte{0, 0, size >> 16, size >> 8 & 0xff, size & 0xff}, make([]byte, size)...)
	r := request1(t, http.MethodPost, hello, bytes.NewReader(message))
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("TE", "trailers")
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	testkit.Want(t, err == nil && bytes.Equal(body, bytes.Repeat(hi(), back)) && answer.Trailer.Get("Grpc-Status") == "0",
		"%d bytes, %v, trailers %v", len(body), err, answer.Trailer)
}

// The field for a certificate counts in the header list, however short its name is.
func TestNamesOfCertificates(t *testing.T) {
	g := newRig(t)
	for _, name := range []string{"", "a", strings.Repeat("a", 256)} {
		g.shards[0].do(func() {
			id := g.shards[0].ids.New(callers.Caller{Certificate: name})
			fields, err := h2.DecodeFields(id.Fields)
			testkit.Must(t, err)
			listed := 0
			for _, f := range fields {
				listed += len(f.Name) + len(f.Value) + 32
			}
			testkit.Want(t, id.ListSize == listed, "%q: %d octets are counted, %d are added", name, id.ListSize, listed)
		})
	}
}
