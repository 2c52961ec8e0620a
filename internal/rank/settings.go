package rank

import (
	"slices"
	"time"
)

// complete puts the defaults in place of what is not given.
func (o *Options) complete() {
	if o.Order == nil {
		o.Order = Adaptive
	}
	if o.Admit == nil {
		o.Admit = InTime
	}
	if o.Choose == nil {
		o.Choose = Fastest
	}
}

// Configure replaces the options that may change while calls wait and run: QueueLength,
// StreamSlots, Order and Admit. Waiting calls go on waiting, even if the queue is now
// shorter. It appends to into the notices that it made, for the caller to deliver.
func (r *Rank) Configure(o Options, now time.Duration, into []Notice) []Notice {
	o.complete()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queueLength, r.order, r.admit = o.QueueLength, o.Order, o.Admit
	r.streams.limit = o.StreamSlots
	return r.serve(now, into) // more streams may run
}

// retuneBatch is how many accounts get new terms before the lock is released for calls.
const retuneBatch = 64

// Retune gives every account the terms of its key, also accounts without calls. An
// account keeps its debt, and the calls that it has begun count against its new rate.
// Accounts that are opened meanwhile have the terms that their Open gave them.
func (r *Rank) Retune(terms func(key string) Terms, now time.Duration) {
	r.mu.Lock()
	all := make([]*Account, 0, len(r.accounts))
	for _, a := range r.accounts {
		all = append(all, a)
	}
	r.mu.Unlock()
	for batch := range slices.Chunk(all, retuneBatch) {
		r.retune(batch, terms, now)
	}
}

func (r *Rank) retune(accounts []*Account, terms func(key string) Terms, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range accounts {
		if t := terms(a.key).complete(); t != a.terms {
			r.setTerms(a, t, now)
		}
	}
}

// setTerms changes the terms of an account, and all sums that contain its weight.
func (r *Rank) setTerms(a *Account, t Terms, now time.Duration) {
	before := a.terms.Weight
	a.rate = a.rate.with(t, now)
	a.terms = t
	if t.Weight == before {
		return
	}
	for i, l := range r.lanes {
		if slices.IndexFunc(r.lanes, func(o *lane) bool { return o.level == l.level }) == i {
			l.reweigh(&a.shares[l.level.index], before, t.Weight)
		}
	}
	for _, f := range a.flows {
		f.lane.weights += t.Weight - before
		f.lane.moved(f)
	}
}

// reweigh scales the share of an account to its new weight: the same slot time is less
// of a larger share.
func (l *level) reweigh(s *levelShare, before, now float64) {
	if s.waiting > 0 {
		l.weights += now - before
	}
	s.had = l.due() + (s.had-l.due())*before/now
}

// with returns the bucket for new terms, with as many tokens missing as before, as far
// as the new bucket holds as many.
func (b bucket) with(t Terms, now time.Duration) bucket {
	changed := newBucket(t)
	if b.every > 0 {
		missing := float64(max(b.full-now, 0)) / float64(b.every)
		changed.full = now + min(time.Duration(missing*float64(changed.every)), changed.depth)
	}
	return changed
}
