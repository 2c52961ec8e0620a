package ranksim

import (
	"time"
)

// Handlers says how handlers behave in an ideal, which has no named workers.
type Handlers struct {
	// RunOn means that a handler runs to its end when its caller has gone, and
	// keeps its slot.
	RunOn bool
}

// FirstCome is the ideal for one queue: every free slot takes the call that
// came first (M/G/k, first come first served). Calls whose caller has gone
// before a slot is free are not started. It is the best that any order by arrival can
// reach; it does not use the rank.
func FirstCome(calls []Call, slots int, h Handlers) *Result {
	r := newResult(calls)
	free := make([]time.Duration, slots) // when each slot is free
	for i := range calls {
		next := 0
		for s := range free {
			if free[s] < free[next] {
				next = s
			}
		}
		start := max(calls[i].Arrives, free[next])
		if held := r.serve(i, start, h); held > 0 {
			free[next] = start + held
		}
	}
	return r
}

// Preferring is the ideal for one caller: its calls go before all others, in
// the order of arrival on both sides, and no handler is interrupted. The others get the
// rest.
func Preferring(caller int, calls []Call, slots int, h Handlers) *Result {
	p := preferring{r: newResult(calls), handlers: h, free: make([]time.Duration, slots)}
	for i := range calls {
		p.serveUntil(calls[i].Arrives)
		if calls[i].Caller == caller {
			p.first = append(p.first, i)
		} else {
			p.others = append(p.others, i)
		}
	}
	p.serveUntil(forever)
	return p.r
}

// forever is later than any instant of a simulation.
const forever = time.Duration(1) << 62

type preferring struct {
	r             *Result
	handlers      Handlers
	free          []time.Duration // when each slot is free
	first, others []int           // calls that wait
	now           time.Duration   // of the last arrival
}

// serveUntil starts waiting calls on the slots that are free before an instant.
func (p *preferring) serveUntil(until time.Duration) {
	for len(p.first)+len(p.others) > 0 {
		next := 0
		for s := range p.free {
			if p.free[s] < p.free[next] {
				next = s
			}
		}
		start := max(p.free[next], p.now)
		if start >= until {
			break
		}
		from := &p.first
		if len(*from) == 0 {
			from = &p.others
		}
		i := (*from)[0]
		*from = (*from)[1:]
		if held := p.r.serve(i, start, p.handlers); held > 0 {
			p.free[next] = start + held
		}
	}
	p.now = until
}

// serve records call i as one whose turn comes at start, and returns how long
// its handler keeps a slot: 0 if the caller has gone by then.
func (r *Result) serve(i int, start time.Duration, h Handlers) time.Duration {
	c, rec := &r.Calls[i], &r.Records[i]
	gone, end := c.gone(), start+c.Service
	rec.Ending, rec.Wait, rec.Sojourn = Answered, start-c.Arrives, end-c.Arrives
	if gone == 0 || end <= gone {
		rec.Starts, rec.Held = 1, c.Service
		return rec.Held
	}
	rec.Ending, rec.Sojourn = Expired, gone-c.Arrives
	if gone == c.Leaves {
		rec.Ending = Left
	}
	if start >= gone {
		rec.Wait = rec.Sojourn
		return 0
	}
	rec.Starts, rec.Held = 1, gone-start
	if h.RunOn {
		rec.Held = c.Service
	}
	return rec.Held
}

// AtOnce is the result if no call ever waited: a slot for each. With deadlines it
// bounds the part of its time that any system can spend on answered calls, if it cannot
// know beforehand how long a call takes.
func AtOnce(calls []Call, h Handlers) *Result {
	r := newResult(calls)
	for i := range calls {
		r.serve(i, calls[i].Arrives, h)
	}
	return r
}
