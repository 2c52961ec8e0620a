package ranksim

import (
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// maxRefusals is how often a call is moved before the worker's own answer is
// passed on (R1), as in package relay.
const maxRefusals = 8

// place is where a visit stands.
type place uint8

const (
	between place = iota // on no side
	queued
	running
)

// visit is one call on its way through the system: what package relay does for
// a call, without its bytes.
type visit struct {
	sim    *simulation
	ticket rank.Ticket
	course
}

// course is the part of a visit that begins anew with every use of its memory.
type course struct {
	call     int    // index of the call
	turn     uint32 // counts the uses of this memory
	place    place
	gone     time.Duration // when nobody waits any more; 0: never
	until    time.Duration // end of the queue's timeout; 0: none
	alarm    time.Duration // the instant of the event that counts, 0: none
	lease    rank.Lease
	run      *run // nil while a refusal is on its way back
	refusals int

	// What the rank has said, until settle.
	granted rank.Lease
	refused rank.Reason
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
	v.ticket.Request = rank.Request{Deadline: c.Deadline, Arrived: s.now}
	lease, verdict, reason := s.rank.Acquire(&v.ticket, v, s.now)
	v.judged(lease, verdict, reason)
}

// judged does what follows from the rank's verdict.
func (v *visit) judged(lease rank.Lease, verdict rank.Verdict, reason rank.Reason) {
	switch verdict {
	case rank.Granted:
		v.begin(lease)
	case rank.Queued:
		v.place = queued
		v.sim.r.Longest = max(v.sim.r.Longest, v.sim.rank.Waiting())
		v.setAlarm()
	default:
		v.finish(Refused, reason)
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
	v.place = between
	if reason != rank.NoReason {
		v.finish(Refused, reason)
		return
	}
	v.begin(lease)
}

// begin sends the call to the endpoint of the lease.
func (v *visit) begin(lease rank.Lease) {
	s := v.sim
	v.lease, v.place = lease, running
	w := &s.workers[lease.Endpoint().Index()]
	r, ok := s.start(v, w)
	v.run = r
	v.setAlarm()
	if !ok {
		s.events.add(event{at: s.now + w.Refusing, what: refuses, visit: v, turn: v.turn})
	}
}

// refusedByWorker puts the call back into the rank (R1).
func (v *visit) refusedByWorker() {
	s := v.sim
	s.r.Refusals++
	if v.refusals++; v.refusals > maxRefusals {
		v.release(rank.Failed)
		v.finish(Exhausted, rank.NoReason)
		return
	}
	v.ticket.Request.Avoid = v.lease.Endpoint()
	v.release(rank.RefusedByWorker)
	v.place = between
	if v.until != 0 && s.now >= v.until {
		v.finish(WaitedTooLong, rank.NoReason)
		return
	}
	lease, verdict := s.rank.Rejoin(&v.ticket, v, s.now)
	v.judged(lease, verdict, rank.DeadlineExceeded)
}

// answered ends a call whose answer has come.
func (v *visit) answered() {
	v.run = nil
	v.release(rank.OK)
	v.finish(Answered, rank.NoReason)
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
	case v.place == queued:
		s.rank.Leave(&v.ticket)
	case ending == WaitedTooLong:
		v.setAlarm() // it has a slot: only its caller's patience counts
		return
	default:
		if v.run != nil {
			s.cancel(v.run)
			v.run = nil
		}
		v.release(rank.Cancelled)
	}
	v.finish(ending, rank.NoReason)
}

// release ends the lease.
func (v *visit) release(o rank.Outcome) {
	s := v.sim
	lease := v.lease
	v.lease = rank.Lease{}
	s.deliver(s.rank.Release(lease, o, s.now, s.grants[:0]))
}

// setAlarm sets the event that ends the call next if nothing else does.
func (v *visit) setAlarm() {
	at := v.gone
	if v.place == queued && v.until != 0 && (at == 0 || v.until < at) {
		at = v.until
	}
	if at == v.alarm {
		return
	}
	v.alarm = at
	if at != 0 {
		v.sim.events.add(event{at: at, what: gives, visit: v, turn: v.turn})
	}
}

// finish records the end of the call.
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
	s.alive--
	v.turn++
	s.visits = append(s.visits, v)
}

func (s *simulation) newVisit() *visit {
	s.alive++
	if n := len(s.visits); n > 0 {
		v := s.visits[n-1]
		s.visits = s.visits[:n-1]
		v.course = course{turn: v.turn}
		return v
	}
	return &visit{sim: s}
}
