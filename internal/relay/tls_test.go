package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

const tlsName = "greeter.test"

// keyPair makes a certificate and a pool that trusts it.
func keyPair(t *testing.T) (certificate tls.Certificate, trust *x509.CertPool) {
	t.Helper()
	cert, key, trust := testkit.Certificate(t, t.TempDir(), tlsName, time.Now().Add(time.Hour))
	certificate, err := tls.LoadX509KeyPair(cert, key)
	testkit.Must(t, err)
	return certificate, trust
}

// withTLS has the relay serve TLS on its port.
func withTLS(t *testing.T) (trust *x509.CertPool, option func(*Options)) {
	t.Helper()
	certificate, trust := keyPair(t)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	return trust, func(o *Options) { o.TLS = config }
}

// overTLS has the relay serve on a listener of crypto/tls, too.
func (g *rig) overTLS(t *testing.T) (at string, trust *x509.CertPool) {
	t.Helper()
	certificate, trust := keyPair(t)
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
	if n := g.connections.Load(); n < 4 {
		t.Errorf("%d connections are counted, want 4", n)
	}
	plain := tlsCaller(t, at, trust, false)
	for range 3 {
		answer, err := plain.RoundTrip(request1(t, http.MethodGet, "/", nil))
		testkit.Must(t, err)
		if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 1 {
			t.Errorf("%s, %s", answer.Proto, answer.Status)
		}
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
	if err != nil || !bytes.Equal(body, bytes.Repeat(hi(), back)) || answer.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%d bytes, %v, trailers %v", len(body), err, answer.Trailer)
	}
}

// Who connects to a port with TLS and says nothing, or never finishes its handshake, is let
// go like anybody else.
func TestSilenceOverTLS(t *testing.T) {
	_, option := withTLS(t)
	for name, option := range map[string]func(*Options){"of the port": option, "of others": func(*Options) {}} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, option, func(o *Options) { o.Limits.Handshake = 50 * time.Millisecond })
			at := g.addr
			if name == "of others" {
				at, _ = g.overTLS(t)
			}
			for _, sent := range []string{"", "\x16\x03\x01\x02", "GET / HTTP/1.1\r\n\r\n"} {
				if said := sayAll(t, at, sent); said != "" && !strings.HasPrefix(sent, "GET") {
					t.Errorf("after %q: %q", sent, said)
				}
			}
			testkit.Eventually(t, soon, "their places", func() bool { return g.connections.Load() == 0 })
		})
	}
}

// sayAll sends bytes, and returns what it gets until the end.
func sayAll(t *testing.T, at, sent string) string {
	t.Helper()
	conn, err := net.Dial("tcp", at)
	testkit.Must(t, err)
	defer conn.Close()
	if _, err := io.Copy(conn, strings.NewReader(sent)); err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(soon)))
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("after %q: %v", sent, err)
	}
	return string(all)
}

// On a port that requires TLS, callers without it get a refusal in their own protocol; on
// other ports both are served.
func TestClearOnAPortWithTLS(t *testing.T) {
	trust, option := withTLS(t)
	plain := []string{http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"}
	g := newRig(t, withHTTP1(t), option)
	for _, sent := range plain {
		if said := sayAll(t, g.addr, sent); !strings.Contains(said, "this port speaks TLS") {
			t.Errorf("after %.10q: %q", sent, said)
		}
	}
	if n := g.disconnectedFor(reasonNoTLS); n != 2 {
		t.Errorf("%d are counted", n)
	}
	both := newRig(t, withHTTP1(t), option, func(o *Options) { o.ClearText = true })
	both.shop(50, messages(1, new(atomic.Pointer[http.Header])))
	callOverTLS(t, tlsCaller(t, both.addr, trust, true), 1)
	if said := sayAll(t, both.addr, "GET / HTTP/1.0\r\n\r\n"); !strings.HasPrefix(said, "HTTP/1.0 200") {
		t.Errorf("%q", said)
	}
	both.caller().Close() // greets
	if n := both.disconnectedFor(reasonNoTLS); n != 0 {
		t.Errorf("%d are counted", n)
	}
}

// A drain waits for no handshake that has begun and goes nowhere; one that ends is told to go.
func TestDrainDuringHandshakes(t *testing.T) {
	trust, option := withTLS(t)
	g := newRig(t, option)
	conn, err := net.Dial("tcp", g.addr)
	testkit.Must(t, err)
	defer conn.Close()
	if _, err := conn.Write([]byte{0x16, 3, 1}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, "the handshake to begin", func() bool { return g.numbers()["guests"] == 1 })
	secure, err := tls.Dial("tcp", g.addr, &tls.Config{RootCAs: trust, ServerName: tlsName, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13})
	testkit.Must(t, err)
	defer secure.Close()
	g.drain(soon, nil)()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the one that waits: %v", err)
	}
}

