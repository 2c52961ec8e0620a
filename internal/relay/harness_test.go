package relay

import (
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

const (
	// soon bounds waits for what should happen at once.
	soon = 30 * time.Second

	handshake    = 5 * time.Second
	streamWindow = 64 << 10

	rubyBusy   = "No free threads in thread pool"
	pythonBusy = "Concurrent RPC limit exceeded!"
	hello      = "/test.Greeter/Hello"

	checkPath   = "/grpc.health.v1.Health/Check"
	watchPath   = "/grpc.health.v1.Health/Watch"
	reflectPath = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"

	end, noEnd = testkit.End, testkit.NoEnd
)

// rig is a relay between callers and workers that do what a test tells them.
// At its end no call, lease, place aside or buffer may be left.
type rig struct {
	*Relay
	t    testing.TB
	addr string
}

func options(change []func(*Options)) Options {
	o := Options{
		OnCancel: rank.Free, // most scripted workers stop at a cancel
		Shards:   1, QueueLength: 1000, QueueTimeout: 30 * time.Second, MinReady: 1,
		ReplayBytes: 64 << 10, ReplayTotal: 16 << 20,
		BufferTotal: 64 << 20, AbsorbBytes: 1 << 20, HeaderList: 16 << 10, MaxStreams: 250, MaxHops: 8, Keys: callers.Keys{By: callers.ByPeer},
		Limits: Limits{Connections: 1000, Handshake: handshake, Window: streamWindow, MaxWindow: 1 << 20, Buffer: 16 << 20},
		Log:    slog.New(slog.DiscardHandler), Random: func() float64 { return 0.5 },
	}
	o.Rank.StreamSlots = 1 << 20 // tests fill all slots by calls of one method
	for _, f := range change {
		f(&o)
	}
	return o
}

// newRig starts a relay that listens on loopback.
func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	g := &rig{Relay: New(options(change)), t: t}
	t.Cleanup(g.wantNothingLeft)
	ln := testkit.Listen(t)
	g.addr = ln.Addr().String()
	g.serve(ln)
	return g
}

// serve has the relay accept callers until the end of the test. Whoever closes its doors before
// may wait for that.
func (g *rig) serve(ln net.Listener) (stopped func()) {
	served := make(chan error, 1)
	go func() { served <- g.Serve(ln) }() // ended by Close
	stopped = sync.OnceFunc(func() {
		testkit.Is(g.t, <-served, door.ErrClosed, "Serve")
	})
	g.t.Cleanup(func() {
		g.Close()
		stopped()
	})
	return stopped
}

// newPipeRig starts a relay without a socket, for a synctest bubble.
func newPipeRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	g := &rig{Relay: New(options(change)), t: t}
	t.Cleanup(func() {
		g.Close()
		synctest.Wait()
		g.wantNothingLeft()
	})
	return g
}

func (g *rig) wantNothingLeft() {
	g.t.Helper()
	testkit.Eventually(g.t, soon, "the last buffer to come back", func() bool { return g.budget.Used() == 0 })
	left := g.numbers()
	for _, what := range []string{"absorbed", "asides", "callers", "connections", "guests", "keysused", "looks", "replay", "running", "sheddable", "watches"} {
		if n := left[what]; n != 0 {
			g.t.Errorf("%s: %d are left", what, n)
		}
	}
	for _, e := range g.Rank().Endpoints {
		testkit.Want(g.t, e.InFlight == 0, "leases left at %s: %d", e.Name, e.InFlight)
	}
	testkit.Equal(g.t, g.Waiting(), 0, "calls left in the queue")
}

// caller connects a caller.
func (g *rig) caller() *testkit.Peer {
	g.t.Helper()
	p := testkit.DialCaller(g.t, g.addr)
	p.Greet()
	p.Skip(testkit.WindowUpdate)
	return p
}

// pipeCaller connects a caller in memory.
func (g *rig) pipeCaller() *testkit.Peer {
	g.t.Helper()
	p := testkit.NewCaller(g.t, g.dialPipe())
	p.Greet()
	p.Skip(testkit.WindowUpdate)
	return p
}

// dialPipe connects a caller in memory that has said nothing yet.
func (g *rig) dialPipe() net.Conn {
	ours, theirs := net.Pipe()
	g.ServeConn(ours)
	return theirs
}

// worker brings in a ready endpoint, started by cabrank, with a worker behind
// it that greets every connection which it accepts.
func (g *rig) worker(name string, slots int, settings ...http2.Setting) (*Endpoint, func() *testkit.Peer) {
	g.t.Helper()
	return g.endpoint(name, slots, true, settings...)
}

