package check

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What people read of an endpoint that speaks something else is what it speaks, and
// nothing of the library that asked.
func TestForeignEndpoints(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	quiet := log.New(io.Discard, "", 0)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.EnableHTTP2 = true
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	strict := httptest.NewUnstartedServer(http.NotFoundHandler()) // with a certificate for callers, too
	strict.TLS = &tls.Config{MaxVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}
	strict.Config.ErrorLog = quiet
	strict.StartTLS()
	defer strict.Close()
	for want, address := range map[string]string{
		"it speaks HTTP/1; ":                   plain.Listener.Addr().String(),
		"it speaks TLS; ":                      secure.Listener.Addr().String(),
		"it speaks TLS;":                       strict.Listener.Addr().String(),
		"it speaks HTTP/1;":                    serveBytes(t, "<!DOCTYPE HTML>"),
		"it ends connections without a word; ": serveBytes(t, ""),
		"it does not speak HTTP/2; ":           serveBytes(t, "220 mail.example ESMTP ready for whoever comes\r\n"),
	} {
		v := askOnce(t, address)
		testkit.Want(t, v.Said == health.Nothing && strings.HasPrefix(v.Reason, want) && !strings.Contains(v.Reason, "rpc"),
			"said %d, %q; want %q", v.Said, v.Reason, want)
	}
	nobody := testkit.Listen(t)
	nobody.Close()
	if v, want := askOnce(t, nobody.Addr().String()), fmt.Sprintf("dial tcp %s: connect: connection refused", nobody.Addr()); v.Reason != want {
		t.Errorf("%q, want %q", v.Reason, want)
	}
}

// A server that takes connections and is silent does not end them.
func TestMuteEndpoint(t *testing.T) {
	listener := testkit.Listen(t)
	defer listener.Close()
	got := identify(t.Context(), "tcp", listener.Addr().String())
	testkit.Want(t, strings.HasPrefix(got, "it takes connections and says nothing; "), "%v", got)
}

// A server that resets connections at once fails now the write, now the read of the
// greeting: the words are the same, and none of the library's.
func TestForeignEndpointThatResets(t *testing.T) {
	address := serveConns(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.(*net.TCPConn).SetLinger(0)
	})
	for range 50 {
		v := askOnce(t, address)
		testkit.Need(t, strings.HasPrefix(v.Reason, "it ends connections without a word; "), "%q", v.Reason)
	}
}

// A server that broke off once, since it was just starting, and speaks HTTP/2 when it is
// looked at is not told that it does not.
func TestLateGreeting(t *testing.T) {
	conns := 0
	address := serveConns(t, func(conn net.Conn) {
		if conns++; conns > 1 {
			_, _ = conn.Read(make([]byte, 64))
			_, _ = io.WriteString(conn, "\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		}
	})
	v := askOnce(t, address)
	testkit.Want(t, v.Said == health.Nothing && v.Reason != "" && !strings.HasPrefix(v.Reason, "it "), "said %d, %q", v.Said, v.Reason)
}

// askOnce puts one question to an address.
func askOnce(t *testing.T, address string) health.Answer {
	t.Helper()
	asker, err := Open(Options{Network: "tcp", Address: address, Interval: time.Second, Timeout: 10 * time.Second})
	testkit.Must(t, err)
	defer asker.Close()
	return asker.Ask(context.Background())
}

// serveBytes is the address of a server that says something and ends.
func serveBytes(t *testing.T, what string) string {
	t.Helper()
	return serveConns(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 64))
		_, _ = conn.Write([]byte(what))
	})
}

// serveConns is the address of a server that does the same with each connection, one
// after the other, and closes it.
func serveConns(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener := testkit.Listen(t)
	done := make(chan struct{})
	go func() { // ends with the listener
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return listener.Addr().String()
}
