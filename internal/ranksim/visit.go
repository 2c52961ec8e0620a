package ranksim

import (
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// maxRefusals is how often a call is moved before the worker's own answer is
// passed on (R1), as in package relay.
const maxRefusals = 8

// phase is where a visit stands.
type phase uint8

const (
	between phase = iota // neither waiting nor running
	queued
	running
	over // for its caller; a handler may go on
)

// visit is one call on its way through the system: what package relay does for
// a call, without its bytes.
type visit struct {
	sim   *simulation
	first try
	hedge try
	visitState
}

// visitState is the part of a visit that begins anew with every use of its memory.
type visitState struct {
	call     int    // index of the call
	uses     uint32 // counts the uses of this memory
	phase    phase
	gone     time.Duration // when the caller has gone; 0: never
	until    time.Duration // end of the queue's timeout; 0: none
	alarm    time.Duration // the instant of the event gives that counts, 0: none
	hedgeAt  time.Duration // the same for hedges
	refusals int

	// The rank's notice, until settle.
	granted rank.Lease
	refused rank.Reason
}

// try is one attempt of a call at a worker.
type try struct {
	visit  *visit
	ticket rank.Ticket
	lease  rank.Lease
	run    *run // nil without a handler, and while a refusal is on its way back
}

// arrive brings a call to the rank.
func (s *simulation) arrive(call int) {
	v := s.newVisit()
	v.call = call
	c := &s.r.Calls[call]
	v.gone = c.gone()
	if s.QueueTimeout > 0 {
		v.until = s.now + s.QueueTimeout
	}
	v.first.ticket.Request = rank.Request{
		Method: s.method(c.Method), Account: s.account(c.Caller),
		Deadline: c.Deadline, Until: v.until, Arrived: s.now, Hash: c.Key,
	}
	lease, reply, reason := s.rank.Acquire(&v.first.ticket, v, s.now)
	v.decided(lease, reply, reason)
}

// method returns the rank's handle for a method; nil for one that it is not
// told of.
func (s *simulation) method(i int) *rank.Method {
	if i < 0 {
		return nil
	}
	for len(s.methods) <= i {
		m := s.rank.Method("method-" + strconv.Itoa(len(s.methods)))
		s.rank.Tried(m) // what is simulated has been running for long
		s.methods = append(s.methods, m)
	}
	return s.methods[i]
}

// account returns the rank's account of a caller; nil for the common one.
func (s *simulation) account(caller int) *rank.Account {
	if caller >= len(s.accounts) {
		return nil
	}
	return s.accounts[caller]
}

// decided does what follows from the rank's reply.
func (v *visit) decided(lease rank.Lease, reply rank.Reply, reason rank.Reason) {
	switch reply {
	case rank.Granted:
		v.begin(lease)
	case rank.Queued:
		v.phase = queued
		v.sim.r.Longest = max(v.sim.r.Longest, v.sim.rank.Waiting())
		v.setAlarm()
	default:
		v.finish(Refused, reason)
		v.recycle()
	}
}

// Granted implements rank.Waiter: the call hears of it in settle, as calls of
// package relay do in their shard.
func (v *visit) Granted(l rank.Lease) {
	v.granted = l
	v.sim.told = append(v.sim.told, v)
}

// Refused implements rank.Waiter, like Granted.
func (v *visit) Refused(reason rank.Reason) {
	v.refused = reason
	v.sim.told = append(v.sim.told, v)
}

// hear takes the rank's word.
func (v *visit) hear() {
	lease, reason := v.granted, v.refused
	v.granted, v.refused = rank.Lease{}, rank.NoReason
	v.phase = between
	if reason != rank.NoReason {
		v.finish(Refused, reason)
		v.recycle()
		return
	}
	v.begin(lease)
}

// begin sends the call to the endpoint of the lease.
func (v *visit) begin(lease rank.Lease) {
	s := v.sim
	v.phase = running
	ok := v.first.start(lease)
	v.setAlarm()
	if !ok {
		w := &s.workers[lease.Endpoint().Index()]
		s.events.add(event{at: s.now + w.Refusing, what: refuses, visit: v, uses: v.uses})
		return
	}
	if after := s.hedgeAfter(v); after > 0 {
		v.hedgeAt = s.now + after
		s.events.add(event{at: v.hedgeAt, what: hedges, visit: v, uses: v.uses})
	}
}

// refusedByWorker puts the call back into the rank (R1).
func (v *visit) refusedByWorker() {
	s := v.sim
	s.r.Refusals++
	if v.refusals++; v.refusals > maxRefusals {
		v.first.release(rank.Failed)
		v.finish(Exhausted, rank.NoReason)
		v.recycle()
		return
	}
	v.first.ticket.Request.Avoid = v.first.lease.Endpoint()
	v.first.release(rank.RefusedByWorker)
	v.phase = between
	if v.until != 0 && s.now >= v.until {
		v.finish(WaitedTooLong, rank.NoReason)
		v.recycle()
		return
	}
	lease, reply := s.rank.Rejoin(&v.first.ticket, v, s.now)
	v.decided(lease, reply, rank.DeadlineExceeded)
}

// answered ends a call whose answer has come, and the other attempt.
func (v *visit) answered(by *try) {
	by.run = nil
	by.release(rank.OK)
	for _, other := range []*try{&v.first, &v.hedge} {
		other.cancel()
	}
	if v.phase != over {
		v.finish(Answered, rank.NoReason)
	}
	v.recycle()
}

// giveUp is the call's alarm: its time in the queue, or its caller's patience,
// has ended.
func (v *visit) giveUp() {
	s := v.sim
	v.alarm = 0
	ending := WaitedTooLong
	if v.gone != 0 && s.now >= v.gone {
		ending = Expired
		if s.r.Calls[v.call].Leaves == v.gone {
			ending = Left
		}
	}
	switch {
	case v.phase == queued:
		s.rank.Leave(&v.first.ticket)
		v.finish(ending, rank.NoReason)
		v.recycle()
	case ending == WaitedTooLong:
		v.setAlarm() // it has a slot: only its caller's patience counts
	default:
		v.finish(ending, rank.NoReason)
		v.leaveWorkers()
	}
}

// leaveWorkers cancels what runs for a caller that has gone, unless its worker
// is to finish it: then the answer releases the slot.
func (v *visit) leaveWorkers() {
	v.hedge.cancel()
	if v.first.run != nil && v.first.run.worker.OnCancel == rank.Finish {
		return
	}
	v.first.cancel()
	v.recycle()
}

// start begins the attempt on the endpoint of the lease. False: the worker
// refuses it.
func (t *try) start(lease rank.Lease) bool {
	s := t.visit.sim
	t.lease = lease
	t.run = s.start(t, &s.workers[lease.Endpoint().Index()])
	return t.run != nil
}

// cancel ends the attempt, if it is under way.
func (t *try) cancel() {
	if t.run != nil {
		t.visit.sim.cancel(t.run)
		t.run = nil
	}
	if t.lease.Valid() {
		t.release(rank.Cancelled)
	}
}

// release ends the lease.
func (t *try) release(o rank.Outcome) {
	s := t.visit.sim
	lease := t.lease
	t.lease = rank.Lease{}
	s.deliver(s.rank.Release(lease, o, s.now, s.notices[:0]))
}

// setAlarm sets the event that ends the call next if nothing else does.
func (v *visit) setAlarm() {
	at := v.gone
	if v.phase == queued && v.until != 0 && (at == 0 || v.until < at) {
		at = v.until
	}
	if at == v.alarm {
		return
	}
	v.alarm = at
	if at != 0 {
		v.sim.events.add(event{at: at, what: gives, visit: v, uses: v.uses})
	}
}

// finish records the end of the call for its caller.
func (v *visit) finish(e Ending, reason rank.Reason) {
	s := v.sim
	if e == Refused && reason == rank.DeadlineExceeded {
		e = Expired
	}
	rec := &s.r.Records[v.call]
	rec.Ending, rec.Reason = e, reason
	rec.Sojourn = s.now - s.r.Calls[v.call].Arrives
	if rec.Starts == 0 {
		rec.Wait = rec.Sojourn
	}
	v.phase, v.alarm, v.hedgeAt = over, 0, 0
	s.ended(v.call)
}

func (s *simulation) newVisit() *visit {
	s.alive++
	if n := len(s.visits); n > 0 {
		v := s.visits[n-1]
		s.visits = s.visits[:n-1]
		v.visitState = visitState{uses: v.uses}
		return v
	}
	v := &visit{sim: s}
	v.first.visit, v.hedge.visit = v, v
	return v
}

// recycle gives the memory back: nothing refers to the visit any more.
func (v *visit) recycle() {
	v.uses++
	v.sim.alive--
	v.sim.visits = append(v.sim.visits, v)
}
