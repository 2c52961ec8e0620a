package relay

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/testkit"
)

const tlsName = "greeter.test"

// keyPair makes a certificate and who trusts it.
func keyPair(t *testing.T) (certificate tls.Certificate, trust *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{tlsName}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	trust = x509.NewCertPool()
	trust.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, trust
}

// overTLS has the relay serve on a listener of crypto/tls, and returns a caller there.
func (g *rig) overTLS(t *testing.T) (at string, caller func(http2 bool) *http.Transport) {
	t.Helper()
	certificate, trust := keyPair(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS13})
	served := make(chan error, 1)
	go func() { served <- g.Serve(secure) }() // ended by Close
	t.Cleanup(func() {
		g.Close()
		if err := <-served; !errors.Is(err, door.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return ln.Addr().String(), func(http2 bool) *http.Transport {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!http2)
		protocols.SetHTTP2(http2)
		transport := &http.Transport{
			Protocols:       protocols,
			TLSClientConfig: &tls.Config{RootCAs: trust, ServerName: tlsName, MinVersion: tls.VersionTLS13},
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
			},
		}
		t.Cleanup(transport.CloseIdleConnections)
		return transport
	}
}

// R22: a connection that was accepted elsewhere, by crypto/tls, is a caller's like
// any other: calls with large bodies both ways, several connections at once, limits
// and counts; HTTP/1 over it is served, too, and nothing is left.
func TestConnectionsOfTLS(t *testing.T) {
	const messages = 20
	g := newRig(t, withHTTP1(t), func(o *Options) { o.Shards = 2 })
	shop := openShop(t, messages)
	g.Up(g.AddEndpoint("w1", 50, true), "tcp", shop.ln.Addr().String())
	_, caller := g.overTLS(t)
	var calling sync.WaitGroup
	for range 4 {
		transport := caller(true)
		for range 5 {
			calling.Go(func() { callOverTLS(t, transport, messages) })
		}
	}
	calling.Wait()
	if n := g.connections.Load(); n < 4 {
		t.Errorf("%d connections are counted, want 4", n)
	}
	plain := caller(false)
	for range 3 {
		answer, err := plain.RoundTrip(request1(t, http.MethodGet, "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 1 {
			t.Errorf("%s, %s", answer.Proto, answer.Status)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	testkit.Eventually(t, soon, "the last of HTTP/1 to go", func() bool { return g.guests() == 0 })
}

func request1(t *testing.T, method, path string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+tlsName+path, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// callOverTLS sends a message of 200 KB, and wants so many back.
func callOverTLS(t *testing.T, transport *http.Transport, messages int) {
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
	if err != nil || !bytes.Equal(body, bytes.Repeat(hi(), messages)) || answer.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%d bytes, %v, trailers %v", len(body), err, answer.Trailer)
	}
}

// Who connects over TLS and says nothing, or never finishes its handshake, is let go
// like anybody else, and a drain does not wait for it.
func TestSilenceOverTLS(t *testing.T) {
	g := newRig(t, func(o *Options) { o.Limits.Handshake = 50 * time.Millisecond })
	at, _ := g.overTLS(t)
	for _, sent := range []string{"", "\x16\x03\x01\x02", "GET / HTTP/1.1\r\n\r\n"} {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.Copy(conn, strings.NewReader(sent)); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(soon)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("after %q: %v", sent, err)
		}
	}
	testkit.Eventually(t, soon, "their places", func() bool { return g.connections.Load() == 0 })
}
