package ranksim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What the rank must reach (docs/rank.md). The ideals see the same calls with
// the same service times; where a bar is out of reach for any system, the
// simulation computes what is in reach and the bar is relative to that.

// rankOptions are those of all bars: a queue that is never full.
func rankOptions() rank.Options { return rank.Options{QueueLength: 1 << 20} }

// handlers are the ways in which workers and cancels go together.
func handlers() []struct {
	name   string
	worker Worker
} {
	return []struct {
		name   string
		worker Worker
	}{
		{"handlers stop", Worker{Slots: 1, OnCancel: rank.Free}},
		{"handlers run on, hold", Worker{Slots: 1, RunsOn: true, OnCancel: rank.Hold}},
		{"handlers run on, finish", Worker{Slots: 1, RunsOn: true, OnCancel: rank.Finish}},
	}
}

// limit is what a value must keep to.
type limit struct {
	value float64
	least bool // at least, else at most
}

func atMost(v float64) limit  { return limit{value: v} }
func atLeast(v float64) limit { return limit{value: v, least: true} }

func (l limit) holds(v float64) bool {
	if l.least {
		return v >= l.value
	}
	return v <= l.value
}

func (l limit) String() string {
	if l.least {
		return fmt.Sprintf("≥ %.3g", l.value)
	}
	return fmt.Sprintf("≤ %.3g", l.value)
}

// recorder takes down what one bar came to with one seed.
type recorder struct {
	*testing.T
	name    string
	seed    uint64
	calls   int
	setting string
}

// bar runs one bar with every seed.
func bar(t *testing.T, name string, run func(*recorder)) {
	t.Helper()
	for seed := range uint64(barSeeds) {
		run(&recorder{T: t, name: name, seed: seed + 1, calls: barCalls})
	}
}

// compare notes a quantile of the time in the system over that of another one.
func (r *recorder) compare(got, want *Result, pick Pick, quantile float64, l limit) {
	r.Helper()
	g, w := got.Sojourns(pick), want.Sojourns(pick)
	ratio := func(q float64) float64 { return Share(Quantile(g, q), Quantile(w, q)) }
	what := fmt.Sprintf("p%v of the time in the system", math.Round(quantile*1e4)/1e2)
	r.report(what, ratio(quantile), l, [3]float64{ratio(0.5), ratio(0.99), ratio(0.999)})
}

// note takes down a value.
func (r *recorder) note(what string, value float64, l limit) {
	r.Helper()
	r.report(what, value, l, [3]float64{})
}

// report takes a value down and fails the test if it breaks its limit.
func (r *recorder) report(what string, value float64, l limit, ratios [3]float64) {
	r.Helper()
	found.add(finding{bar: r.name, setting: r.setting, what: what, limit: l}, value, ratios)
	if barHolds && !l.holds(value) {
		r.Errorf("%s, seed %d: %s %.4g, want %v", r.setting, r.seed, what, value, l)
	}
}

// One of 5 workers stalls 1 s in 1 % of its calls: hedging makes p99.9 at least
// 5 times smaller for at most 2 % more work, and at full load it does nothing.
func TestBarHedging(t *testing.T) {
	t.Parallel()
	bar(t, "hedging", func(r *recorder) {
		workers := Alike(5, Worker{Slots: 4, OnCancel: rank.Free})
		workers[1].Takes = stalling(0.01)
		for _, kind := range kinds[:2] { // of mixed work the tail is long calls
			for _, load := range []float64{0.3, 0.5} {
				calls := oneCaller(r.seed, r.calls, load, 20, kind).Draw()
				plain := System{Rank: rankOptions(), Workers: workers}
				hedged := plain
				hedged.Hedge, hedged.HedgeAfter = true, 120*ms
				r.setting = fmt.Sprintf("%s, load %.1f, after 120 ms", kind.name, load)
				got := Run(hedged, calls)
				r.compare(got, Run(plain, calls), Everyone, 0.999, atMost(0.2))
				_, all := got.Held(Everyone)
				r.note("extra work", Share(got.HedgeTime, all), atMost(0.02))
			}
			w := oneCaller(r.seed, r.calls, 3, 20, kind)
			full := System{Rank: rankOptions(), Workers: workers, Hedge: true, HedgeAfter: 120 * ms}
			full.Rank.QueueLength = 1000
			got := Run(full, w.Draw())
			hedged := 0
			for i := range got.Records { // after the last arrival the queue empties
				if got.Records[i].Hedged && got.Calls[i].Arrives < w.Until-5*time.Second {
					hedged++
				}
			}
			r.setting = kind.name + ", full load"
			r.note("hedges", float64(hedged), atMost(0))
		}
	})
}

