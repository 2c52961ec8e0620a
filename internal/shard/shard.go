// Package shard is one lock with everything it guards: connections, their
// reading and flushing, one wheel of timers, an inbox. It knows no call.
//
// Start from Shard and Link. How it works by default:
//
//  1. One goroutine per shard waits for all sockets (poller, by epoll). It reads
//     those that are ready, under the shard's lock, into the one read buffer of
//     the shard. An idle connection holds no buffer and no stack.
//  2. Whatever the engine wants to send stays in its output buffer until
//     everything that was ready has been read; then each connection has one
//     send. The number of sends decides what a relay costs.
//  3. Other goroutines hand work in with Post, or by Lock and Unlock. The
//     flusher, the other goroutine of the shard, sees to that and to timers
//     where the poller is not at it anyway. A shard never takes another shard's
//     lock (R23).
//
// Three drivers join a Link to its transport: raw sockets (TCP and Unix, on Linux,
// no system call beyond one read and one send), with or without TLS (Secure); any other net.Conn (R22), which has
// goroutines of its own and shares the flusher; and memory, which joins two links of
// the shard (Join): what one engine writes feeds the other, in the turn.
package shard

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// readBuffer is the size of a shard's read buffer: large frames want several
// of them in one read, and there is one per shard, not per connection.
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
	plain   *[streamBuffer]byte // scratch for what records say; nil: there were none
	sealed  []byte              // scratch for records
	links   map[*Link]struct{}
	dirty   []*Link
	later   []*Link // dirty, and to go on in the next turn
	wheel   wheel
	armed   time.Duration // when alarm will ring, 0: not set
	alarm   *time.Timer
	awake   bool // a token is in wake, or a turn is under way
	trim    Timer
	stopped bool
	poller  *poller // of raw sockets, made for the first one

	carriage carriage

	turning atomic.Bool // a turn is under way that will look into the inbox
	inbox   inbox
}

// inbox holds tasks of other goroutines. Its length is bounded by what can be
// posted: one grant per waiting call and a few events per connection.
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
	s.alarm = time.AfterFunc(time.Hour, s.nudge)
	s.alarm.Stop()
	go s.flusher() // ended by Stop, which waits for it
	return s
}

// Lock enters the shard from a goroutine of the caller's.
func (s *Shard) Lock() {
	s.check.before(s)
	s.mu.Lock()
	s.check.after(s)
	s.now = s.clock()
}

// Unlock leaves the shard and has the flusher see to what was done.
func (s *Shard) Unlock() {
	s.wakeIfNeeded()
	s.leave()
}

func (s *Shard) leave() {
	s.check.leave()
	s.mu.Unlock()
}

// Now is the monotonic time since the process began, as of the moment at which
// the lock was taken: one look at the clock for everything that one read
// brought. Used under the lock.
func (s *Shard) Now() time.Duration { return s.now }

// clock is what time it is on the clock of Now.
func (s *Shard) clock() time.Duration { return time.Since(s.start) }

// Pool returns the shard's buffers; used under the lock.
func (s *Shard) Pool() *h2.Pool { return s.pool }

// Block returns the shard's scratch for header blocks; used under the lock.
func (s *Shard) Block() *h2.Block { return &s.block }

// Post hands a task in. It may be called from anywhere, also under the lock of
// another shard; the task runs soon after, in the order of posting.
func (s *Shard) Post(t Task) {
	s.inbox.mu.Lock()
	s.inbox.tasks = append(s.inbox.tasks, t)
	s.inbox.mu.Unlock()
	if !s.turning.Load() {
		s.nudge()
	}
}

// nudge has the flusher run soon.
func (s *Shard) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Shard) wakeIfNeeded() {
	if !s.awake && len(s.dirty)+len(s.later) > 0 {
		s.awake = true
		s.nudge()
	}
}

// flusher takes a turn whenever it is woken: for those who come from outside,
// for timers, and for transports that are not the poller's.
func (s *Shard) flusher() {
	defer close(s.done)
	for range s.wake {
		// Step back once, so that the poller and the readers of other transports
		// that are ready go first: what they produce leaves in the same sends.
		runtime.Gosched()
		s.Lock()
		s.begin()
		s.turn()
		stopped := s.stopped
		s.leave()
		if stopped {
			return
		}
	}
}

// begin begins a turn: until its end nobody need be woken.
func (s *Shard) begin() {
	s.awake = true
	s.turning.Store(true)
}

// turn runs posted tasks and expired timers, then sends what all connections
// have to say, and ends the turn.
func (s *Shard) turn() {
	now := s.Now()
	s.runTasks(now)
	s.wheel.advance(now)
	s.flush(now)
	s.setTrim(now)
	s.setAlarm(now)
	s.awake = false
	s.wakeIfNeeded() // for what goes on in the next turn
	s.turning.Store(false)
	if s.inbox.waiting() { // posted after runTasks has looked, by somebody who relied on it
		s.nudge()
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

// flush sends until no connection has anything left that its socket takes. A
// send may give room to streams that then write on other connections, hence
// the loop.
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

// muchOutput is what a connection sends at once after a long read, without
// waiting for what other reads may add: a send of this size gains little from
// company, and buffers stay small enough for the processor's cache.
const muchOutput = 32 << 10

// flushMuch sends for the connections that have much to send; they stay on the
// list of the turn.
func (s *Shard) flushMuch() { s.flushFrom(muchOutput) }

// sendEarly runs posted tasks and sends before the turn ends, for the connections that
// have anything to send.
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

// markDirty has the turn that runs, or the next one, look at the link.
func (s *Shard) markDirty(l *Link) {
	if l.dirty || l.closed {
		return
	}
	l.dirty = true
	s.dirty = append(s.dirty, l)
}

// SetTimer has t.Owner told at the given time, not before, at most about a
// millisecond later. A timer that is already set is moved.
func (s *Shard) SetTimer(t *Timer, at time.Duration) {
	s.wheel.set(t, at)
	if due := t.rings(); s.armed == 0 || due < s.armed {
		s.arm(due, s.Now())
	}
}

// StopTimer takes the timer back; it does nothing if it is not set.
func (s *Shard) StopTimer(t *Timer) { s.wheel.stop(t) }

func (s *Shard) arm(at, now time.Duration) {
	s.armed = at
	s.alarm.Reset(max(at-now, 0))
}

// setAlarm winds the runtime's timer for the next event of the wheel.
func (s *Shard) setAlarm(now time.Duration) {
	if s.armed > now {
		return // it will ring, and the wheel is looked at again
	}
	s.armed = 0
	if next := s.wheel.next(); next != 0 {
		s.arm(next, now)
	}
}

// trimEvery is how long a buffer is kept that nobody needs.
const trimEvery = time.Second

// setTrim has the pool looked at as long as it keeps anything.
func (s *Shard) setTrim(now time.Duration) {
	if !s.trim.Set() && s.pool.Keeps() {
		s.SetTimer(&s.trim, now+trimEvery)
	}
}

// Expired implements Expirer for the timer of the shard itself.
func (s *Shard) Expired(*Timer, time.Duration) { s.pool.Trim() }

// Stop closes every connection and ends the flusher. It returns when nothing
// of the shard runs any more, but for the goroutines of stream drivers, which
// notice that their connection is closed.
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
	s.nudge()
	<-s.done
	if p != nil {
		p.stop()
	}
}
