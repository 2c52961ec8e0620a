// Package relay is the life of a call: door, rank, upstream and back. It is
// the only place where the frame engine, the gRPC wire and the rank meet.
//
// Start from Relay. How it works by default:
//
//  1. A call takes a free slot at once or waits in the rank's one queue; the
//     worker is chosen when a slot is free, never before.
//  2. Header blocks and DATA frames are passed on as they are; the relay reads
//     a handful of fields and changes three (grpc-timeout, x-forwarded-for,
//     x-cabrank-hops). Claims about who calls (door.IsClaim) are taken out of
//     what comes over sockets.
//  3. A call that provably has not started on a worker moves to another one
//     (R1 to R4); any other failure is answered in one place (ending.go).
//  4. Callers come over sockets, or are code of this process (Local), over a
//     connection in memory: there is no other kind of call.
//  5. Health questions are answered at the door and reflection takes no slot
//     (R7).
//
// It does not decide which call waits or which endpoint is next (package rank), and does not
// decode messages.
package relay

import (
	"context"
	"crypto/tls"
	"hash/maphash"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/shard"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/trace"
)

// Options are the bounds of a relay. The caller has validated them.
type Options struct {
	Shards       int           // at least 1
	QueueLength  int           // calls that may wait
	QueueTimeout time.Duration // longest wait, more than 0
	CallTimeout  time.Duration // bound on every call from its grant on, 0: none
	MinReady     int           // endpoints that must be ready for the relay to be
	ReplayBytes  int           // request bytes kept per call for a replay, R3
	ReplayTotal  int64         // and in all
	BufferTotal  int64         // bytes buffered in all before queued calls are shed, R11
	StallTimeout time.Duration // for which a caller may hold a slot and do nothing while others wait, 0: for ever, R9
	HangTimeout  time.Duration // after which package worker replaces a silent worker, 0: never, R6
	AbsorbBytes  int           // bytes of an answer that may be read ahead of the caller, R9
	HeaderList   uint32        // largest header list, bytes (RFC 9113 6.5.2)
	MaxStreams   uint32        // calls that one connection may have open
	Resets       int           // calls a second that one connection may cancel in the long run, beside one for each that is answered; 0: as h2.CallerAllowances
	KeepAlive    time.Duration // silence after which endpoints that are not local are sent a PING, 0: never, R15
	MaxHops      int           // cabranks that a call may have passed before this one, 0: not counted, R10
	Keys         callers.Keys  // how callers are told apart and bounded
	Lanes        []Lane        // classes of calls, at most 254
	BalanceKey   string        // name of the field by which ring_hash places calls, "": none
	OwnServices  OwnServices   // which of gRPC's own services callers reach
	Explain      bool          // answers say how long the call waited, and which worker served it
	Limits       Limits

	// TLS serves callers that begin with TLS; nil: they are refused. Unless ClearText is
	// set, it refuses all others, except those in this process.
	TLS       *tls.Config
	ClearText bool
	// Identity returns the name in a caller's certificate, "" for no certificate or none with
	// a name, or an error to refuse the caller; nil: no names. It is called once for each
	// connection, under the lock of a shard.
	Identity func(*tls.ConnectionState) (string, error)

	// Dial connects to endpoints of networks other than "tcp" and "unix"; nil: no such
	// endpoints.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Auth checks the token of a call that comes over a socket, before the call takes a slot,
	// except of Health/Check; nil: no call needs a token.
	Auth callers.Auth

	// Proxies are peers whose calls are those of others: the caller is the last entry of
	// x-forwarded-for that is not a proxy.
	Proxies door.Proxies

	// Other returns the code that serves a request other than a gRPC POST; nil, also for
	// the whole field: the request goes to a worker like a call. Other runs under the lock
	// of a shard and returns at once. The code that it returns runs in a goroutine of its
	// own, without the lock, and returns soon after the exchange's Context has ended.
	Other func(Head) func(*Exchange)

	// HTTP1 serves connections that begin with HTTP/1, and closes them in the end; nil: the
	// relay closes them.
	HTTP1 func(*Guest)

	// Access gets each finished call, under the lock of a shard: it copies what it needs and
	// returns. nil: calls are not logged.
	Access func(*Access)

	// Trace gets the spans of calls; nil: traceparent goes to workers as it came.
	Trace *trace.Tracer

	// Methods are rules for methods, of patterns that occur once each.
	Methods     []stats.MethodRule
	RetryBudget stats.RetryBudget

	// Rank is the policies of the rank; QueueLength and Lanes go before its own.
	Rank rank.Options
	// SlotsMin and SlotsMax make the number of slots of every endpoint follow the
	// measured run times, between the two; with SlotsMax 0 it is fixed.
	SlotsMin, SlotsMax int
	// OnCancel is what happens to the slot of a call that is cancelled while it runs; 0
	// means rank.Hold (R5).
	OnCancel rank.OnCancel
	Log      *slog.Logger

	// Nap sleeps exactly for less than a millisecond; nil: timers, up to a millisecond late,
	// are used instead. Some workers' threads are free half a millisecond after the answer,
	// and each call waits for that (R1).
	Nap func(time.Duration)

	// Random returns numbers between 0 and 1 that spread times, so that events which began
	// together do not repeat together. It may be called from anywhere.
	Random func() float64
}