// Workers that refuse a call for which they have no thread, three threads for each slot
// of which each is free 0.5 ms after its answer, two callers, deadlines of 2 s and 10 %
// cancels: fewer than 1 call in 500 is refused, and the p99 of those that are not cancelled is at most
// 1.10 times that of the ideal whose threads are free at once.
func TestBarRefusals(t *testing.T) {
	t.Parallel()
	bar(t, "refusals, deadlines, cancels", func(r *recorder) {
		for _, kind := range kinds {
			for _, load := range barLoads() {
				w := twoCallers(r.seed, r.calls, load, kind)
				calls := w.Draw()
				for _, how := range handlers() {
					how.worker.Late, how.worker.Threads = ms/2, 3*how.worker.Slots
					got := Run(System{
						Rank: rankOptions(), Accounts: make([]rank.Terms, 2), Workers: Alike(4, how.worker),
					}, calls)
					want := FirstCome(calls, 4, Handlers{RunOn: how.worker.RunsOn})
					r.setting = fmt.Sprintf("%s, load %.1f, %s", kind.name, load, how.name)
					testkit.Want(t, got.Refusals*500 <= max(len(calls), 5_000),
						"%s: %d of %d calls were refused", r.setting, got.Refusals, len(calls))
					r.compare(got, want, stays, 0.99, atMost(1.10))
				}
			}
		}
	})
}

func stays(c *Call, _ *Record) bool { return c.Leaves == 0 }

func twoCallers(seed uint64, n int, load float64, service Service) Workload {
	w := oneCaller(seed, n, load/2, 4, service)
	w.Until /= 2
	c := &w.Callers[0]
	c.Timeout, c.Cancel, c.Slots = 2*time.Second, 0.1, 4
	w.Callers = append(w.Callers, *c)
	return w
}

// One of 5 workers with 4 slots is 10 times slower: p99.9 at most 0.75 times
// that of plain late binding at half of what the workers can do, and no worse
// than 1.05 times at 0.7 and 0.9.
func TestBarSlowWorker(t *testing.T) {
	t.Parallel()
	bar(t, "a slow worker", func(r *recorder) {
		workers := Alike(5, Worker{Slots: 4})
		workers[2].Takes = slower(10)
		const capacity = 4.1 * 4 // in slots of ordinary speed
		for _, kind := range kinds {
			for _, load := range []float64{0.5, 0.7, 0.9} {
				w := oneCaller(r.seed, r.calls, load*capacity/20, 20, kind)
				calls := w.Draw()
				got := Run(System{Rank: rankOptions(), Workers: workers}, calls)
				plain := rankOptions()
				plain.Choose = rank.LeastLoaded
				w.Callers[0].Method = -1 // nothing is learned
				want := Run(System{Rank: plain, Workers: workers}, w.Draw())
				limit := atMost(1.05)
				if load == 0.5 {
					limit = atMost(0.75)
				}
				r.setting = fmt.Sprintf("%s, load %.1f, over plain late binding", kind.name, load)
				r.compare(got, want, Everyone, 0.999, limit)
			}
		}
	})
}

// A caller who keeps slots for long, beside one who wants 3 or 30 % of them for short
// calls: that one is answered. Its p99 is at most three times that in calm beside
// cancelled calls, whose slots are ghosts, and five times beside long ones, from the
// second second on.
func TestBarCrowd(t *testing.T) {
	t.Parallel()
	bar(t, "one who crowds", func(r *recorder) {
		for _, load := range []float64{0.03, 0.3} {
			for _, kind := range kinds {
				w := oneCaller(r.seed, r.calls/4, load, 15, kind)
				good := w.Draw()
				calm := crowd(good, crowding{})
				for _, c := range crowds(r.seed, w.Until) {
					got := crowd(good, c)
					r.setting = fmt.Sprintf("%s, load %v, beside %s", kind.name, load, c.name)
					since := func(call *Call, _ *Record) bool { return call.Caller == 0 && call.Arrives >= c.settled }
					r.note("of its calls answered", Share(got.Answered(since)), atLeast(0.99))
					most := c.most
					if load < 0.1 { // half of the one slot that is left is more than a seventh of seven
						most = 5
					}
					r.compare(got, calm, since, 0.99, atMost(most))
				}
			}
		}
	})
}

type crowding struct {
	name    string
	calls   []Call
	loop    Loop
	settled time.Duration
	most    float64
}

