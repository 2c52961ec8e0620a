package rank

import "time"

const (
	// shrinkAfter refusals that late threads do not explain, over shrinkOver at
	// least and shrinkWithin at most, take slots away. The pauses of R1 make room
	// for a dozen in that time; a connection that breaks makes them all at once.
	shrinkAfter  = 5
	shrinkOver   = 100 * time.Millisecond
	shrinkWithin = time.Second
	// shrinkShare is how many answers there may be for each refusal in that time.
	// A worker that lacks a thread refuses about as often as it answers; on a busy
	// machine a Ruby worker refused 35 of 12,000 calls though it had them all.
	shrinkShare = 4
	// quietFirst is for how long no refusal may come before a slot that was taken
	// away is tried again. It doubles with each try in vain, up to quietMost.
	quietFirst = 10 * time.Second
	quietMost  = 5 * time.Minute
)

// shrink takes slots away from an endpoint whose worker keeps refusing: one that
// has lost threads, has fewer than configured or serves somebody else, too. A
// refusal tells how many calls the worker had at that moment; several tell how
// many it takes. Slots come back one by one.
//
// Concurrency: belongs to the rank's lock. Allocates nothing.
// Source: R1, whose pauses are for a worker that is busy for a moment.
type shrink struct {
	slots  int  // of the endpoint
	left   int  // of them, those that may be used
	prompt bool // the worker has no threads that could be late

	late    lateThreads
	told    int           // refusals that late threads do not explain
	since   time.Duration // when the first of them came
	all     int           // refusals since then
	answers int           // and what else has ended
	took    int           // the most calls that the worker had at one of them
	quiet   time.Duration // how long it must be quiet before the next try
	quietAt time.Duration // when it will have been
	tryEnds time.Duration // until when the slot that came back is on trial; 0 if none is
}

func newShrink(slots int) shrink { return shrink{slots: slots, left: slots, quiet: quietFirst} }

// released takes in that a call has ended other than by a refusal.
func (s *shrink) released(now time.Duration) {
	s.late.add(now)
	s.answers++
	if s.left < s.slots && now >= s.quietAt {
		s.grow(now)
	}
}

// restore gives all slots back.
func (s *shrink) restore() { s.left, s.told, s.tryEnds = s.slots, 0, 0 }

// refused takes in a refusal while the worker had so many other calls.
//
// A worker that refuses although it has no call is not one with few threads: it
// has gone, or is starting. That is for the pauses of R1 and for its readiness.
func (s *shrink) refused(others int, now time.Duration) {
	s.all++
	taken := others
	if !s.prompt {
		taken += s.late.since(now - mostLate)
	}
	if others == 0 || taken >= s.left {
		return
	}
	if s.told == 0 || now-s.since > shrinkWithin {
		s.told, s.since, s.took = 0, now, 0
		s.all, s.answers = 1, 0
	}
	s.told++
	s.took = max(s.took, taken)
	s.quietAt = max(s.quietAt, now+s.quiet)
	if s.told >= shrinkAfter && now-s.since >= shrinkOver && s.answers <= shrinkShare*s.all {
		s.to(s.took, now)
	}
}

// to takes slots away until so many are left.
func (s *shrink) to(left int, now time.Duration) {
	if now < s.tryEnds { // it was tried in vain
		s.quiet = min(2*s.quiet, quietMost)
	}
	s.left, s.told, s.tryEnds = left, 0, 0
	s.quietAt = now + s.quiet
}

// grow gives a slot back on trial.
func (s *shrink) grow(now time.Duration) {
	if s.tryEnds != 0 { // the slot before was good
		s.quiet = quietFirst
	}
	s.left++
	s.told = 0
	s.quietAt = now + s.quiet
	s.tryEnds = s.quietAt
}
