package socket

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
)

// pipes is a listener in memory, for tests whose time is that of a bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// servePipes serves in a bubble; the dialer reaches it by any address.
func servePipes(t testing.TB, options Options) (*Server, *websocket.Dialer) {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	server := New(options)
	listener := &http.Server{Handler: server}
	ended := make(chan error, 1)
	go func() { ended <- listener.Serve(p) }()
	t.Cleanup(func() {
		server.Close()
		listener.Close()
		err := <-ended
		testkit.Want(t, errors.Is(err, http.ErrServerClosed), "%v", err)
	})
	return server, &websocket.Dialer{Subprotocols: []string{Protocol}, NetDial: p.dial}
}
