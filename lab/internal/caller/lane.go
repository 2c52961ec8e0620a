package caller

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
)

// mostTries is how often a request is sent, at most, where connections end before they
// take it: as often as net/http's own pool does.
const mostTries = 7

// lane sends requests over one connection, and opens another when that has ended. Calls
// wait while it is full. (net/http's own pool would open more, and stops for good where it
// is told not to: https://go.dev/issue/70809.)
//
// Life: made by newLane; requests; close.
// Concurrency: any number of goroutines send requests.
type lane struct {
	connect connector

	lock   chan struct{} // of what follows: it has room for one, who holds it
	conn   *http.ClientConn
	old    []*http.ClientConn // that may have calls yet
	closed bool
}

type connector func(ctx context.Context) (*http.ClientConn, error)

func newLane(connect connector) *lane { return &lane{connect: connect, lock: make(chan struct{}, 1)} }

// Do sends a request. Where a connection ends before it takes the request, another one does,
// if the body can be had again.
func (l *lane) Do(r *http.Request) (*http.Response, error) {
	var conn *http.ClientConn
	for try := 1; ; try++ {
		var err error
		if conn, err = l.open(r.Context(), conn); err != nil {
			return nil, err
		}
		response, err := conn.RoundTrip(r)
		if err == nil || !isUnsent(err) || try == mostTries || r.Body != http.NoBody && r.GetBody == nil {
			return response, err
		}
		if strings.Contains(err.Error(), refused) {
			conn = nil // it takes others
		}
		if r.Body != http.NoBody {
			r = r.WithContext(r.Context())
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// refused is in errors of requests that a server has had no place for.
const refused = "REFUSED_STREAM"

// isUnsent reports whether a server has not begun with a request, by what net/http says:
// it has no type for that.
func isUnsent(err error) bool {
	text := err.Error()
	return strings.Contains(text, "client conn not usable") || strings.Contains(text, "graceful shutdown GOAWAY") || strings.Contains(text, refused)
}

// open returns the connection, a new one if there is none that takes requests: spent is one
// that does not, nil if none is known.
func (l *lane) open(ctx context.Context, spent *http.ClientConn) (*http.ClientConn, error) {
	select {
	case l.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-l.lock }()
	switch {
	case l.closed:
		return nil, net.ErrClosed
	case l.conn != nil && l.conn != spent && l.conn.Err() == nil:
		return l.conn, nil
	}
	conn, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	l.old = slices.DeleteFunc(append(l.old, l.conn), func(c *http.ClientConn) bool { return c == nil || c.Err() != nil })
	l.conn = conn
	return conn, nil
}

func (l *lane) close() {
	l.lock <- struct{}{}
	defer func() { <-l.lock }()
	l.closed = true
	for _, conn := range append(l.old, l.conn) {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// Do sends a request over a lane of its own, which lives as long as its context.
func (c connector) Do(r *http.Request) (*http.Response, error) {
	l := newLane(c)
	context.AfterFunc(r.Context(), l.close)
	return l.Do(r)
}

// pool has net/http share connections of HTTP/1.1: each takes one call at a time.
type pool struct{ *http.Transport }

func (p pool) Do(r *http.Request) (*http.Response, error) { return p.RoundTrip(r) }
func (p pool) close()                                     { p.CloseIdleConnections() }
