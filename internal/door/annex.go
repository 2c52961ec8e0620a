package door

import (
	"net"
	"sync"
)

// Annex is a listener of connections that were accepted elsewhere: a server that
// asks for a listener gets them from it.
//
// Life: NewAnnex, ServeConn for each connection, Close.
// Concurrency: all methods may be called from anywhere.
type Annex struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once // closes closed
}

// NewAnnex returns an annex that is open.
func NewAnnex() *Annex { return &Annex{conns: make(chan net.Conn), closed: make(chan struct{})} }

// ServeConn hands a connection to whoever accepts, and waits for that. A closed annex
// closes it.
func (a *Annex) ServeConn(nc net.Conn) {
	select {
	case a.conns <- nc:
	case <-a.closed:
		_ = nc.Close() // nobody is there any more
	}
}

// Accept implements net.Listener. Errors: net.ErrClosed.
func (a *Annex) Accept() (net.Conn, error) {
	select {
	case nc := <-a.conns:
		return nc, nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections that were accepted live on.
func (a *Annex) Close() error {
	a.once.Do(func() { close(a.closed) })
	return nil
}

// Addr implements net.Listener: there is none.
func (a *Annex) Addr() net.Addr { return nowhere{} }

// nowhere is the address of a listener that has none.
type nowhere struct{}

func (nowhere) Network() string { return "annex" }
func (nowhere) String() string  { return "annex" }