func (g *rig) endpoint(name string, slots int, local bool, settings ...http2.Setting) (*Endpoint, func() *testkit.Peer) {
	g.t.Helper()
	addr, accept := testkit.ListenWorker(g.t)
	e := g.AddEndpoint(name, slots, local)
	g.Up(e, "tcp", addr)
	return e, func() *testkit.Peer {
		g.t.Helper()
		p := accept()
		p.Greet(settings...)
		p.Skip(testkit.WindowUpdate)
		return p
	}
}

// pipeWorker brings in a ready endpoint with one connection in memory; a
// second one cannot be made.
func (g *rig) pipeWorker(name string, slots int) (*Endpoint, *testkit.Peer) {
	g.t.Helper()
	e := g.AddEndpoint(name, slots, true)
	p := testkit.NewWorker(g.t, g.pipe(e))
	p.Greet()
	p.Skip(testkit.WindowUpdate)
	return e, p
}

// pipe makes an endpoint ready with one connection in memory and returns its
// far end.
func (g *rig) pipe(e *Endpoint) net.Conn {
	g.t.Helper()
	g.Up(e, "none", "") // dials fail at once
	return g.attach(e)
}

// request is the header list of a gRPC call, with fields added at its end.
func request(path string, more ...string) []string {
	return append([]string{
		":method", "POST", ":scheme", "http", ":path", path, ":authority", "greeter.test",
		"content-type", "application/grpc", "te", "trailers",
	}, more...)
}

// block is an encoded header list.
func block(kv ...string) (enc []byte) {
	for i := 0; i < len(kv); i += 2 {
		enc = h2.AppendField(enc, kv[i], kv[i+1])
	}
	return enc
}

// plain is the header list of a request that is not gRPC.
func plain(verb, path string, more ...string) []string {
	return append([]string{
		":method", verb, ":scheme", "http", ":path", path, ":authority", "greeter.test",
	}, more...)
}

// passedOn is what a worker gets of a request from a caller without an address.
func passedOn(list []string) []string {
	return append(slices.Clip(list), "x-cabrank-hops", "1")
}

func responseHead() []string { return []string{":status", "200", "content-type", "application/grpc"} }

// hi is a gRPC message of one byte.
func hi() []byte { return []byte{0, 0, 0, 0, 1, 'x'} }

// reply has the worker answer a call with one message and OK.
func reply(worker *testkit.Peer, stream uint32) {
	worker.Batch(func() {
		worker.WriteHeaders(stream, noEnd, responseHead()...)
		worker.WriteData(stream, noEnd, hi())
		worker.WriteHeaders(stream, end, "grpc-status", "0")
	})
}

// wantReply has the caller take what reply wrote.
func wantReply(caller *testkit.Peer, stream uint32) {
	caller.WantFields(stream, noEnd, responseHead()...)
	caller.WantDataBytes(stream, hi(), noEnd)
	caller.WantFields(stream, end, "grpc-status", "0")
}

// wantStatus has the caller take a trailers-only answer of cabrank's own.
func wantStatus(caller *testkit.Peer, stream uint32, code, text string) {
	caller.WantFields(stream, end, ":status", "200", "content-type", "application/grpc", "grpc-status", code, "grpc-message", text)
}

// inFlight waits until the endpoints together have so many leases.
func (g *rig) wantInFlight(n int) {
	g.t.Helper()
	testkit.Eventually(g.t, soon, "the number of leases", func() bool {
		sum := 0
		for _, e := range g.Rank().Endpoints {
			sum += e.InFlight
		}
		return sum == n
	})
}

func (g *rig) wantWaiting(n int) {
	g.t.Helper()
	testkit.Eventually(g.t, soon, "the length of the queue", func() bool { return g.Waiting() == n })
}

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

// allEndpoints returns those not removed. The slice is not changed any more.
func (r *Relay) allEndpoints() []*Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endpoints
}

// logLines is a log that can count its lines while they are written.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

// into has a relay write to it.
func (l *logLines) into(o *Options) { o.Log = slog.New(slog.NewTextHandler(l, nil)) }

// count counts the lines with all these texts.
func (l *logLines) count(texts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			n++
		}
	}
	return n
}

func withQueue(length int, timeout time.Duration) func(*Options) {
	return func(o *Options) { o.QueueLength, o.QueueTimeout = length, timeout }
}

// withRule gives the test's method a rule, and a budget that is never empty.
func withRule(rule stats.MethodRule) func(*Options) {
	rule.Pattern = hello
	return func(o *Options) {
		o.Methods = []stats.MethodRule{rule}
		o.RetryBudget = stats.RetryBudget{PerSecond: 1000}
	}
}