// Relay joins callers to endpoints.
//
// Life: New, Serve for each listener, then Drain and Close.
// Concurrency: every method may be called from anywhere.
type Relay struct {
	set       atomic.Pointer[settings] // never nil
	rank      *rank.Rank
	budget    *h2.Budget
	shards    []*shardState
	door      *door.Door
	shardTurn atomic.Uint32 // of the shard that gets the next connection
	answers   answers
	sources   callers.Sources

	services services
	start    time.Time

	methods     *stats.Methods
	retryBudget *stats.Budget

	serving        atomic.Bool  // what Health/Check says
	overloaded     atomic.Bool  // see Overloaded; written by the pacer
	failInTwo      atomic.Bool  // see failedInTwo
	memory         atomic.Int64 // bytes for callers, 0: as the options say; see SetMemory
	absorbed       atomic.Int64 // bytes of answers whose credit went back before their callers read them, R9
	keysInUse      atomic.Int64 // of all shards, each counted on every one that has it
	rejecting      atomic.Int32 // rejected callers that get a GOAWAY now
	reflections    atomic.Int32 // reflection calls outside the slots, R7
	idle           chan struct{}
	reflectionTurn atomic.Uint32   // of the endpoint for the next reflection call
	closing        atomic.Bool     // the drain is over: no new upstream connections
	replyHead      []byte          // of an answer of cabrank's own to gRPC
	okTail         []byte          // its trailers, if all is well
	unknownTail    []byte          // trailers of a health answer about an unknown service
	ctx            context.Context //nolint:containedctx // the lifetime of the relay, for dials that no caller waits for
	cancel         context.CancelFunc

	adding sync.Mutex // orders AddEndpoint and Reconfigure

	mu        sync.Mutex  // guards what follows; a leaf
	endpoints []*Endpoint // not removed, in the order of AddEndpoint; replaced, not changed
	stopping  bool
	released  bool // the listeners are another process's

	disconnectLogs map[disconnect]disconnectLog

	lastAnswer atomic.Int64 // last answer of any ready endpoint whose Activity was asked for
	pacer      pacer
}

// New returns a relay without endpoints; its shards run at once.
func New(o Options) *Relay {
	r := &Relay{
		rank:           rank.New(o.rank()),
		budget:         &h2.Budget{Total: o.BufferTotal},
		disconnectLogs: make(map[disconnect]disconnectLog),
		retryBudget:    stats.NewBudget(o.RetryBudget),
		start:          time.Now(),
		idle:           make(chan struct{}, 1),
	}
	r.services.replace(&description{})
	r.methods = stats.NewMethods(r.rank, o.Shards, o.Methods)
	r.set.Store(newSettings(o, maphash.MakeSeed()))
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.answers = newAnswers()
	r.replyHead = h2.AppendField(h2.AppendField(nil, ":status", "200"), "content-type", grpcwire.ContentType)
	r.okTail = h2.AppendField(nil, "grpc-status", "0")
	r.unknownTail = h2.AppendField(h2.AppendField(nil, "grpc-status", "5"), "grpc-message", "unknown service")
	r.door = door.New(r, o.Log)
	group := shard.NewGroup(r.start, r.budget)
	var locks []sync.Locker
	for range o.Shards {
		st := newShardState(r, group.New())
		r.shards, locks = append(r.shards, st), append(locks, st)
	}
	r.sources.Init(locks)
	r.pacer.start(r)
	return r
}

