// Package shard is one lock with everything it guards: connections, their
// reading and flushing, one wheel of timers, an inbox. It knows no call.
//
// Start from Shard and Link. How it works by default:
//
//  1. One goroutine per shard waits for all sockets (poller, by epoll). It reads the
//     ready ones, under the shard's lock, into the one read buffer of the shard. An
//     idle connection has no buffer and no stack.
//  2. All output stays in the buffers of the engines until all ready sockets have been
//     read; then each connection has one send. The number of sends decides the cost of
//     a relay.
//  3. Other goroutines hand work in with Post, or by Lock and Unlock. The flusher, the
//     other goroutine of the shard, does that work and the timers when the poller is
//     not running anyway. A shard never takes another shard's lock (R23).
//
// Three drivers connect a Link with its transport: raw sockets (TCP and Unix, on Linux,
// no system call beyond one read and one send), with or without TLS (Secure); any other
// net.Conn (R22), with separate goroutines and the same flusher; and memory, which
// connects two links of the shard (Join): the output of one engine is fed to the other,
// in the turn.
package shard

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// readBuffer is the size of a shard's read buffer: one read should have several large
// frames, and the buffer exists once per shard, not per connection.
const readBuffer = 256 << 10

// Task is work for a shard, posted by another goroutine. Run is called under
// the shard's lock.
type Task interface{ Run(now time.Duration) }

// Shard owns connections and their streams.
//
// Concurrency: fields of the first group never change; the second group is
// guarded by the lock; the inbox has a mutex of its own that is a leaf.
type Shard struct {
	start time.Time
	wake  chan struct{} // one token: the flusher has something to do
	done  chan struct{} // closed when the flusher has ended
	check *lockCheck

	streams sync.Pool // of buffers, for connections that are not sockets

	mu      sync.Mutex
	now     time.Duration // when the lock was taken
	pool    *h2.Pool
	block   h2.Block // scratch for header blocks
	buf     []byte
	plain   *[streamBuffer]byte // scratch for decrypted bytes; nil before the first
	sealed  []byte              // scratch for records
	links   map[*Link]struct{}
	dirty   []*Link
	later   []*Link // dirty links that go on in the next turn
	wheel   wheel
	armed   time.Duration // when alarm will fire, 0: not set
	alarm   *time.Timer
	awake   bool // a token is in wake, or a turn is under way
	trim    Timer
	stopped bool
	poller  *poller // for raw sockets, made for the first one

	carriage carriage

	turning atomic.Bool // a turn is under way that will look into the inbox
	inbox   inbox
}

// inbox holds tasks of other goroutines. Its length is bounded by what can be
// posted: one notice per waiting call and a few events per connection.
type inbox struct {
	mu    sync.Mutex
	tasks []Task
	spare []Task
}

func (b *inbox) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.tasks) > 0
}

// Group makes shards that share a clock, a byte budget, and in race builds the
// check that no goroutine holds two of their locks.
type Group struct {
	start  time.Time
	budget *h2.Budget
	check  *lockCheck
}

// NewGroup returns a group whose clock begins at start.
func NewGroup(start time.Time, budget *h2.Budget) *Group {
	return &Group{start: start, budget: budget, check: newLockCheck()}
}

// New starts a shard. Stop ends its flusher.
func (g *Group) New() *Shard {
	s := &Shard{
		start: g.start, check: g.check,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		pool: h2.NewPool(g.budget), buf: make([]byte, readBuffer),
		links: make(map[*Link]struct{}),
	}
	s.trim.Owner = s
	s.alarm = time.AfterFunc(time.Hour, s.Nudge)
	s.alarm.Stop()
	go s.flusher() // ended by Stop, which waits for it
	return s
}

// Lock enters the shard from another goroutine.
func (s *Shard) Lock() {
	s.check.before(s)
	s.mu.Lock()
	s.check.after(s)
	s.now = s.clock()
}

// Unlock leaves the shard and wakes the flusher for new output.
func (s *Shard) Unlock() {
	s.wakeIfNeeded()
	s.leave()
}

func (s *Shard) leave() {
	s.check.leave()
	s.mu.Unlock()
}

// Now is the monotonic time since the process began, at the moment at which the lock was
// taken: one look at the clock for all bytes of one read. Used under the lock.
func (s *Shard) Now() time.Duration { return s.now }

// clock reads the clock of Now.
func (s *Shard) clock() time.Duration { return time.Since(s.start) }

// Pool returns the shard's buffers; used under the lock.
func (s *Shard) Pool() *h2.Pool { return s.pool }

// Block returns the shard's scratch for header blocks; used under the lock.
func (s *Shard) Block() *h2.Block { return &s.block }

// Post hands a task in. It may be called from anywhere, also under the lock of
// another shard; tasks run soon after, in the order of posting.
func (s *Shard) Post(t Task) {
	s.inbox.mu.Lock()
	s.inbox.tasks = append(s.inbox.tasks, t)
	s.inbox.mu.Unlock()
	if !s.turning.Load() {
		s.Nudge()
	}
}

// Nudge has a turn run soon, which looks for ready sockets, too. It may be called from anywhere.
func (s *Shard) Nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Shard) wakeIfNeeded() {
	if !s.awake && len(s.dirty)+len(s.later) > 0 {
		s.awake = true
		s.Nudge()
	}
}

// yields is how soon behind a turn of the flusher the next one lets others go first.
const yields = 200 * time.Microsecond

