package check

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// greeting is how a server's first frame goes on after its length, SETTINGS on
	// stream 0 (RFC 9113, 3.4).
	greeting = "\x04\x00\x00\x00\x00\x00"

	// hello is how a client begins: the preface and empty SETTINGS (RFC 9113, 3.4).
	hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

	// foreignTime bounds each of the two looks at what an endpoint speaks, and
	// foreignEvery is the least time between two: each is a connection, and a line in
	// the log of many a server.
	foreignTime  = time.Second
	foreignEvery = 5 * time.Second
)

// broken reports whether words are what grpc-go and the system say of an endpoint that
// takes a connection and does not begin as HTTP/2 does: which is seen first is chance.
func broken(reason string) bool {
	return strings.Contains(reason, "error reading server preface") ||
		strings.Contains(reason, "connection reset by peer") || strings.Contains(reason, "broken pipe")
}

// late reports whether an error is that nothing came in time.
func late(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// foreign finds out what an endpoint speaks that does not speak HTTP/2. People learn
// more from "TLS" than from what HTTP/2 reads into it.
type foreign struct {
	mu    sync.Mutex
	found string    // guarded by mu
	at    time.Time // when; guarded by mu
}

// reason says what is wrong with the endpoint, as was found in the last seconds. It is
// empty for one that is gone by now, or speaks HTTP/2.
func (f *foreign) reason(ctx context.Context, o *Options) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() || time.Since(f.at) >= foreignEvery {
		if f.at = time.Now(); o.isDialed() {
			f.found = alert(ctx, o)
		} else {
			f.found = identify(ctx, o.Network, o.Address)
		}
	}
	return f.found
}

// alert returns why an endpoint refuses who connects: TLS 1.3 says so behind the handshake,
// and what was sent meanwhile may lose it.
func alert(ctx context.Context, o *Options) string {
	conn, err := o.Dial(ctx, o.Network, o.Address)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(foreignTime)) // without, it takes as long as the endpoint does
	_, err = conn.Read(make([]byte, 1))
	if refusal, ok := errors.AsType[*net.OpError](err); ok && refusal.Op == "remote error" {
		return refusal.Error()
	}
	return ""
}

func identify(ctx context.Context, network, address string) string {
	const wanted = "; HTTP/2 without TLS is needed, as gRPC servers speak it with insecure credentials"
	first, err := firstBytes(ctx, network, address)
	switch {
	case err != nil && !late(err), len(first) > 3 && first[3:] == greeting:
		return ""
	case strings.HasPrefix(first, "HTTP/1"), strings.HasPrefix(first, "<"): // a page for people, after HTTP/0.9
		return "it speaks HTTP/1" + wanted
	case speaksTLS(ctx, network, address):
		return "it speaks TLS" + wanted + ", or tls: before the address of an upstream"
	case err != nil:
		return "it takes connections and says nothing" + wanted
	case first == "":
		return "it ends connections without a word" + wanted
	}
	return "it does not speak HTTP/2" + wanted
}

// firstBytes returns how an endpoint answers the beginning of HTTP/2, nothing if it
// breaks off; the error is that there is no connection, or no word in time.
func firstBytes(ctx context.Context, network, address string) (string, error) {
	conn, err := dial(ctx, network, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, hello) // an answer may have come all the same
	answer := make([]byte, 3+len(greeting))
	n, err := io.ReadFull(conn, answer)
	if n == 0 && late(err) {
		return "", err
	}
	return string(answer[:n]), nil // what has come is the answer
}

// speaksTLS reports whether an endpoint takes part in a handshake, also if it ends it
// by an alert.
func speaksTLS(ctx context.Context, network, address string) bool {
	conn, err := dial(ctx, network, address)
	if err != nil {
		return false
	}
	defer conn.Close()
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is sent
	err = client.HandshakeContext(ctx)
	alert, ok := errors.AsType[*net.OpError](err)
	return err == nil || ok && alert.Op == "remote error"
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: foreignTime}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(foreignTime)); err != nil {
		_ = conn.Close() // the first error tells
		return nil, err
	}
	return conn, nil
}