// rank returns the options of the rank.
func (o *Options) rank() rank.Options {
	options := o.Rank
	options.QueueLength, options.Lanes, options.ByHash = o.QueueLength, rankLanes(o.Lanes), o.BalanceKey != ""
	return options
}

func (r *Relay) now() time.Duration { return time.Since(r.start) }

// Rank returns a snapshot of the slots and the queue.
func (r *Relay) Rank() rank.Snapshot {
	s := r.rank.Snapshot()
	s.LongCalls = r.rank.LongCalls(r.now()) // calls become long without an event
	return s
}

// Decisions returns counts of the rank's decisions since the relay was made, by name.
func (r *Relay) Decisions() map[string]uint64 { return r.rank.Decisions() }

// MayRepeat reports whether a rule says that calls of a method may run more than once.
func (r *Relay) MayRepeat(path string) bool {
	rule := r.methods.RuleOf([]byte(path))
	return rule != nil && rule.Idempotent
}

// Waiting returns the number of calls in the queue.
func (r *Relay) Waiting() int { return r.rank.Waiting() }

// Close ends everything at once: connections are closed, nothing is answered.
// Drain comes before it where calls matter. A second Close does nothing.
func (r *Relay) Close() {
	r.closing.Store(true)
	r.cancel()
	r.door.Close()
	r.pacer.stop()
	for _, st := range r.shards {
		st.Stop()
	}
	r.each((*shardState).endGuests)
}

// sum adds up a number of each shard.
func (r *Relay) sum(of func(*shardState) int) (n int) {
	r.each(func(st *shardState) { n += of(st) })
	return n
}

// running returns the number of calls that a drain waits for.
func (r *Relay) running() int { return r.sum(func(st *shardState) int { return st.calls }) }

// pacer brings time to the rank: slots that pause after a refusal come back.
type pacer struct {
	once sync.Once // closes quit
	quit chan struct{}
	done chan struct{}
}

func (p *pacer) start(r *Relay) {
	p.quit, p.done = make(chan struct{}), make(chan struct{})
	go p.run(r) // ended by stop, which waits for it
}

func (p *pacer) run(r *Relay) {
	defer close(p.done)
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	var grants []rank.Notice
	overloads := overloads{log: r.settings().Log}
	for {
		select {
		case <-p.quit:
			return
		case <-alarm.C:
		case <-r.rank.Wake():
		}
		var next time.Duration
		grants, next = r.rank.Tick(r.now(), grants[:0])
		deliver(grants)
		if look := overloads.tell(r.rank, r.now()); look != 0 && (next == 0 || look < next) {
			next = look
		}
		r.overloaded.Store(overloads.lasts)
		pause := time.Hour
		if next != 0 {
			pause = max(next-r.now(), 0)
		}
		if nap := r.settings().Nap; nap != nil && pause < timerStep {
			nap(pause)
			pause = 0
		}
		alarm.Reset(pause)
	}
}

// timerStep is the resolution of Go's timers in an otherwise idle process, which waits for
// them and for the network in whole milliseconds.
const timerStep = time.Millisecond

func (p *pacer) stop() {
	p.once.Do(func() { close(p.quit) })
	<-p.done
}

func deliver(grants []rank.Notice) {
	for i, g := range grants {
		g.Deliver()
		grants[i] = rank.Notice{}
	}
}

// settings returns the current settings. Calls read them as they go; values that a call keeps
// from its beginning are in the call.
func (r *Relay) settings() *settings { return r.set.Load() }
