package rank

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Several goroutines, each the owner of its own calls as a shard is (R23), use
// one rank while another opens and closes endpoints and one more ticks. No
// endpoint ever has more calls than slots, and every call ends.
func TestConcurrentShards(t *testing.T) {
	const shards, callsEach, finishEach = 4, 8, 3000
	s := &stress{rank: New(Options{QueueLength: 12}), done: make(chan struct{})}
	for range 3 {
		e := s.rank.Add("worker", EndpointOptions{Slots: 2, OnCancel: Free})
		s.endpoints = append(s.endpoints, e)
		s.rank.SetReady(e, true, 0, nil)
	}
	s.running = make([]atomic.Int64, len(s.endpoints))
	var owners, helpers sync.WaitGroup
	for i := range shards {
		owners.Go(func() { newShard(t, s, uint64(i), callsEach).run(finishEach) })
	}
	helpers.Go(s.tick)
	helpers.Go(s.flap)
	owners.Wait()
	close(s.done)
	helpers.Wait()
	if n := s.rank.Waiting(); n != 0 {
		t.Errorf("%d calls still wait", n)
	}
	for _, e := range s.rank.Snapshot().Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%d leases were not released", e.InFlight)
		}
	}
}

// stress is what the shards share.
type stress struct {
	rank      *Rank
	endpoints []*Endpoint
	running   []atomic.Int64 // calls that hold a lease, by endpoint index
	clock     atomic.Int64
	done      chan struct{}
}

// now is a virtual instant; time passes by being looked at.
func (s *stress) now() time.Duration { return time.Duration(s.clock.Add(int64(time.Microsecond))) }

// tick is the driver of Tick: instead of sleeping until the next instant it
// moves the clock there.
func (s *stress) tick() {
	for {
		select {
		case <-s.done:
			return
		case <-s.rank.Wake():
		}
		for next := s.now(); next != 0; {
			s.advanceTo(next)
			var grants []Grant
			grants, next = s.rank.Tick(next, nil)
			deliver(grants)
		}
	}
}

func (s *stress) advanceTo(instant time.Duration) {
	for {
		old := s.clock.Load()
		if old >= int64(instant) || s.clock.CompareAndSwap(old, int64(instant)) {
			return
		}
	}
}

// flap closes and opens one endpoint after another.
func (s *stress) flap() {
	for i := 0; ; i++ {
		select {
		case <-s.done:
			return
		default:
		}
		e := s.endpoints[i%len(s.endpoints)]
		deliver(s.rank.SetReady(e, false, s.now(), nil))
		deliver(s.rank.SetReady(e, true, s.now(), nil))
	}
}

// shard owns calls and learns by its mailbox what others did to them.
type shard struct {
	*stress
	t       *testing.T
	random  *rand.Rand
	mailbox chan told // one place for each call, so that nobody blocks
	idle    []*shardCall
	queued  map[*shardCall]bool
	running []*shardCall
	grants  []Grant
}

type shardCall struct {
	Ticket
	shard *shard
	lease Lease
}

type told struct {
	call   *shardCall
	lease  Lease
	reason Reason
}

func (c *shardCall) Granted(l Lease)  { c.shard.mailbox <- told{call: c, lease: l} }
func (c *shardCall) Refused(r Reason) { c.shard.mailbox <- told{call: c, reason: r} }

func newShard(t *testing.T, s *stress, seed uint64, calls int) *shard {
	t.Helper()
	h := &shard{
		stress:  s,
		t:       t,
		random:  rand.New(rand.NewPCG(seed, 23)),
		mailbox: make(chan told, calls),
		queued:  map[*shardCall]bool{},
	}
	for range calls {
		h.idle = append(h.idle, &shardCall{shard: h})
	}
	return h
}

// run starts and ends calls until as many as wanted have ended, then brings in
// what is left.
func (h *shard) run(want int) {
	ended := 0
	for ended < want {
		h.start()
		ended += h.read(len(h.running) == 0 && len(h.idle) == 0)
		ended += h.leaveOne()
		ended += h.endOne(Outcome(1 + h.random.IntN(4)))
	}
	for len(h.running) > 0 || len(h.queued) > 0 {
		h.read(len(h.running) == 0)
		h.endOne(OK)
	}
}

// start asks for a slot for one idle call, if there is one.
func (h *shard) start() {
	if len(h.idle) == 0 {
		return
	}
	last := len(h.idle) - 1
	c := h.idle[last]
	h.idle = h.idle[:last]
	now := h.now()
	c.Request = Request{Arrived: now, Deadline: now + time.Second}
	lease, verdict, _ := h.rank.Acquire(&c.Ticket, c, now)
	h.settle(c, lease, verdict)
}

func (h *shard) settle(c *shardCall, lease Lease, v Verdict) {
	switch v {
	case Granted:
		h.hold(c, lease)
	case Queued:
		h.queued[c] = true
	case Refused:
		h.idle = append(h.idle, c)
	}
}

func (h *shard) hold(c *shardCall, lease Lease) {
	c.lease = lease
	if n := h.stress.running[lease.Endpoint().Index()].Add(1); n > 2 {
		h.t.Errorf("%d calls on an endpoint with 2 slots", n)
	}
	h.running = append(h.running, c)
}

// read takes what is in the mailbox, waiting for one letter if told to, and
// returns how many calls ended by it.
func (h *shard) read(wait bool) (ended int) {
	for {
		var letter told
		if wait {
			letter = <-h.mailbox
		} else {
			select {
			case letter = <-h.mailbox:
			default:
				return ended
			}
		}
		wait = false
		ended += h.open(letter)
	}
}

func (h *shard) open(letter told) (ended int) {
	if !h.queued[letter.call] {
		h.t.Error("a call was told twice, or after it left")
	}
	delete(h.queued, letter.call)
	if letter.reason != NoReason {
		h.idle = append(h.idle, letter.call)
		return 1
	}
	h.hold(letter.call, letter.lease)
	return 0
}

// leaveOne now and then takes a call out of the queue.
func (h *shard) leaveOne() (ended int) {
	if h.random.IntN(4) > 0 {
		return 0
	}
	for c := range h.queued {
		if !h.rank.Leave(&c.Ticket) {
			return 0 // its letter is on the way
		}
		delete(h.queued, c)
		h.idle = append(h.idle, c)
		return 1
	}
	return 0
}

// endOne releases the lease that is held longest.
func (h *shard) endOne(o Outcome) (ended int) {
	if len(h.running) == 0 {
		return 0
	}
	c := h.running[0]
	h.running = h.running[1:]
	h.stress.running[c.lease.Endpoint().Index()].Add(-1)
	h.grants = h.rank.Release(c.lease, o, h.now(), h.grants[:0])
	deliver(h.grants)
	if o != RefusedByWorker {
		h.idle = append(h.idle, c)
		return 1
	}
	c.Request.Avoid = c.lease.Endpoint()
	lease, verdict := h.rank.Rejoin(&c.Ticket, c, h.now())
	h.settle(c, lease, verdict)
	return 0
}
