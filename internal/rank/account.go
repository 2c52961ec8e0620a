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
	// queuedFor is for how long the calls that an account has waiting may keep its
	// share of the slots busy before the calls of others go first: the burst of one
	// that was quiet so far is told at once.
	queuedFor = time.Second
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
	// Concurrent is how many of its calls may wait or run at a time, ghosts of
	// cancelled ones included; 0 means any.
	Concurrent int
}

// complete puts the default in place of a weight that is not given.
func (t Terms) complete() Terms {
	if t.Weight <= 0 {
		t.Weight = 1
	}
	return t
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
	unheard int // of those that run: they are given up already (Lease.Unheard)
	ghosts  int // slots that are held for calls that it has cancelled (R5)
	busy    int // position in Rank.busy, -1 if none of its calls runs
	// attended is the number of the last period in which it had a call, see presence.
	attended int
	haunted  load // ghosts
	// slow is until when it counts as one that keeps slots for long: when many of its
	// calls end at once, it looks as if it gave them back soon.
	slow   time.Duration
	flows  []*flow // its queues: those in which it waits
	debtor bool    // is one of Rank.debtors

	// Slot time that it is charged: what calls are expected to take when they
	// begin, what they took when they end, and meanwhile the longer of the two.
	// Sums of instants of many calls may be larger than the type; that does no
	// harm, for only their differences count.
	done     time.Duration // by calls that have ended
	expected time.Duration // by those that run
	starts   time.Duration // sum of the instants at which they were granted
	charged  time.Duration // what of it is in shares and use
	served   time.Duration // what of it has passed already is in level.clock
	queued   time.Duration // slot time that calls are expected to take that wait

	shares []share       // by level
	level  *level        // of the call that began or ended last
	ahead  float64       // what it adds to the level's
	use    float64       // nanoseconds of slot time, older ones faded
	seen   time.Duration // when use was last brought up to date
}

// share is what an account has had of one level.
type share struct {
	had     float64 // slot time by its weight, on the scale of level.clock
	waiting int     // its calls that wait
	load    load    // its slots
}

// Open returns the account of a key and counts one reference to it; Close gives
// the reference back. The first Open of a key decides its terms.
func (r *Rank) Open(key string, terms Terms) *Account {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.accounts[key]
	if a == nil {
		r.forgive(2)
		a = r.newAccount(key, terms)
		r.accounts[key] = a
	}
	a.refs++
	return a
}

