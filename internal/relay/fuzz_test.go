package relay

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// script is the input of a fuzz target, read from the front; at its end it
// goes on with zeros.
type script []byte

// scriptMost is how much of an input is read. It bounds the resets that a
// script can make to less than an upstream connection may be sent (R14): the
// world has no other connection.
const scriptMost = 4 << 10

func (s *script) byte() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

func (s *script) bytes(n int) []byte {
	n = min(n, len(*s))
	p := (*s)[:n]
	*s = (*s)[n:]
	return p
}

// number spreads one byte over the numbers that matter in flow control.
func (s *script) number() uint32 {
	n := [...]uint32{0, 1, 2, 9, 100, 4096, 16384, 16385, 65535, 65536, 1 << 20, 1<<31 - 65536, 1<<31 - 2, 1<<31 - 1, 1 << 31, 1<<32 - 1}
	return n[s.byte()%16]
}

// requests are the header lists that a fuzzed caller may begin with.
func requests() [][]string {
	plainOf := func(kv ...string) []string { return append(plain("GET", "/page"), kv...) }
	return [][]string{
		request(hello), request(hello, "grpc-timeout", "1S"), request(hello, "grpc-timeout", "5m", "user-agent", "fuzz"),
		request(hello, "x-bin", "\x01\x7f\x80\xff"), request(hello, "cookie", "a=1", "cookie", "b=2"),
		request(hello, "grpc-timeout", "never"), request(hello, "x-long", strings.Repeat("l", 900)),
		request(hello, "x-too-long", strings.Repeat("L", 3000)), request(checkPath), request(watchPath), request(reflectPath),
		plainOf(), plainOf("content-length", "7"), plainOf("Upper", "case"), plainOf("connection", "close"), plainOf("te", "gzip"),
		plainOf("x-space", " around "), plainOf("x-line", "a\r\nb: c"), plainOf("x-nul", "a\x00b"), plainOf(":path", "/late"),
		plainOf("expect", "100-continue"), plainOf("x-forwarded-for", "198.51.100.7"), plainOf("transfer-encoding", "chunked"),
		{":method", "CONNECT", ":authority", "a:1"}, {":method", "CONNECT", ":authority", "a:1", ":path", "/"},
		{":method", "GET", ":scheme", "http", ":path", ""}, {":method", "GET", ":path", "/"}, {":status", "200"}, {"x", "y"},
		{":method", "PRI", ":scheme", "http", ":path", "*"}, {":method", "GET", ":scheme", "http", ":path", "/", ":protocol", "websocket"}, {"", ""},
		request(hello, "x-cabrank-hops", "9"), request(hello, "x-cabrank-hops", "x, 8", "grpc-timeout", "1S", "x-tenant", "t"),
		plainOf("x-tenant", strings.Repeat("T", callers.MaxKeyText+1), "x-forwarded-for", "198.51.100.7", "x-cabrank-hops", "1"),
		request(hello, "x-bin", "YQ, YWI=,"), request(hello, "host", "other"), request(hello, "host", "greeter.test"),
	}
}

// answersOf are the header lists that a fuzzed worker may send.
func answersOf() [][]string {
	return [][]string{
		responseHead(), responseHead(), {"grpc-status", "0"}, append(responseHead(), "grpc-status", "0"),
		append(responseHead(), "grpc-status", "8", "grpc-message", rubyBusy), {"grpc-status", "8", "grpc-message", pythonBusy},
		{"grpc-status", "8", "grpc-message", "mine", "grpc-retry-pushback-ms", "7"}, {":status", "100"}, {":status", "103", "link", "x"},
		{":status", "204"}, {":status", "101"}, {":status", "99"}, {":status", "0200"}, {":status", "200", ":status", "200"},
		append(responseHead(), "x-long", strings.Repeat("w", 3000)), append(responseHead(), "connection", "close"),
		append(responseHead(), "X", "y"), append(responseHead(), "x", "a\nb"), append(responseHead(), "x", " y "), {"x", "y"}, {":path", "/"},
		{"grpc-status", "no number"}, {":status", "404"}, {"content-length", "1"},
	}
}

// FuzzCaller has one caller do anything, beside a caller and a worker that keep
// all rules, on one upstream connection. Whatever the first sends, the worker
// gets only what RFC 9113 allows, so that nobody's fault ends its connection
// (R12), and every call of the second caller is answered.
func FuzzCaller(f *testing.F) { fuzz(f, callerSeeds(), fuzzCaller) }

func fuzz(f *testing.F, seeds [][]byte, play func(*testing.T, script)) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		synctest.Test(t, func(t *testing.T) { play(t, in[:min(len(in), scriptMost)]) })
	})
}

func fuzzCaller(t *testing.T, s script) {
	t.Helper()
	flags := s.byte()
	w := newWorld(t, func(o *Options) { cancelled(o, flags) })
	slots := 64 // with fewer, calls wait in the rank
	if flags&16 != 0 {
		slots = 3
	}
	c := newCast(w, nil, w.endpoint("good", slots, flags&1 == 0),
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 64},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: []uint32{65535, 0, 1, 1000}[flags>>1&3]})
	if flags&8 == 0 {
		c.wild.greet()
	}
	for len(s) > 0 {
		c.step(&s)
	}
	c.leave()
	c.settle(func(*steadyCall) bool { return true })
}

// cast is everybody on one shard: a caller and a worker that do anything, beside a caller and
// a worker that keep all rules.
type cast struct {
	*world

	wild, mad     *peer // nil: there is no such worker
	good          *goodWorker
	beside        *steady
	asks, answers [][]string
}