// flusher takes a turn whenever it is woken: for other goroutines, for timers, and for
// transports outside the poller.
func (s *Shard) flusher() {
	defer close(s.done)
	var last time.Duration
	for range s.wake {
		// Yield once, so that the poller and the readers of other transports that are
		// ready go first: their output leaves in the same sends. Not for long: among
		// thousands that are ready the next turn is the last of them.
		if s.clock()-last < yields {
			runtime.Gosched()
		}
		s.Lock()
		s.begin()
		// While some goroutine is always ready to run, the runtime looks for sockets each 10 ms.
		if !s.stopped && s.poller != nil && s.poller.lookOn() {
			s.Nudge()
		}
		s.turn()
		stopped := s.stopped
		s.leave()
		if stopped {
			return
		}
		last = s.clock()
	}
}

// begin begins a turn: until its end the flusher need not be woken.
func (s *Shard) begin() {
	s.awake = true
	s.turning.Store(true)
}

// turn runs posted tasks and expired timers, then sends the output of all connections,
// and ends the turn.
func (s *Shard) turn() {
	now := s.Now()
	s.runTasks(now)
	s.wheel.advance(now)
	s.flush(now)
	s.setTrim(now)
	s.setAlarm(now)
	s.awake = false
	s.wakeIfNeeded() // for links that go on in the next turn
	s.turning.Store(false)
	if s.inbox.waiting() { // posted after runTasks, when turning was true
		s.Nudge()
	}
}

func (s *Shard) runTasks(now time.Duration) {
	s.inbox.mu.Lock()
	tasks := s.inbox.tasks
	s.inbox.tasks, s.inbox.spare = s.inbox.spare[:0], nil
	s.inbox.mu.Unlock()
	for i, t := range tasks {
		t.Run(now)
		tasks[i] = nil
	}
	s.inbox.mu.Lock()
	if s.inbox.spare == nil {
		s.inbox.spare = tasks[:0]
	}
	s.inbox.mu.Unlock()
}

// flush sends until no connection has output left that its socket takes. A send may make
// room for streams that then write on other connections, hence the loop.
func (s *Shard) flush(now time.Duration) {
	s.carriage = carriage{turn: s.carriage.turn + 1}
	if fresh := s.dirty; len(s.later) > 0 {
		s.dirty = append(s.later, fresh...)
		clear(fresh)
		s.later = fresh[:0]
	}
	for i := 0; i < len(s.dirty); i++ {
		l := s.dirty[i]
		s.dirty[i] = nil
		l.dirty = false
		if m, joined := l.driver.(*memory); joined {
			m.carry()
		} else {
			l.driver.flush()
		}
		l.afterFlush(now)
	}
	s.dirty = s.dirty[:0]
}

// muchOutput is from how much output on a connection sends at once after a long read,
// without waiting for the output of other reads: a send of this size gains little from
// more, and buffers stay small enough for the processor's cache.
const muchOutput = 32 << 10

// flushMuch sends for the connections with much output; they stay on the list of the
// turn.
func (s *Shard) flushMuch() { s.flushFrom(muchOutput) }

// sendEarly runs posted tasks and sends all output before the turn ends.
func (s *Shard) sendEarly() {
	s.runTasks(s.now)
	s.flushFrom(1)
}

func (s *Shard) flushFrom(least int) {
	for _, l := range s.dirty {
		if len(l.Conn.Output()) >= least {
			l.driver.flush()
		}
	}
}

// markDirty makes the running turn, or the next one, look at the link.
func (s *Shard) markDirty(l *Link) {
	if l.dirty || l.closed {
		return
	}
	l.dirty = true
	s.dirty = append(s.dirty, l)
}

// SetTimer makes t expire at the given time, never earlier, and at most about a
// millisecond later. A timer that is already set is moved.
func (s *Shard) SetTimer(t *Timer, at time.Duration) {
	s.wheel.set(t, at)
	if due := t.rings(); s.armed == 0 || due < s.armed {
		s.arm(due, s.Now())
	}
}

// StopTimer stops a timer; it does nothing if the timer is not set.
func (s *Shard) StopTimer(t *Timer) { s.wheel.stop(t) }

func (s *Shard) arm(at, now time.Duration) {
	s.armed = at
	s.alarm.Reset(max(at-now, 0))
}

// setAlarm sets the runtime's timer for the next event of the wheel.
func (s *Shard) setAlarm(now time.Duration) {
	if s.armed > now {
		return // the alarm will fire, and then the wheel is checked again
	}
	s.armed = 0
	if next := s.wheel.next(); next != 0 {
		s.arm(next, now)
	}
}

// trimEvery is how long an unused buffer is kept.
const trimEvery = time.Second

// setTrim makes the pool be trimmed as long as it keeps buffers.
func (s *Shard) setTrim(now time.Duration) {
	if !s.trim.Set() && s.pool.Keeps() {
		s.SetTimer(&s.trim, now+trimEvery)
	}
}

// Expired implements Expirer for the timer of the shard itself.
func (s *Shard) Expired(*Timer, time.Duration) { s.pool.Trim() }

// Stop closes every connection and ends the flusher. It returns when the shard has ended,
// except for the goroutines of stream drivers, which end when they notice that their
// connection is closed.
func (s *Shard) Stop() {
	s.Lock()
	if s.stopped {
		s.Unlock()
		return
	}
	s.stopped = true // links that are made from here on end at Attach
	for l := range s.links {
		l.Close(errStopped)
	}
	s.alarm.Stop()
	p := s.poller
	s.leave()
	s.Nudge()
	<-s.done
	if p != nil {
		p.stop()
	}
}