// crowds are callers who come when the other one has been there for a while.
func crowds(seed uint64, until time.Duration) []crowding {
	draw := func(rate float64, service Service, leaves time.Duration) []Call {
		w := Workload{Seed: seed + 100, Until: until, Callers: []Caller{{Rate: rate, Service: service, Method: -1}}}
		calls := w.Draw()
		for i := range calls {
			calls[i].Caller = 1
			calls[i].Arrives += 2 * time.Second
			if leaves > 0 {
				calls[i].Leaves = calls[i].Arrives + leaves
			}
		}
		return calls
	}
	const settled = 3 * time.Second
	twenty := Loop{Callers: 20, From: 2 * time.Second, Until: until, Service: Constant(8 * time.Second), Caller: 1, Method: -1}
	changed := twenty
	changed.From = 4 * time.Second
	short := make([]Call, 200)
	for i := range short {
		short[i] = Call{Arrives: 2*time.Second + time.Duration(i)*10*ms, Service: 5 * ms, Caller: 1, Method: -1}
	}
	dead := make([]Call, 20)
	for i := range dead {
		dead[i] = Call{Arrives: 2 * time.Second, Service: until, Caller: 1, Method: -1}
	}
	return []crowding{
		{name: "60 cancelled calls a second", calls: draw(60, Constant(10*time.Second), 5*ms), settled: settled, most: 3},
		{name: "600 cancelled calls a second", calls: draw(600, Constant(10*time.Second), 5*ms), settled: settled, most: 3},
		{name: "10 cancelled calls a second", calls: draw(10, Constant(10*time.Second), 5*ms), settled: settled, most: 3},
		{name: "calls of a minute", calls: draw(2, Constant(time.Minute), 0), settled: settled, most: 5},
		{name: "calls of 2 s", calls: draw(30, Constant(2*time.Second), 0), settled: settled, most: 5},
		{name: "20 calls of 8 s, kept up", loop: twenty, settled: settled, most: 5},
		{name: "20 calls that do not end", calls: dead, settled: settled, most: 5},
		{name: "20 calls of 8 s, kept up, of one known for short ones", calls: short, loop: changed, settled: changed.From + time.Second, most: 5},
	}
}

// crowd runs the calls of two callers on three workers of five slots.
func crowd(good []Call, crowd crowding) *Result {
	calls := slices.Concat(good, crowd.calls)
	slices.SortStableFunc(calls, func(a, b Call) int { return cmp.Compare(a.Arrives, b.Arrives) })
	o := rankOptions()
	o.QueueLength = 1000
	return Run(System{
		Rank: o, Workers: Alike(3, Worker{Slots: 5, OnCancel: rank.Hold}),
		QueueTimeout: 30 * time.Second, Accounts: make([]rank.Terms, 2),
	}, calls, crowd.loop)
}

// Overload of 1.4 and 3 times for 30 s with deadlines of 500 ms: at least 0.93
// of the slot time goes to calls that end in time, of the part that would if no
// call ever waited: of mixed work some handlers take longer than their deadline
// whatever anybody does. Long calls get at least 0.8 of their share. Normal
// again after 200 ms: of the calls of the second that follows as many are
// answered as usual, but for 5 %.
func TestBarOverload(t *testing.T) {
	t.Parallel()
	bar(t, "overload", func(r *recorder) {
		for _, kind := range kinds {
			for _, factor := range []float64{1.4, 3} {
				rounds, w := overload(r, factor, kind)
				calls := w.Draw()
				for _, how := range handlers() {
					got := Run(System{Rank: rankOptions(), Workers: Alike(4, how.worker)}, calls)
					r.setting = fmt.Sprintf("%s, %.1f times, %s", kind.name, factor, how.name)
					rounds.judge(r, got, AtOnce(calls, Handlers{RunOn: how.worker.RunsOn}))
				}
			}
		}
	})
}

// deadline is that of the calls under overload.
const deadline = 500 * ms

// rounds are bursts of overload with 15 s of ordinary load after each.
type rounds []Burst

const overloadRound = barBurst + 15*time.Second

func overload(r *recorder, factor float64, service Service) (rounds, Workload) {
	const ordinary = 0.7
	perRound := (factor*barBurst.Seconds() + ordinary*15) * 4 / 0.020
	n := int(float64(2*r.calls)/perRound) + 1
	w := oneCaller(r.seed, 1, ordinary, 4, service)
	w.Callers[0].Timeout = deadline
	var bursts rounds
	for i := range n {
		from := time.Duration(i)*overloadRound + 5*time.Second
		bursts = append(bursts, Burst{From: from, To: from + barBurst, Factor: factor / ordinary})
	}
	w.Until, w.Bursts = time.Duration(n)*overloadRound, bursts
	return bursts, w
}

