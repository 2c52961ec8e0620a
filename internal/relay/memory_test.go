package relay

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// memory is a relay whose two engines are fed by hand, without transports: one
// caller's connection and one worker's.
type memory struct {
	t        testing.TB
	g        *rig
	st       *shardState
	caller   *h2.Conn
	worker   *h2.Conn
	request  []byte // HEADERS and DATA of one call
	response []byte // HEADERS, DATA, trailers
	next     uint32
}

// frames records what script writes.
func frames(t testing.TB, script func(*http2.Framer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	testkit.Must(t, script(http2.NewFramer(&b, nil)))
	return b.Bytes()
}

func newMemory(t testing.TB, g *rig, local bool, slots int) *memory {
	t.Helper()
	e := g.AddEndpoint("w1", slots, local)
	g.Up(e, "none", "")
	return newMemoryOn(t, g, g.shards[0], e)
}

// newMemoryOn makes the two connections on one of several shards.
func newMemoryOn(t testing.TB, g *rig, st *shardState, e *Endpoint) *memory {
	t.Helper()
	m := &memory{t: t, g: g, st: st, next: 1}
	w := worldOf(g).on(st)
	m.caller, m.worker = w.caller().link.Conn, w.worker(e).link.Conn
	greeting := frames(t, func(f *http2.Framer) error {
		_ = f.WriteSettings()
		return f.WriteWindowUpdate(0, 1<<31-1-65535)
	})
	st.do(func() {
		m.feed(m.caller, []byte(http2.ClientPreface))
		m.feed(m.caller, greeting)
		m.feed(m.worker, greeting)
	})
	m.request = m.ask(request(hello, "grpc-timeout", "10S", "user-agent", "memory")...)
	m.response = frames(t, func(f *http2.Framer) error {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: block(responseHead()...)})
		_ = f.WriteData(1, false, hi())
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: block("grpc-status", "0")})
	})
	return m
}

// ask returns the frames of a request with these HEADERS.
func (m *memory) ask(headers ...string) []byte {
	head := block(headers...)
	return frames(m.t, func(f *http2.Framer) error {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: head})
		return f.WriteData(1, true, hi())
	})
}

// feed hands bytes to an engine, under the lock of the shard.
func (m *memory) feed(c *h2.Conn, p []byte) {
	if err := c.Feed(p, m.st.Now()); err != nil {
		m.t.Fatalf("feed: %v", err)
	}
}

// drainOutput sends what the engine has to say to nowhere.
func (m *memory) drainOutput(c *h2.Conn) (size int) {
	for p := c.Output(); len(p) > 0; p = c.Output() {
		size += len(p)
		c.Sent(len(p))
	}
	return size
}

func setStream(frames []byte, id uint32) {
	for len(frames) > 0 {
		binary.BigEndian.PutUint32(frames[5:], id)
		frames = frames[9+int(frames[0])<<16+int(frames[1])<<8+int(frames[2]):]
	}
}

// call carries one unary call through the whole relay.
func (m *memory) call() {
	m.feedCall(m.caller, m.request, m.next)
	if m.drainOutput(m.worker) == 0 {
		m.t.Fatal("no request went out")
	}
	m.feedCall(m.worker, m.response, m.next)
	m.next += 2
	if m.drainOutput(m.caller) == 0 {
		m.t.Fatal("no answer went out")
	}
}

// A unary call costs no allocation in the steady state: with HEADERS that are held back (R2)
// and without, with a policy, and where a connection brings calls of several callers in turn,
// whose deadlines differ.
func TestCallAllocatesNothing(t *testing.T) {
	policy := stats.MethodRule{Idempotent: true, Retries: 2, RetryOn: []grpcwire.Code{grpcwire.Unavailable}, HedgeAfter: time.Second}
	several := func(o *Options) {
		o.Keys.By, o.Keys.Metadata = callers.ByMetadata, "x-tenant"
		o.BalanceKey, o.Lanes = "x-user", []Lane{{Methods: []string{"/test.Greeter/*"}}, {Keys: []string{"b"}}}
	}
	for name, c := range map[string]struct {
		local   bool
		change  func(*Options)
		tenants []string
	}{
		"local":         {true, func(*Options) {}, nil},
		"elsewhere":     {false, func(*Options) {}, nil},
		"with a policy": {true, withRule(policy), nil},
		"several":       {false, several, []string{"a", "b", strings.Repeat("c", callers.MaxKeyText+1)}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, c.change)
			m := newMemory(t, g, c.local, 1)
			requests := [][]byte{m.request}
			for _, tenant := range c.tenants {
				requests = append(requests, m.ask(request(hello, "grpc-timeout", "10S", "x-tenant", tenant, "x-user", "u", "x-cabrank-hops", "2")...))
			}
			all := func() {
				for _, m.request = range requests {
					m.call()
				}
			}
			m.st.do(func() {
				m.drainOutput(m.worker)
				m.drainOutput(m.caller)
				for range 100 {
					all()
				}
				if n := testing.AllocsPerRun(1000, all); n != 0 {
					t.Errorf("%d calls allocate %v times", len(requests), n)
				}
			})
			if n := g.Stats().of(t, hello).Codes["OK"]; n < 1100 {
				t.Errorf("%d calls were answered", n)
			}
		})
	}
}

