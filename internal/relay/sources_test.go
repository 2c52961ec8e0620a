package relay

import (
	"net"

	"github.com/cabrank/cabrank/internal/testkit"
)

// callerFrom connects a caller from another address of this machine.
func (g *rig) callerFrom(address string) *testkit.Peer {
	g.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := dialer.Dial("tcp", g.addr)
	if err != nil {
		g.t.Skipf("no connection from %s: %v", address, err)
	}
	p := testkit.NewCaller(g.t, conn)
	p.Greet()
	p.Skip(testkit.WindowUpdate)
	return p
}

// addressed is a connection in memory of a caller with an address.
type addressed struct {
	net.Conn
	address string
}

func (a addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.address), Port: 1} }

// pipeFrom connects a caller in memory; it reports whether the caller was let in.
func (g *rig) pipeFrom(address string) (p *testkit.Peer, in bool) {
	g.t.Helper()
	before := g.disconnectedFor("too_many")
	ours, theirs := net.Pipe()
	g.ServeConn(addressed{ours, address})
	if g.disconnectedFor("too_many") > before {
		_ = theirs.Close()
		return nil, false
	}
	p = testkit.NewCaller(g.t, theirs)
	p.Greet()
	p.Skip(testkit.WindowUpdate)
	return p, true
}
