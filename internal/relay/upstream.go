package relay

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
)

const (
	// dialTimeout bounds the wait for a connection to an endpoint, and for the
	// greeting on it: without that its calls would wait for ever (R10).
	dialTimeout = 5 * time.Second
	// maxResets is how many streams may be cancelled on one connection before
	// new calls move to a fresh one: Node ends a connection after about 1,000,
	// and with it everybody's calls (R14).
	maxResets = 800
)

var (
	errDrained = errors.New("connection drained")
	errRetired = errors.New("upstream connection retired")
)

// upstream is one endpoint as seen from one shard: the connection that new
// calls use, and older ones that finish theirs.
type upstream struct {
	st       *stand
	endpoint *Endpoint
	network  string
	address  string
	conns    []*upstreamConn
}

// upstreamConn is one connection to an endpoint.
type upstreamConn struct {
	upstream *upstream
	link     *shard.Link
	retired  bool // no new streams; ends with its last one
	resets   int
	clock    shard.Timer // end of the wait for the greeting
}

func (st *stand) upstreamOf(e *rank.Endpoint) *upstream { return st.upstreams[e.Index()] }

// conn returns a connection with room for another stream, a new one where
// there is none (R15); nil if the endpoint was never up or the relay ends. A
// new connection can be written at once: its streams leave when the endpoint
// has greeted.
func (u *upstream) conn() *h2.Conn {
	for _, uc := range slices.Backward(u.conns) {
		if uc.retired {
			continue
		}
		if uc.link.Conn.CanOpen() {
			return uc.link.Conn
		}
		// One that has no room while it is empty will never have any.
		if uc.link.Conn.Retired() || uc.link.Conn.Streams() == 0 {
			uc.retire()
		}
	}
	if u.network == "" || u.st.relay.closing.Load() {
		return nil
	}
	return u.dial()
}

func (u *upstream) dial() *h2.Conn {
	st := u.st
	uc := &upstreamConn{upstream: u}
	uc.link = st.NewLink(&st.conf.up, workerSide{st}, uc)
	uc.link.Conn.Owner, uc.clock.Owner = uc, uc
	st.SetTimer(&uc.clock, st.Now()+dialTimeout)
	u.conns = append(u.conns, uc)
	go uc.connect(st.relay.ctx, u.network, u.address) // ends by dialTimeout or with the relay
	return uc.link.Conn
}

func (uc *upstreamConn) connect(ctx context.Context, network, address string) {
	d := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: network == "tcp"}}
	nc, err := d.DialContext(ctx, network, address)
	uc.upstream.st.do(func() {
		if err != nil {
			uc.link.Close(err)
			return
		}
		uc.link.Attach(nc)
	})
}

// Expired implements shard.Expirer: nobody has accepted the connection, or who
// has does not speak HTTP/2. Its calls move (R4).
func (uc *upstreamConn) Expired(*shard.Timer, time.Duration) {
	if !uc.link.Conn.Greeted() {
		uc.link.Close(shard.ErrHandshake)
	}
}

// move turns new calls to another address, or to another process at the same.
func (u *upstream) move(network, address string) {
	u.network, u.address = network, address
	for _, uc := range slices.Clone(u.conns) {
		uc.retire()
	}
}

// retire has the connection end with its last stream.
func (uc *upstreamConn) retire() {
	uc.retired = true
	uc.streamEnded()
}

func (uc *upstreamConn) streamEnded() {
	if uc.retired && !uc.link.Closed() && uc.link.Conn.Streams() == 0 {
		uc.link.Finish(errRetired)
	}
}

// cancel resets a stream and keeps count of it (R14).
func (uc *upstreamConn) cancel(s *h2.Stream) {
	whole := s.LocalDone() && s.RemoteDone()
	uc.link.Conn.Reset(s, h2.Cancel)
	if whole {
		return
	}
	if uc.resets++; uc.resets >= maxResets {
		uc.retired = true
	}
}

// Broken is told that the worker broke a rule of the whole connection. What it
// has not seen moves, the rest has got a bad answer.
func (uc *upstreamConn) Broken(*shard.Link) {
	uc.retired = true
	conn, now := uc.link.Conn, uc.upstream.st.Now()
	var open []*call
	conn.Each(func(s *h2.Stream) { open = append(open, s.Owner.(*call)) })
	for _, c := range open {
		if conn.Unsend(&c.up) {
			c.workerLost(false, now)
		} else {
			c.fail(endedBroken, now)
		}
	}
}

// LinkClosed implements shard.Watcher.
func (uc *upstreamConn) LinkClosed(*shard.Link, error) {
	u := uc.upstream
	u.st.StopTimer(&uc.clock)
	u.conns = slices.DeleteFunc(u.conns, func(x *upstreamConn) bool { return x == uc })
}