// A caller with a certificate is known by its name: to workers, to keys, and to the server of
// HTTP/1. Claims that other callers send are not passed on.
func TestCertificatesOfCallers(t *testing.T) {
	trust, option := withTLS(t)
	cert, key, authority := testkit.Certificate(t, t.TempDir(), "alice.test", time.Now().Add(time.Hour))
	alice, err := tls.LoadX509KeyPair(cert, key)
	testkit.Must(t, err)
	guests := make(chan string, 1)
	g := newRig(t, option, func(o *Options) {
		o.TLS.ClientCAs, o.TLS.ClientAuth = authority, tls.VerifyClientCertIfGiven
		o.Identity = func(state *tls.ConnectionState) (string, error) {
			if len(state.VerifiedChains) == 0 {
				return "", nil
			}
			return state.PeerCertificates[0].DNSNames[0], nil
		}
		o.Keys = Keys{By: ByPeer, Concurrent: 10}
		o.HTTP1 = func(guest *Guest) {
			guests <- guest.Certificate()
			_ = guest.Close()
		}
	})
	head := new(atomic.Pointer[http.Header])
	g.shop(50, messages(1, head))
	for name, shown := range map[string][]tls.Certificate{"alice.test": {alice}, "": nil} {
		transport := tlsCaller(t, g.addr, trust, true)
		transport.TLSClientConfig.Certificates = shown
		var want []string
		if name != "" {
			want = []string{name}
		}
		for range 2 { // the second time the block is known
			r := request1(t, http.MethodPost, hello, bytes.NewReader(hi()))
			r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "X-Cabrank-Client": {"mallory", "bob"}}
			answer, err := transport.RoundTrip(r)
			testkit.Must(t, err)
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if got := (*head.Load())["X-Cabrank-Client"]; !slices.Equal(got, want) {
				t.Errorf("the worker is told %q, want %q", got, want)
			}
		}
		one := tlsCaller(t, g.addr, trust, false)
		one.TLSClientConfig.Certificates = shown
		_, _ = one.RoundTrip(request1(t, http.MethodGet, "/", nil)) // ends without an answer
		if got := <-guests; got != name {
			t.Errorf("over HTTP/1: %q, want %q", got, name)
		}
	}
	if got, want := g.keyNames(), []string{identityKey + "cert:alice.test", "127.0.0.1"}; !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}

// The field for a certificate counts in the header list, however short its name is. A caller
// whose name is removed in the middle of its handshake is refused.
func TestNamesOfCertificates(t *testing.T) {
	_, option := withTLS(t)
	cert, key, _ := testkit.Certificate(t, t.TempDir(), "a", time.Now().Add(time.Hour))
	pair, err := tls.LoadX509KeyPair(cert, key)
	testkit.Must(t, err)
	g := newRig(t, option, func(o *Options) {
		o.TLS.ClientAuth = tls.RequestClientCert
		o.Identity = func(*tls.ConnectionState) (string, error) { return "", errors.New("not let in") }
	})
	for _, name := range []string{"", "a", strings.Repeat("a", 256)} {
		g.shards[0].do(func() {
			id := g.shards[0].newCallerID(Caller{Certificate: name})
			fields, err := h2.DecodeFields(id.fields)
			if err != nil {
				t.Error(err)
			}
			listed := 0
			for _, f := range fields {
				listed += len(f.Name) + len(f.Value) + 32
			}
			if id.listSize != listed {
				t.Errorf("%q: %d octets are counted, %d are added", name, id.listSize, listed)
			}
		})
	}
	conn, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	testkit.Must(t, err)
	defer conn.Close()
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n := g.disconnectedFor(reasonTLS); n != 1 {
		t.Errorf("%d are counted", n)
	}
}