// judge holds a system against the bars on overload.
func (b rounds) judge(r *recorder, got, atOnce *Result) {
	inTime, all := got.Held(b.during)
	bound := Share(atOnce.Held(b.during))
	r.note("slot time in time", Share(inTime, all), atLeast(0.93*bound))

	long := Quantile(services(got.Calls), 0.95)
	if long > Quantile(services(got.Calls), 0.5) {
		isLong := func(c *Call, rec *Record) bool { return c.Service > long && b.during(c, rec) }
		longDone, longAll := got.Answered(isLong)
		done, all := got.Answered(b.during)
		r.note("share of long calls kept", Share(longDone, done)/Share(longAll, all), atLeast(0.8))
	}

	usual := Share(got.Answered(b.before))
	r.note("answered 0.2 to 1.2 s after the burst, over usual", Share(got.Answered(b.after))/usual, atLeast(0.95))
}

func services(calls []Call) []time.Duration {
	r := &Result{Calls: calls, Records: make([]Record, len(calls))}
	for i := range calls {
		r.Records[i].Wait = calls[i].Service
	}
	return r.Waits(Everyone)
}

// within reports whether an instant is in a part of a round; 0 is the beginning
// of its burst.
func (b rounds) within(at, from, to time.Duration) bool {
	since := (at - b[0].From) % overloadRound
	return since >= from && since < to || since-overloadRound >= from && since-overloadRound < to
}

func (b rounds) during(c *Call, _ *Record) bool { return b.within(c.Arrives, 0, barBurst) }

func (b rounds) before(c *Call, _ *Record) bool { return b.within(c.Arrives, -5*time.Second, 0) }

func (b rounds) after(c *Call, _ *Record) bool {
	return b.within(c.Arrives, barBurst+200*ms, barBurst+1200*ms)
}

// Honest slots, no deadlines, one caller: each call waits exactly as long as in
// the ideal M/G/k on the same random numbers.
func TestBarHonestSlots(t *testing.T) {
	t.Parallel()
	bar(t, "honest slots", func(r *recorder) {
		for _, kind := range kinds {
			for _, load := range []float64{0.5, 0.7, 0.9} {
				calls := oneCaller(r.seed, r.calls, load, 4, kind).Draw()
				got := Run(System{Rank: rankOptions(), Workers: Alike(4, Worker{Slots: 1})}, calls)
				want := FirstCome(calls, 4, Handlers{})
				differ := 0
				for i := range calls {
					if got.Records[i] != want.Records[i] {
						differ++
					}
				}
				r.setting = fmt.Sprintf("%s, load %.1f", kind.name, load)
				r.note("calls that wait otherwise than in the ideal", float64(differ), atMost(0))
			}
		}
	})
}

// Late binding against policies that bind early, on mixed work at 0.7: p99 at
// most 0.65 times that of the power of two choices and 0.35 times round robin's.
func TestBarEarlyBinding(t *testing.T) {
	t.Parallel()
	bar(t, "early binding", func(r *recorder) {
		calls := oneCaller(r.seed, r.calls, 0.7, 4, Mixed()).Draw()
		late := Run(System{Rank: rankOptions(), Workers: Alike(4, Worker{Slots: 1})}, calls)
		for p, most := range map[Policy]float64{Random: 1, RoundRobin: 0.35, LeastRequest: 1, P2C: 0.65, PeakEWMA: 1} {
			r.setting = "mixed, load 0.7, late binding over " + string(p)
			r.compare(late, Early(p, calls, 4, 1, Handlers{}, r.seed), Everyone, 0.99, atMost(most))
		}
	})
}

// Equal weights, a heavy caller alone at 3 times what the workers can do, a
// light one at 10 and 30 %: the light one gets at least 0.99 of what it asks
// for, and its p99 is at most 1.15 times that of absolute priority, but for the
// first 10 s.
func TestBarFairShares(t *testing.T) {
	t.Parallel()
	bar(t, "fair shares", func(r *recorder) {
		for _, kind := range kinds {
			for _, light := range []float64{0.1, 0.3} {
				w := oneCaller(r.seed, r.calls, 1, 4, kind) // so many can be served
				w.Callers = []Caller{
					{Rate: light * 200, Service: kind},
					{Rate: 3 * 200, Service: kind},
				}
				calls := w.Draw()
				o := rankOptions()
				o.QueueLength = 1000
				got := Run(System{
					Rank: o, Workers: Alike(4, Worker{Slots: 1}), Accounts: make([]rank.Terms, 2),
				}, calls)
				r.setting = fmt.Sprintf("%s, light caller at %.1f", kind.name, light)
				r.note("of its calls answered", Share(got.Answered(OfCaller(0))), atLeast(0.99))
				// Both begin at once, as strangers.
				settled := func(c *Call, _ *Record) bool { return c.Caller == 0 && c.Arrives > 10*time.Second }
				r.compare(got, Preferring(0, calls, 4, Handlers{}), settled, 0.99, atMost(1.15))
			}
		}
	})
}