func (r *Rank) newAccount(key string, terms Terms) *Account {
	terms = terms.complete()
	shares := make([]share, len(r.lanes)) // there are no more levels than lanes
	return &Account{key: key, terms: terms, rate: newBucket(terms), busy: -1, shares: shares, level: r.lanes[0].level}
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

// needed reports whether anybody knows the account but the rank itself.
func (a *Account) needed() bool { return a.refs > 0 || a.waiting > 0 || a.running > 0 || a.ghosts > 0 }

// forget drops an account that nobody needs. One that owes slot time stays, or
// whoever owes would come back as a stranger.
func (r *Rank) forget(a *Account) {
	if a.needed() || r.accounts[a.key] != a {
		return
	}
	if r.owes(a) && (a.debtor || len(r.debtors) < maxDebtors) {
		if !a.debtor {
			a.debtor = true
			r.debtors = append(r.debtors, a)
		}
		return
	}
	delete(r.accounts, a.key)
}

// owes reports whether the account has had more than its share.
func (r *Rank) owes(a *Account) bool {
	for _, l := range r.lanes {
		if a.shares[l.level.index].had > l.due() {
			return true
		}
	}
	return false
}

// forgive looks at the next few of the accounts that are kept for their debts.
func (r *Rank) forgive(few int) {
	for range min(few, len(r.debtors)) {
		r.forgiven = (r.forgiven + 1) % len(r.debtors)
		a := r.debtors[r.forgiven]
		if !a.needed() && r.owes(a) {
			continue
		}
		a.debtor = false
		last := len(r.debtors) - 1
		r.debtors[r.forgiven], r.debtors[last] = r.debtors[last], nil
		r.debtors = r.debtors[:last]
		r.forget(a)
		if last == 0 {
			return
		}
	}
}

// admit applies the account's terms to a call that comes.
func (a *Account) admit(now time.Duration) Reason {
	if most := a.terms.Concurrent; most > 0 && a.waiting+a.running+a.ghosts >= most {
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

// alone reports whether there is one account at most, so that nothing is shared.
func (r *Rank) alone() bool { return len(r.accounts) < 2 }

// charge bills a call that begins with the slot time that it is expected to
// take.
func (r *Rank) charge(t *Ticket, now time.Duration) {
	a := t.account
	t.expected = t.method.occupancy()
	if a.running++; a.running == 1 {
		a.busy = len(r.busy)
		r.busy = append(r.busy, a)
	}
	a.starts += now
	a.expected += t.expected
	t.lane.hold(a, 1, now)
	r.bill(a, t.lane.level, now, now)
}

// settle corrects the bill of a call that began at began: to the slot time that
// it had, and a ghost goes on to have. A call that its worker refused had none.
func (r *Rank) settle(t *Ticket, began, had, now time.Duration, ghost bool) {
	a := t.account
	if t.unheard {
		t.unheard = false
		a.unheard--
	}
	if a.running--; a.running == 0 {
		last := r.busy[len(r.busy)-1]
		r.busy[a.busy], last.busy = last, a.busy
		r.busy[len(r.busy)-1] = nil
		r.busy, a.busy = r.busy[:len(r.busy)-1], -1
	}
	if ghost { // has the slot now
		t.lane.hold(a, -1, now)
	} else {
		t.lane.ended(a, now)
	}
	a.starts -= began
	a.expected -= t.expected
	a.done += had
	r.bill(a, t.lane.level, began, now)
	a.reconsider()
}

// bill brings what the account has had up to date. If it is less than before, it
// was charged at since.
func (r *Rank) bill(a *Account, l *level, since, now time.Duration) {
	ages := max(time.Duration(a.running)*now-a.starts, 0)
	charged := a.done + max(a.expected, ages)
	served := a.done + ages
	more, passed := charged-a.charged, served-a.served
	a.charged, a.served = charged, served
	r.attend(a, now)
	if r.alone() {
		if a.ahead != 0 {
			a.advance(l, 0)
		}
		return
	}
	a.used(more, since, now)
	// The clock runs as fast as the slot time that each of those gets who wait.
	weight := a.terms.Weight
	weights := max(l.weights, weight)
	a.advance(l, float64(charged-served)/weights)
	l.clock += float64(max(passed, 0)) / weights
	a.shares[l.index].pay(float64(more)/weight, l, float64(debtCap)/weight)
	a.reorder()
}

// advance notes by how much the account is charged in advance, on the scale of the
// level's clock.
func (a *Account) advance(l *level, ahead float64) {
	a.level.ahead -= a.ahead
	l.ahead += ahead
	a.level, a.ahead = l, ahead
}

// pay adds slot time by weight to what an account has had. It owes not more than
// debt then; and what is given back to it brings it no further back than to the
// clock, lest it is given credit for what it never paid.
func (s *share) pay(more float64, l *level, debt float64) {
	if more >= 0 {
		s.had = min(s.had+more, l.due()+debt)
	} else {
		s.had = max(s.had+more, min(s.had, l.clock))
	}
}

// used adds slot time to the account's use, or takes it away from what was added
// at since and has faded.
func (a *Account) used(more, since, now time.Duration) {
	a.fade(now)
	change := float64(more)
	if age := now - since; more < 0 && age >= fadeEvery {
		change *= faded(age)
	}
	a.use = max(a.use+change, 0)
}

// fade lets the use of slots count less as time goes by.
func (a *Account) fade(now time.Duration) {
	if passed := now - a.seen; passed >= fadeEvery {
		a.use *= faded(passed)
		a.seen = now
	}
}

func faded(passed time.Duration) float64 {
	return math.Exp(-float64(passed) / float64(useFor))
}

// modest reports whether the account has about its share or less of so many
// slots, which it shares with those who wait.
func (a *Account) modest(l *level, slots int, now time.Duration) bool {
	if (a.shares[l.index].had-l.due())*a.terms.Weight > float64(lagCap) {
		return false
	}
	a.fade(now)
	share := tolerance * a.terms.Weight / l.weights * float64(slots)
	queued := float64(a.queued)
	return a.use+queued <= share*float64(useFor) && queued <= share*float64(queuedFor)
}
