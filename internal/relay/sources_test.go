package relay

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

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

// R15: one host that holds all the connections it can get, and does nothing with
// them, does not keep others out: the one that has been idle for longest goes.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	const limit = 16
	g := newRig(t, func(o *Options) { o.Shards, o.Limits.Connections = 2, limit })
	var hoarder []*testkit.Peer
	for range limit - limit/othersPart {
		hoarder = append(hoarder, g.callerFrom("127.0.0.2"))
	}
	for range 6 { // for the first two there is room
		p := g.callerFrom("127.0.0.3")
		p.WriteHeaders(1, end, request(checkPath)...)
		p.WantHeaders(1, noEnd)
	}
	for _, p := range hoarder[:4] {
		p.WantGoAway(http2.ErrCodeNo)
		p.WantClosed()
	}
	if n := g.partedFor("make_room"); n != 4 {
		t.Errorf("%d connections made room, want 4", n)
	}
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
	before := g.partedFor("too_many")
	ours, theirs := net.Pipe()
	g.ServeConn(addressed{ours, address})
	if g.partedFor("too_many") > before {
		_ = theirs.Close()
		return nil, false
	}
	p = testkit.NewCaller(g.t, theirs)
	p.Greet()
	p.Skip(testkit.WindowUpdate)
	return p, true
}

// One source gets all connections but an eighth; beyond that the oldest idle one of
// its own goes for a new one, once it has been idle for a while.
func TestSharesOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 16
		g := newPipeRig(t, func(o *Options) { o.Limits.Connections = limit })
		enter := func(address string, want bool) *testkit.Peer {
			t.Helper()
			p, in := g.pipeFrom(address)
			if in != want {
				t.Fatalf("a caller from %s was let in: %t", address, in)
			}
			return p
		}
		var all []*testkit.Peer
		for range limit - limit/othersPart {
			all = append(all, enter("192.0.2.1", true))
			pass(time.Millisecond)
		}
		enter("192.0.2.1", false)
		pass(ownPatience)
		enter("192.0.2.1", true)
		all[0].WantClosed()
		enter("192.0.2.1", true)
		all[1].WantClosed()

		// Others find room, and then take the place of who has most.
		var others []*testkit.Peer
		for n := range 5 {
			others = append(others, enter(fmt.Sprintf("192.0.2.%d", 10+n), true))
		}
		for _, p := range all[2:5] {
			p.WantClosed()
		}
		if n := g.partedFor("make_room"); n != 5 {
			t.Errorf("%d connections made room, want 5", n)
		}
		if n := g.connections.Load(); n != limit {
			t.Errorf("%d connections, want %d", n, limit)
		}
		for _, p := range append(others, all...) {
			p.Close()
		}
	})
}

// A connection with a call is never dismissed, whoever wants its place.
func TestBusyConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8
		g := newPipeRig(t, func(o *Options) { o.Limits.Connections = limit })
		_, worker := g.pipeWorker("w1", limit)
		var busy []*testkit.Peer
		for n := range uint32(limit - limit/othersPart) {
			p, _ := g.pipeFrom("192.0.2.1")
			p.WriteHeaders(1, end, request(hello)...)
			worker.WantHeaders(1+2*n, end)
			busy = append(busy, p)
		}
		if _, in := g.pipeFrom("192.0.2.2"); !in {
			t.Fatal("there was room")
		}
		if _, in := g.pipeFrom("192.0.2.3"); in {
			t.Fatal("there was no room: nobody was idle")
		}
		reply(worker, 1)
		wantReply(busy[0], 1)
		synctest.Wait()
		if _, in := g.pipeFrom("192.0.2.3"); !in {
			t.Fatal("one was idle")
		}
		busy[0].WantClosed()
	})
}

// Two sources that take what they can leave room for a third, also where all their
// connections have calls.
func TestManySourcesLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 512
		g := newPipeRig(t, func(o *Options) { o.Limits.Connections = limit })
		_, worker := g.pipeWorker("w1", limit)
		var all []*testkit.Peer
		for source, most := range []int{448, 56, 7} {
			count := 0
			for p, in := g.pipeFrom(fmt.Sprintf("192.0.2.%d", source)); in; p, in = g.pipeFrom(fmt.Sprintf("192.0.2.%d", source)) {
				p.WriteHeaders(1, end, request(hello)...)
				worker.WantHeaders(uint32(1+2*len(all)), end)
				all = append(all, p)
				count++
			}
			if count != most {
				t.Errorf("source %d has %d connections, want %d", source, count, most)
			}
		}
		if n := g.connections.Load(); n != limit-1 {
			t.Fatalf("%d connections, want %d", n, limit-1)
		}
		for _, p := range all {
			p.Close()
		}
	})
}

// Connections that only ask how things are give way to others: one that watches the
// health, and one whose question does not end.
func TestWatchersMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8
		g := newPipeRig(t, func(o *Options) { o.Limits.Connections = limit })
		var all []*testkit.Peer
		for n := range limit - limit/othersPart {
			p, _ := g.pipeFrom("192.0.2.1")
			if n%2 == 0 {
				askHealth(p, 1, watchPath, "")
				p.WantHeaders(1, noEnd)
				p.WantData(1, noEnd)
			} else {
				p.WriteHeaders(1, noEnd, request(checkPath)...)
			}
			all = append(all, p)
			pass(time.Millisecond)
		}
		for n := range 3 {
			p, in := g.pipeFrom(fmt.Sprintf("192.0.2.%d", 2+n))
			if !in {
				t.Fatalf("caller %d was turned away", n)
			}
			all = append(all, p)
		}
		all[0].WantClosed()
		all[1].WantClosed()
		if n := g.partedFor("make_room"); n != 2 {
			t.Errorf("%d connections made room, want 2", n)
		}
		for _, p := range all {
			p.Close()
		}
	})
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

// What is known of a source goes with its last connection.
func TestSourcesAreForgotten(t *testing.T) {
	var s sources
	s.init(1)
	for i := range 1000 {
		address := fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		first, _ := s.arrive(address)
		second, count := s.arrive(address)
		if first != second || count != 2 {
			t.Fatalf("%s has %d connections, want 2", address, count)
		}
		s.depart(first)
		s.depart(first)
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
