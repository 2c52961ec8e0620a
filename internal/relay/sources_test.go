package relay

import (
	"fmt"
	"net"
	"testing"

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

// Addresses of one IPv6 network are one source, and unknown ones have no share.
func TestSourceKey(t *testing.T) {
	same := func(a, b string) bool { return sourceKey(a) == sourceKey(b) }
	if !same("2001:db8::1", "2001:db8::ffff:1") || same("2001:db8::1", "2001:db8:0:1::1") {
		t.Error("networks of IPv6")
	}
	if same("192.0.2.1", "192.0.2.2") || !same("192.0.2.1", "::ffff:192.0.2.1") || !same("fe80::1%eth0", "fe80::1") {
		t.Error("addresses")
	}
	if sourceKey("").IsValid() {
		t.Error("a Unix socket has an address")
	}
}

// The record of a source goes with its last connection.
func TestSourcesAreForgotten(t *testing.T) {
	var s sources
	s.init(1)
	for i := range 1000 {
		address := fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		first, _ := s.add(address)
		second, count := s.add(address)
		if first != second || count != 2 {
			t.Fatalf("%s has %d connections, want 2", address, count)
		}
		s.remove(first)
		s.remove(first)
	}
	if len(s.all) != 0 {
		t.Errorf("%d sources are left", len(s.all))
	}
	for class := range s.classes {
		if from := s.classes[class].first(); from != nil {
			t.Errorf("class %d has %v", class, from.key)
		}
	}
}
