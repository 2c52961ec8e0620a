package rank

import (
	"math"
	"time"
)

const (
	// useFor is the time over which an account's use of slots is averaged: use that is
	// this old counts 1/e.
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
	// queuedFor is for how long an account's waiting calls may keep its share of the
	// slots busy before the calls of others go first: so a burst of an account that
	// was quiet shows at once.
	queuedFor = time.Second
	// fadeEvery is the step in which use fades.
	fadeEvery = useFor / 400
	// lookEvery is how often running calls are charged.
	lookEvery = 100 * time.Millisecond
)

// Terms are what the account of one key may have. The zero value is one share and no
// limit.
type Terms struct {
	// Weight is the account's part of the slot time when several callers wait: weight
	// 2 gets twice as much as weight 1. 0 means 1.
	Weight float64
	// Rate is how many calls a second the account may begin in the long run, and Burst
	// how many at once; a Rate of 0 means any, a Burst of 0 means one.
	Rate  float64
	Burst int
	// Concurrent is how many of its calls may wait or run at a time, with the ghosts of
	// cancelled calls; 0 means any.
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
// As long as an account uses about its share, its calls are served in the order of
// arrival. An account that uses more, or has more calls waiting, is served when no
// other waits; among such accounts the one with the least slot time goes first.
//
// Life: Open and Close count references; an Account stays while it has a reference, or a
// call that waits or runs. Who has opened it keeps it for a while when its caller has gone,
// who otherwise would be rid of its debt by coming back.
// Concurrency: all of it belongs to the rank's lock.
type Account struct {
	key   string
	terms Terms
	refs  int
	rate  bucket

	waiting int
	running int
	unheard int // running calls that are given up already (Rank.Unheard)
	ghosts  int // slots that are held for cancelled calls (R5)
	busy    int // index in Rank.busy, -1 if none of its calls runs
	// lastPeriod is the number of the last period in which the account had a call, see recent.
	lastPeriod int
	ghostUsage usage // by ghosts
	// slow is until when the account counts as one that keeps slots for long: when many
	// of its calls end at once, it looks as if it gave them back soon.
	slow  time.Duration
	flows []*flow // its waiting calls, one flow for each lane and queue

	// Slot time that the account is charged: what calls are expected to take when
	// they begin, what they took when they end, and meanwhile the longer of the two.
	// Sums of the instants of many calls may overflow the type; that does no harm,
	// for only their differences count.
	done     time.Duration // by calls that have ended
	expected time.Duration // by running calls
	starts   time.Duration // sum of the instants at which running calls were granted
	charged  time.Duration // the part of all this that is in shares and use
	served   time.Duration // the part that has passed and is in level.clock
	queued   time.Duration // slot time that the waiting calls are expected to take

	shares []levelShare  // by level
	level  *level        // of the call that began or ended last
	ahead  float64       // what the account adds to the level's
	use    float64       // nanoseconds of slot time, faded by age
	seen   time.Duration // when use was last brought up to date
}

// levelShare is the slot time that an account has had on one level.
type levelShare struct {
	had     float64 // slot time by its weight, on the scale of level.clock
	waiting int     // waiting calls
	usage   usage   // of slots
}

// Open returns the account of a key and counts one reference to it; Close gives
// the reference back. The first Open of a key decides its terms.
func (r *Rank) Open(key string, terms Terms) *Account {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.accounts[key]
	if a == nil {
		a = r.newAccount(key, terms)
		r.accounts[key] = a
	}
	a.refs++
	return a
}

func (r *Rank) newAccount(key string, terms Terms) *Account {
	terms = terms.complete()
	shares := make([]levelShare, len(r.lanes)) // there are no more levels than lanes
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

// forget drops an account that nobody needs.
func (r *Rank) forget(a *Account) {
	if !a.needed() && r.accounts[a.key] == a {
		delete(r.accounts, a.key)
	}
}

// admit applies the account's terms to a new call.
func (a *Account) admit(now time.Duration) Reason {
	if most := a.terms.Concurrent; most > 0 && a.waiting+a.running+a.ghosts >= most {
		return TooManyCalls
	}
	if !a.rate.take(now) {
		return RateLimited
	}
	return NoReason
}

// RateWait returns the time until the account may begin another call by its rate; 0
// if it may at once. A caller that is refused for its rate is told this time.
func (r *Rank) RateWait(a *Account, now time.Duration) time.Duration {
	if a == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.rate.wait(now)
}

// alone reports whether the rank has one account at most, so that nothing is shared.
func (r *Rank) alone() bool { return len(r.accounts) < 2 }

// charge bills the expected slot time of a call that begins.
func (r *Rank) charge(t *Ticket, now time.Duration) {
	a := t.account
	t.expected = t.method.expectedRun()
	if a.running++; a.running == 1 {
		a.busy = len(r.busy)
		r.busy = append(r.busy, a)
	}
	a.starts += now
	a.expected += t.expected
	t.lane.addSlots(a, 1, now)
	r.bill(a, t.lane.level, now, now)
}

// settle corrects the bill of a call that began at began to had, the slot time that
// it took; a ghost goes on to take more. A call that its worker refused took none.
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
	if ghost { // the ghost has the slot now
		t.lane.addSlots(a, -1, now)
	} else {
		t.lane.ended(a, now)
	}
	a.starts -= began
	a.expected -= t.expected
	a.done += had
	r.bill(a, t.lane.level, began, now)
	a.reconsider()
}

// bill brings the slot time of the account up to date. If that is less than before,
// the difference was charged at since.
func (r *Rank) bill(a *Account, l *level, since, now time.Duration) {
	ages := max(time.Duration(a.running)*now-a.starts, 0)
	charged := a.done + max(a.expected, ages)
	served := a.done + ages
	more, passed := charged-a.charged, served-a.served
	a.charged, a.served = charged, served
	r.noteCall(a, now)
	if r.alone() {
		if a.ahead != 0 {
			a.advance(l, 0)
		}
		return
	}
	a.used(more, since, now)
	// The clock runs as fast as the slot time of each waiting account.
	weight := a.terms.Weight
	weights := max(l.weights, weight)
	a.advance(l, float64(charged-served)/weights)
	l.clock += float64(max(passed, 0)) / weights
	a.shares[l.index].pay(float64(more)/weight, l, float64(debtCap)/weight)
	a.reorder()
}

// advance notes the slot time that the account is charged in advance, on the scale of
// the level's clock.
func (a *Account) advance(l *level, ahead float64) {
	a.level.ahead -= a.ahead
	l.ahead += ahead
	a.level, a.ahead = l, ahead
}

// pay adds slot time by weight to the share. The account then owes debt at most; slot
// time that is given back takes it back to the clock at most, so that it gets no
// credit for time that it never paid.
func (s *levelShare) pay(more float64, l *level, debt float64) {
	if more >= 0 {
		s.had = min(s.had+more, l.due()+debt)
	} else {
		s.had = max(s.had+more, min(s.had, l.clock))
	}
}

// used adds slot time to the account's use, or takes away slot time that was added at
// since and has faded.
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

// modest reports whether the account has about its share or less of the slots, which
// it shares with the waiting accounts.
func (a *Account) modest(l *level, slots int, now time.Duration) bool {
	if (a.shares[l.index].had-l.due())*a.terms.Weight > float64(lagCap) {
		return false
	}
	a.fade(now)
	share := tolerance * a.terms.Weight / l.weights * float64(slots)
	queued := float64(a.queued)
	return a.use+queued <= share*float64(useFor) && queued <= share*float64(queuedFor)
}

// bucket bounds a rate: a token bucket, kept as the instant at which it will be
// full (the generic cell rate algorithm), so that it needs no refilling. The
// zero value lets everything through.
type bucket struct {
	every time.Duration // time that one token takes to come; 0: no limit
	depth time.Duration // time in which an empty bucket becomes full
	full  time.Duration
}

func newBucket(t Terms) bucket {
	if t.Rate <= 0 {
		return bucket{}
	}
	every := max(time.Duration(float64(time.Second)/t.Rate), 1)
	return bucket{every: every, depth: every * time.Duration(max(t.Burst, 1))}
}

// take takes a token. It reports false if the bucket is empty.
func (b *bucket) take(now time.Duration) bool {
	if b.every == 0 {
		return true
	}
	full := max(b.full, now) + b.every
	if full > now+b.depth {
		return false
	}
	b.full = full
	return true
}

// wait returns the time until the next token.
func (b *bucket) wait(now time.Duration) time.Duration {
	if b.every == 0 {
		return 0
	}
	return max(max(b.full, now)+b.every-now-b.depth, 0)
}