// Nor do many large calls at a time, with what is kept of each for a replay (R3).
func TestLargeCallsAllocateNothing(t *testing.T) {
	const flying = 100
	m := newMemory(t, newRig(t), false, flying)
	message := make([]byte, 10<<10)
	ask, head, tail := block(request(hello)...), block(responseHead()...), block("grpc-status", "0")
	m.request = frames(t, func(f *http2.Framer) error {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: ask})
		return f.WriteData(1, true, message)
	})
	m.response = frames(t, func(f *http2.Framer) error {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: head})
		_ = f.WriteData(1, false, message)
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: tail})
	})
	m.st.do(func() {
		m.drainOutput(m.worker)
		m.drainOutput(m.caller)
		for range 3 {
			m.calls(flying)
		}
		if n := testing.AllocsPerRun(10, func() { m.calls(flying) }); n != 0 {
			t.Errorf("%d calls allocate %v times", flying, n)
		}
	})
}

// BenchmarkQueuedCall has each call wait for the one before it: the rank, the
// grant by the shard's inbox, and a switch of goroutines on top.
func BenchmarkQueuedCall(b *testing.B) {
	g := newRig(b)
	m := newMemory(b, g, true, 1)
	send := func() {
		m.feedCall(m.caller, m.request, m.next)
		m.next += 2
	}
	answered := uint32(1)
	m.st.do(func() {
		m.drainOutput(m.worker)
		send()
		m.drainOutput(m.worker)
	})
	b.ReportAllocs()
	for b.Loop() {
		m.st.do(func() {
			send() // waits
			m.feedCall(m.worker, m.response, answered)
			answered += 2
			m.drainOutput(m.caller)
		})
		for sent := 0; sent == 0; runtime.Gosched() {
			m.st.do(func() { sent = m.drainOutput(m.worker) })
		}
	}
}

// BenchmarkUnaryCall is the relay's own work for one unary call: both engines,
// the rank, the record; no system call. "steady" has 25 calls on their way and
// HEADERS that are the same each time; "held" one at a time, with a deadline,
// on a worker whose HEADERS are held back (R2).
func BenchmarkUnaryCall(b *testing.B) {
	others := site(echoExchange) // so that each call is asked for its owner
	b.Run("held", func(b *testing.B) { benchmarkCalls(b, newMemory(b, newRig(b, others), true, 1), 1) })
	b.Run("steady", func(b *testing.B) {
		m := newMemory(b, newRig(b, others), false, 100)
		m.request = m.ask(request(hello, "user-agent", "memory")...)
		benchmarkCalls(b, m, 25)
	})
}

// BenchmarkTokens is a unary call with a token of 600 octets, which is known where calls need
// one, and passed on where not: HEADERS too long to be kept.
func BenchmarkTokens(b *testing.B) {
	for what, option := range map[string]func(*Options){"passed on": func(*Options) {}, "asked": withTokens(&tokens{may: "/"})} {
		b.Run(what, func(b *testing.B) {
			m := newMemory(b, newRig(b, option), false, 100)
			m.request = m.ask(request(hello, "authorization", "Bearer "+strings.Repeat("t", 600))...)
			m.st.do(func() {
				m.drainOutput(m.worker)
				m.feedCall(m.caller, m.request, 1)
			})
			testkit.Eventually(b, soon, "a look at the token", func() (sent bool) {
				m.st.do(func() { sent = m.drainOutput(m.worker) > 0 })
				return sent
			})
			m.st.do(func() { m.feedCall(m.worker, m.response, 1) })
			m.next = 3
			benchmarkCalls(b, m, 25)
		})
	}
}

func benchmarkCalls(b *testing.B, m *memory, flying int) {
	b.Helper()
	m.st.Lock()
	defer m.st.Unlock()
	m.drainOutput(m.worker)
	m.drainOutput(m.caller)
	m.calls(flying)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n--; n <= 0 {
			m.calls(flying)
			n = flying
		}
	}
}

// calls carries so many unary calls at once through the relay.
func (m *memory) calls(flying int) {
	answered := m.next
	for range flying {
		m.feedCall(m.caller, m.request, m.next)
		m.next += 2
	}
	m.drainOutput(m.worker)
	for range flying {
		m.feedCall(m.worker, m.response, answered)
		answered += 2
	}
	m.drainOutput(m.caller)
}

// feedCall feeds the frames of one call as those of the stream id.
func (m *memory) feedCall(c *h2.Conn, frames []byte, id uint32) {
	setStream(frames, id)
	m.feed(c, frames)
}
