package rank

import (
	"math"
	"time"
)

const (
	// useFor is over what time an account's use of slots is looked at: what is
	// older counts less and less, 1/e after as long.
	useFor = 5 * time.Second
	// tolerance is how much more than its fair share of the slots an account may
	// use, or have waiting, before the calls of others go first.
	tolerance = 1.24
	// lagCap is how much slot time an account may be ahead of its exact share
	// before the calls of others go first. It makes shares exact in the long run.
	lagCap = 1500 * time.Millisecond
	// debtCap bounds how much slot time an account pays back that it has had
	// beyond its share.
	debtCap = 10 * time.Second
	// fadeEvery is how finely use fades: a four-hundredth of it at a time.
	fadeEvery = useFor / 400
	// lookEvery is how often calls are charged that still run.
	lookEvery = 100 * time.Millisecond
	// maxDebtors is how many accounts are kept for nothing but their debts.
	maxDebtors = 1000
)

// Terms are what one key may have. The zero value is one share and no limit.
type Terms struct {
	// Weight is its part of the slot time when several callers wait: one of
	// weight 2 gets twice as much as one of weight 1. 0 means 1.
	Weight float64
	// Rate is how many calls it may begin in a second in the long run, and Burst
	// how many at once; a Rate of 0 means any, a Burst of 0 means one.
	Rate  float64
	Burst int
	// Concurrent is how many of its calls may wait or run at a time; 0 means any.
	Concurrent int
}

// Account is one caller's share of the slot time. Callers are told apart by the
// keys given to Rank.Open.
//
// As long as an account uses about its share, its calls are served in the order
// in which they came, like everyone's. One that uses more, or has more waiting,
// is served when nobody waits who does not; among such accounts the one goes
// first that has had least.
//
// Life: Open and Close count references; an Account stays while it has any, or a
// call that waits or runs, or owes slot time.
// Concurrency: all of it belongs to the rank's lock.
type Account struct {
	key   string
	terms Terms
	refs  int
	rate  bucket

	waiting int
	running int
	flows   []*flow // its queues: one for each lane in which it ever waited

	// Slot time that it is charged: what calls are expected to take when they
	// begin, what they took when they end, and meanwhile what they run longer
	// than expected.
	settled  time.Duration // by calls that have begun
	expected time.Duration // of settled, for those that still run
	starts   time.Duration // sum of the instants at which they were granted
	billed   time.Duration // what of it is in had and use
	queued   time.Duration // slot time that calls are expected to take that wait

	had  []time.Duration // by level: slot time by its weight, on the scale of level.clock
	use  float64         // nanoseconds of slot time, older ones faded
	seen time.Duration   // when use was last brought up to date
}

// Open returns the account of a key and counts one reference to it; Close gives
// the reference back. The first Open of a key decides its terms.
func (r *Rank) Open(key string, terms Terms) *Account {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.accounts[key]
	if a == nil {
		r.forgive()
		a = r.newAccount(key, terms)
		r.accounts[key] = a
	}
	a.refs++
	return a
}

func (r *Rank) newAccount(key string, terms Terms) *Account {
	if terms.Weight <= 0 {
		terms.Weight = 1
	}
	had := make([]time.Duration, len(r.lanes)) // there are no more levels than lanes
	return &Account{key: key, terms: terms, rate: newBucket(terms), had: had}
}

// Close gives back one reference of Open. Calls of the account that wait or run
// go on.
func (r *Rank) Close(a *Account) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.refs == 0 {
		broken("account closed once too often")
	}
	a.refs--
	r.forget(a)
}

// forget drops an account that nobody needs. One that owes slot time stays, or
// whoever owes would come back as a stranger.
func (r *Rank) forget(a *Account) {
	if a.refs > 0 || a.waiting > 0 || a.running > 0 || a == r.common {
		return
	}
	if len(r.debtors) < maxDebtors && r.owes(a) {
		r.debtors = append(r.debtors, a)
		return
	}
	if r.accounts[a.key] == a {
		delete(r.accounts, a.key)
	}
}

// owes reports whether the account has had more than its share.
func (r *Rank) owes(a *Account) bool {
	for _, l := range r.lanes {
		if a.had[l.level.index] > l.clock {
			return true
		}
	}
	return false
}

// forgive looks at the accounts that are kept for their debts.
func (r *Rank) forgive() {
	debtors := r.debtors
	r.debtors = r.debtors[:0]
	for _, a := range debtors {
		r.forget(a)
	}
	clear(debtors[len(r.debtors):])
}

// admit applies the account's terms to a call that comes.
func (a *Account) admit(now time.Duration) Reason {
	if most := a.terms.Concurrent; most > 0 && a.waiting+a.running >= most {
		return TooManyCalls
	}
	if !a.rate.take(now) {
		return RateLimited
	}
	return NoReason
}

// RateWait returns how long it is until the account may begin another call by
// its rate; 0 if it may at once. It is what a caller is told that is refused for
// its rate.
func (r *Rank) RateWait(a *Account, now time.Duration) time.Duration {
	if a == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.rate.wait(now)
}

// charge bills a call that begins with the slot time that it is expected to
// take.
func (r *Rank) charge(t *Ticket, now time.Duration) {
	a := t.account
	t.expected = t.method.occupancy()
	a.running++
	a.starts += now
	a.expected += t.expected
	a.settled += t.expected
	r.bill(a, t.lane, now)
}

// settle corrects the bill of a call that began at began: to the slot time that
// it had. A call that its worker refused had none.
func (r *Rank) settle(t *Ticket, began, had, now time.Duration) {
	a := t.account
	a.running--
	a.starts -= began
	a.expected -= t.expected
	a.settled += had - t.expected
	r.bill(a, t.lane, now)
}

// bill brings what the account has had up to date.
func (r *Rank) bill(a *Account, l *lane, now time.Duration) {
	over := time.Duration(a.running)*now - a.starts - a.expected
	total := a.settled + max(over, 0)
	more := total - a.billed
	a.billed = total
	if len(r.accounts) < 2 {
		return // nothing is shared
	}
	a.fade(now)
	a.use = max(a.use+float64(more), 0)
	// The clock runs as fast as the slot time that each of those gets who wait.
	l.clock += divide(more, max(l.weights, a.terms.Weight))
	a.had[l.level.index] = min(a.had[l.level.index]+divide(more, a.terms.Weight), l.clock+debtCap)
	for _, f := range a.flows {
		if f.at >= 0 {
			f.lane.moved(f)
		}
	}
}

// divide returns d/by.
func divide(d time.Duration, by float64) time.Duration {
	if by == 1 {
		return d
	}
	return time.Duration(float64(d) / by)
}

// fade lets the use of slots count less as time goes by.
func (a *Account) fade(now time.Duration) {
	if passed := now - a.seen; passed >= fadeEvery {
		a.use *= math.Exp(-float64(passed) / float64(useFor))
		a.seen = now
	}
}

// modest reports whether the account has about its share or less, when it is one
// of accounts with the given weights who want so many slots.
func (a *Account) modest(l *lane, weights float64, slots int, now time.Duration) bool {
	if a.had[l.level.index] > l.clock+lagCap {
		return false
	}
	a.fade(now)
	share := a.terms.Weight / weights * float64(slots) * float64(useFor)
	return a.use+float64(a.queued) <= tolerance*share
}