// newCast has everybody come; wild and mad have not greeted.
func newCast(w *world, mad, good *Endpoint, settings ...http2.Setting) *cast {
	c := &cast{world: w, asks: requests(), answers: answersOf()}
	if mad != nil {
		c.mad = w.worker(mad)
	}
	c.good, c.beside, c.wild = newGoodWorker(w, good, settings...), newSteady(w), w.caller()
	return c
}

// step does what the next bytes of the script say.
func (c *cast) step(s *script) {
	switch op := s.byte() % 16; op {
	case 7:
		c.beside.call()
	case 8:
		c.beside.drain()
	case 9:
		c.good.work(uint32(s.byte()))
	case 10:
		c.good.work(uint32(s.byte()) << 8)
	case 11, 12:
		c.good.answer()
	case 13:
		pass(time.Duration(s.byte()) * time.Millisecond) // grants reach their calls meanwhile
	case 14:
		if c.split = int(s.byte()); c.split == 0 {
			c.split = 1 << 20
		}
	case 15:
		_ = c.good.framer.WriteSettings(
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: s.number() & (1<<20 - 1)},
			http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16384 + uint32(s.byte())})
		c.good.flush()
	default:
		c.wildly(op, s)
	}
	c.check()
}

// wildly makes one of the peers act that keep no rule.
func (c *cast) wildly(op byte, s *script) {
	switch {
	case op < 3 && c.mad != nil:
		c.mad.act(s, c.answers)
	case op < 5 || op == 5 && c.mad == nil:
		c.wild.act(s, c.asks)
	case op == 5:
		n := s.byte()
		if n == cutMad {
			c.g.Cut(c.mad.e)
		}
		c.mad.take(int(n) << 6)
	default:
		c.wild.take(int(s.byte()) << 6)
	}
}

// leave ends the connections of the peers that keep no rule.
func (c *cast) leave() {
	for _, f := range []*peer{c.wild, c.mad} {
		if f != nil {
			f.drain()
			f.leave()
		}
	}
}

// settle has the worker answer everything, until the steady caller has got the end of each
// of its calls, and the whole answer of those that must have one.
func (c *cast) settle(must func(*steadyCall) bool) {
	c.t.Helper()
	c.split = 1 << 20
	for range 200 {
		c.serve()
		testkit.Need(c.t, !c.beside.dead, "a caller that kept all rules has lost its connection")
		if c.beside.waiting() == 0 {
			break
		}
		pass(50 * time.Millisecond)
	}
	if n := c.beside.waiting(); n > 0 {
		c.t.Fatalf("%d calls have no end: %v", n, c.g.Rank())
	}
	for id, call := range c.beside.calls {
		if must(call) && (call.status != "0" || string(call.got) != call.ask || call.reset) {
			c.t.Errorf("call %d: %v; want its answer and 0", id, call)
		}
	}
}

// serve has the good worker answer all that has come to it, and the steady caller read.
func (c *cast) serve() {
	c.t.Helper()
	for c.good.work(1<<16) || c.good.answer() {
		c.check()
	}
	c.beside.drain()
}

// mayRunTwice is the bit of a script's first byte by which calls are retried and
// hedged.
const mayRunTwice = 32

// cutMad is how much the mad worker is to take when its calls are taken from it.
const cutMad = 254

// anyFailure is a rule by which calls are soon hedged, and tried again.
func anyFailure() stats.MethodRule {
	return stats.MethodRule{
		Pattern: hello, Idempotent: true, Retries: 2, HedgeAfter: 5 * time.Millisecond,
		RetryOn: []grpcwire.Code{grpcwire.Unavailable, grpcwire.Internal, grpcwire.ResourceExhausted},
	}
}

// FuzzPeers has a caller and a worker do anything at once, beside a caller and
// a worker that keep all rules. What the latter two are sent is always right,
// every call that the good worker answered reaches its caller (if calls run only
// once), and every other call gets exactly one end.
func FuzzPeers(f *testing.F) { fuzz(f, peerSeeds(), fuzzPeers) }

// cancelled chooses what happens to calls after their callers leave (R5).
func cancelled(o *Options, flags byte) {
	switch {
	case flags&64 != 0:
		o.OnCancel = rank.Finish
	case flags&128 != 0:
		o.OnCancel = rank.Hold
	}
}

func fuzzPeers(t *testing.T, s script) {
	t.Helper()
	flags := s.byte()
	w := newWorld(t, func(o *Options) {
		if flags&mayRunTwice != 0 {
			o.Methods, o.RetryBudget = []stats.MethodRule{anyFailure()}, stats.RetryBudget{PerSecond: 1000}
		}
		cancelled(o, flags)
	})
	mad := w.endpoint("mad", 6, flags&1 == 0)
	c := newCast(w, mad, w.endpoint("good", 64, flags&1 == 0), http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 64})
	if flags&2 == 0 {
		c.mad.greet()
	}
	c.wild.greet()
	for len(s) > 0 {
		c.step(&s)
	}
	c.leave()
	c.settle(func(call *steadyCall) bool {
		// Else the answer may be the mad one's, and the good one's too late.
		return flags&mayRunTwice == 0 && c.good.replied[call.ask]
	})
}

func (c *steadyCall) String() string {
	return fmt.Sprintf("%q: %d bytes, status %q, end %t, reset %t", c.ask, len(c.got), c.status, c.ended, c.reset)
}
