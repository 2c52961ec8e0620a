package certs_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/testkit"
)

// answering accepts connections with TLS of a configuration, nil: without any, and returns
// its port.
func answering(t *testing.T, config *tls.Config) (port string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() { // ends with ln
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			if config != nil {
				nc = tls.Server(nc, config)
			}
			_, _ = nc.Write([]byte("x")) // without TLS it is no record
			_ = nc.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return port
}

// Servers are verified, by their host or by the name that is set; what is wrong is one line.
// Files that change hold for the next connection, those that cannot be used do not.
func TestDialer(t *testing.T) {
	testkit.CheckLeaks(t)
	folder, until := t.TempDir(), time.Now().Add(time.Hour)
	server, other := write(t, folder, "server.test", until), write(t, folder, "other.test", until)
	old := write(t, folder, "old.test", time.Now().Add(-time.Minute))
	serving := func(p certs.Pair, protocol string) *tls.Config {
		pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{protocol}}
	}
	strict := serving(server, "h2")
	strict.ClientAuth, strict.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12 // the client learns of it in the handshake
	good, wants := answering(t, serving(server, "h2")), answering(t, strict)
	for what, tc := range map[string]struct {
		at   string
		set  certs.Upstream
		want string // in the error; "": none
	}{
		"by its address":      {"127.0.0.1:" + good, certs.Upstream{CA: server.Cert}, ""},
		"by the name":         {"localhost:" + good, certs.Upstream{CA: server.Cert, Name: "server.test"}, ""},
		"another name":        {"localhost:" + good, certs.Upstream{CA: server.Cert}, "not localhost"},
		"another signer":      {"127.0.0.1:" + good, certs.Upstream{CA: other.Cert}, "unknown authority"},
		"of no system":        {"127.0.0.1:" + good, certs.Upstream{}, "unknown authority"},
		"expired":             {"127.0.0.1:" + answering(t, serving(old, "h2")), certs.Upstream{CA: old.Cert}, "has expired"},
		"without TLS":         {"127.0.0.1:" + answering(t, nil), certs.Upstream{CA: server.Cert}, "TLS with 127.0.0.1"},
		"another protocol":    {"127.0.0.1:" + answering(t, serving(server, "http/1.1")), certs.Upstream{CA: server.Cert}, "TLS with 127.0.0.1"},
		"wants a certificate": {"127.0.0.1:" + wants, certs.Upstream{CA: server.Cert}, "TLS with 127.0.0.1"},
		"and gets one":        {"127.0.0.1:" + wants, certs.Upstream{CA: server.Cert, Cert: other.Cert, Key: other.Key}, ""},
	} {
		d, err := certs.NewDialer(tc.set, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := dialed(t, d, tc.at); (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", what, err, tc.want)
		}
	}

	var log lines
	ca := filepath.Join(folder, "ca.pem")
	put(t, ca, []byte("none"))
	if _, err := certs.NewDialer(certs.Upstream{CA: ca}, nil); err == nil || !strings.Contains(err.Error(), "has no certificate in PEM") {
		t.Errorf("a file without certificates: %v", err)
	}
	copyFile(t, other.Cert, ca)
	d, err := certs.NewDialer(certs.Upstream{CA: ca}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:" + good
	if err := dialed(t, d, at); err == nil {
		t.Error("another signer is taken")
	}
	copyFile(t, server.Cert, ca)
	if err := dialed(t, d, at); err != nil {
		t.Errorf("a signer that is new: %v", err)
	}
	put(t, ca, []byte("none, and longer"))
	for range 2 {
		if err := dialed(t, d, at); err != nil {
			t.Errorf("a file that is none any more: %v", err)
		}
	}
	if n := strings.Count(log.text(), "what it was before stays"); n != 1 {
		t.Errorf("told %d times: %s", n, log.text())
	}
	if err := d.Replace(certs.Upstream{Cert: other.Cert, Key: server.Key}); err == nil {
		t.Error("a key of another certificate is taken")
	}
}

func dialed(t *testing.T, d *certs.Dialer, at string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	nc, err := d.Dial(ctx, at)
	if err != nil {
		return err
	}
	defer nc.Close()
	_, err = io.ReadAll(nc)
	return err
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	put(t, to, text)
}
