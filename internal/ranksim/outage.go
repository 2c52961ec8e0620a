package ranksim

import (
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// Outage is a time in which a worker does nothing.
type Outage struct {
	From, To time.Duration
	// Killed means that its calls break off at From, and that the rank knows; at To
	// another process takes its place. Otherwise it is stopped: its handlers go on
	// at To, and the rank is told after Noticed, or never if that is 0.
	Killed  bool
	Noticed time.Duration
}

// away returns for how much of the time from one instant to another the worker is
// out.
func (w *worker) away(from, to time.Duration) (out time.Duration) {
	for _, o := range w.Outages {
		out += max(min(to, o.To)-max(from, o.From), 0)
	}
	return out
}

// resumes returns when a handler ends that was to end now without outages; not after now
// if it ends now.
func (r *run) resumes(now time.Duration) time.Duration {
	out := r.worker.away(r.began, now) - r.delayed
	r.delayed += out
	return now + out
}

// breakdown adds the events of the outages.
func (s *simulation) breakdown(w *worker) {
	for _, o := range w.Outages {
		from := o.From + o.Noticed
		if (!o.Killed && o.Noticed == 0) || from >= o.To {
			continue
		}
		s.events.add(event{at: from, what: fails, worker: w, killed: o.Killed})
		s.events.add(event{at: o.To, what: recovers, worker: w, killed: o.Killed})
	}
}

// fail takes a worker out of the rank, and if it was killed breaks off its calls.
func (s *simulation) fail(w *worker, killed bool) {
	if !killed {
		s.deliver(s.rank.SetSuspect(w.endpoint, true, s.now, s.notices[:0]))
		return
	}
	s.deliver(s.rank.SetReady(w.endpoint, false, s.now, s.notices[:0]))
	runs := slices.Concat(w.running, w.queue)
	w.queue = nil
	for _, r := range runs {
		t := r.try
		if r.begun {
			s.stop(r)
		} else {
			s.recycleRun(r)
		}
		if t != nil {
			t.visit.broken(t)
		}
	}
}

// recover brings a worker back.
func (s *simulation) recover(w *worker, killed bool) {
	if killed {
		s.deliver(s.rank.SetReady(w.endpoint, true, s.now, s.notices[:0]))
	} else {
		s.deliver(s.rank.SetSuspect(w.endpoint, false, s.now, s.notices[:0]))
	}
}

// broken ends a call whose worker was killed.
func (v *visit) broken(t *try) {
	t.run = nil
	t.release(rank.Failed)
	other := &v.hedge
	if t == other {
		other = &v.first
	}
	if other.lease.Valid() {
		return // the other attempt goes on
	}
	if v.phase != over {
		v.finish(Broken, rank.NoReason)
	}
	v.recycle()
}
