//go:build !race

package ranksim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
)

// async is a worker that takes any number of calls: each needs so much of its one processor, in
// the order of arrival, and then waits for something else.
type async struct {
	methods       []needs                         // by chance
	cpuAt, waitAt func(now time.Duration) float64 // factors; nil is 1
	rate          float64                         // calls per second by chance; 0 keeps all slots in use
	begun         []int                           // calls by second
}

type needs struct{ cpu, wait Service }

// adaptive is a worker whose slots are found.
func adaptive() Worker { return Worker{Slots: 10, Least: 1, Most: 200, OnCancel: rank.Free} }

// works has a worker work so.
func (a *async) works(w Worker, seed uint64) Worker {
	free, random := time.Duration(0), rand.New(rand.NewPCG(seed, 1))
	scaled := func(s Service, by func(time.Duration) float64, now time.Duration) time.Duration {
		d := s.Draw(random)
		if by != nil {
			d = time.Duration(float64(d) * by(now))
		}
		return d
	}
	w.Takes = func(c *Call, now time.Duration) time.Duration {
		for len(a.begun) <= int(now/time.Second) {
			a.begun = append(a.begun, 0)
		}
		a.begun[now/time.Second]++
		m := a.methods[c.Method]
		free = max(free, now) + scaled(m.cpu, a.cpuAt, now)
		return free - now + scaled(m.wait, a.waitAt, now)
	}
	return w
}

// run lets one such worker work for so long.
func (a *async) run(w Worker, seed uint64, d time.Duration) *output {
	out := &output{}
	s := System{Rank: rankOptions(), Workers: []Worker{a.works(w, seed)}, Seed: seed, Look: func(r *rank.Rank, _ time.Duration) {
		out.limits = append(out.limits, r.Snapshot().Endpoints[0].Limit)
	}}
	if a.rate > 0 {
		out.Result = Run(s, Workload{Callers: []Caller{{Rate: a.rate, Service: Constant(0)}}, Until: d, Seed: seed}.Draw())
		return out
	}
	out.Result = Run(s, nil, a.loop(300, d))
	return out
}

// loop is so many callers who wait for nothing but their answers, each call by chance of one
// method.
func (a *async) loop(callers int, d time.Duration) Loop {
	return Loop{Callers: callers, Until: d, Service: Constant(0), Methods: len(a.methods)}
}

// output is what one worker did.
type output struct {
	*Result

	limits []int // tenths of a second
}

// did is what it did from one second on to before another.
type did struct {
	perSecond    float64
	run, sojourn time.Duration // means
	lowest       int           // limit
}

func (o *output) between(from, to int) (d did) {
	calls := 0
	for i, r := range o.Records {
		if at := int((o.Calls[i].Arrives + r.Sojourn) / time.Second); r.Ending == Answered && at >= from && at < to {
			calls, d.run, d.sojourn = calls+1, d.run+r.Held, d.sojourn+r.Sojourn
		}
	}
	d.perSecond = float64(calls) / float64(to-from)
	d.run, d.sojourn = d.run/time.Duration(max(calls, 1)), d.sojourn/time.Duration(max(calls, 1))
	d.lowest = o.limits[10*from]
	for _, limit := range o.limits[10*from : min(10*to, len(o.limits))] {
		d.lowest = min(d.lowest, limit)
	}
	return d
}

// until returns how many seconds after one it is the first time well.
func (o *output) until(from, over int, well func(did) bool) int {
	for s := from; s < over; s++ {
		if well(o.between(s, s+1)) {
			return s - from
		}
	}
	return over
}

// bestFixed returns what the smallest of many fixed limits does that reaches 99 % of the best
// throughput.
func (a async) bestFixed(cpu, wait float64) did {
	a.cpuAt, a.waitAt = constantly(cpu), constantly(wait)
	var all []did
	most := 0.0
	for _, n := range []int{1, 12, 21, 24, 28, 33, 42, 80, 110, 200} {
		all = append(all, a.run(Worker{Slots: n, OnCancel: rank.Free}, 1, 6*time.Second).between(2, 6))
		most = max(most, all[len(all)-1].perSecond)
	}
	for _, d := range all {
		if d.perSecond >= 0.99*most {
			return d
		}
	}
	panic("unreachable: one of them is the best")
}

func constantly(f float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return f }
}

// twiceFrom is 1, and 2 from one second on to before another.
func twiceFrom(from, to int) func(time.Duration) float64 {
	return func(now time.Duration) float64 {
		if s := int(now / time.Second); s >= from && s < to {
			return 2
		}
		return 1
	}
}

// The worker that most of it is about: a call needs 1 ms of the processor and waits for 20.
var (
	constantWork    = []needs{{Constant(ms), Constant(20 * ms)}}
	exponentialWork = []needs{{Exponential(ms), Exponential(20 * ms)}}
)

// Slots that adapt do at least 0.95 of what the best fixed number does, with run times of at
// most 1.5 times that one's.
func TestBarAdaptFindsTheBestLimit(t *testing.T) {
	t.Parallel()
	bar(t, "slots that adapt", func(r *recorder) {
		for _, tc := range []struct {
			name    string
			methods []needs
			from    int // second from which on it is measured
			share   float64
		}{
			{"constant", constantWork, 10, 0.97},
			{"exponential", exponentialWork, 10, 0.95},
			{"mixed wait", []needs{{Constant(ms), Mixed()}}, 10, 0.95},
			{"mixed wait, exponential cpu", []needs{{Exponential(ms), Mixed()}}, 10, 0.93},
			{"long calls", []needs{{Exponential(10 * ms), Exponential(500 * ms)}}, 60, 0.85},
			{"short calls", []needs{{Exponential(ms / 5), Exponential(4 * ms)}}, 10, 0.95},
			{"two methods", []needs{{Exponential(ms / 5), Exponential(ms)}, {Exponential(ms), Exponential(99 * ms)}}, 20, 0.93},
		} {
			best := async{methods: tc.methods}.bestFixed(1, 1)
			got := (&async{methods: tc.methods}).run(adaptive(), r.seed, 100*time.Second).between(tc.from, 100)
			r.setting = tc.name + ", over the best fixed number"
			r.note("calls", got.perSecond/best.perSecond, atLeast(tc.share))
			r.note("run time", Share(got.run, best.run), atMost(1.5))
		}
	})
}

// A worker that waits for something else alone gets all that the bounds allow; one that does one
// call at a time gets few at once, after a minute in which it had to find that out from ten.
func TestBarAdaptAtTheEnds(t *testing.T) {
	t.Parallel()
	bar(t, "slots that adapt", func(r *recorder) {
		for name, wait := range map[string]Service{"constant": Constant(20 * ms), "mixed": Mixed()} {
			got := (&async{methods: []needs{{Constant(0), wait}}}).run(adaptive(), r.seed, 20*time.Second).between(12, 20)
			r.setting = "no processor, " + name
			r.note("the lowest limit", float64(got.lowest), atLeast(150))
		}
		for name, cpu := range map[string]Service{"constant": Constant(10 * ms), "exponential": Exponential(10 * ms)} {
			methods := []needs{{cpu, Constant(0)}}
			best, out := async{methods: methods}.bestFixed(1, 1), (&async{methods: methods}).run(adaptive(), r.seed, 200*time.Second)
			got := out.between(60, 200)
			r.setting = "one at a time, " + name
			r.note("calls over the best", got.perSecond/best.perSecond, atLeast(0.95))
			r.note("run time in ms", got.run.Seconds()*1000, atMost(35))
			r.note("the limit at last", float64(out.limits[len(out.limits)-1]), atMost(4))
		}
	})
}

// When the worker's processor does half as much, and when it is itself again, the limit follows
// within seconds. Run times that double because of something else, a database, do not count as
// contention: the limit follows the new optimum, which is higher.
func TestBarAdaptFollows(t *testing.T) {
	t.Parallel()
	bar(t, "slots that adapt", func(r *recorder) {
		for name, methods := range map[string][]needs{"constant": constantWork, "exponential": exponentialWork} {
			best, slow, far := async{methods: methods}.bestFixed(1, 1), async{methods: methods}.bestFixed(2, 1), async{methods: methods}.bestFixed(1, 2)
			out := (&async{methods: methods, cpuAt: twiceFrom(40, 80)}).run(adaptive(), r.seed, 120*time.Second)
			during, after := out.between(50, 80), out.between(90, 120)
			r.setting = name + ", half a processor from 40 s to 80 s"
			r.note("seconds until it is slow enough", float64(out.until(40, 120, func(d did) bool { return d.run < slow.run*3/2 })), atMost(25))
			r.note("seconds until it is fast enough", float64(out.until(80, 120, func(d did) bool { return d.perSecond > 0.9*best.perSecond })), atMost(15))
			r.note("calls over the best, meanwhile", during.perSecond/slow.perSecond, atLeast(0.9))
			r.note("calls over the best, afterwards", after.perSecond/best.perSecond, atLeast(0.9))
			r.note("run time over that of the best, meanwhile", Share(during.run, slow.run), atMost(1.7))
			r.note("run time over that of the best, afterwards", Share(after.run, best.run), atMost(1.5))
			out = (&async{methods: methods, waitAt: twiceFrom(40, 1000)}).run(adaptive(), r.seed, 100*time.Second)
			got := out.between(55, 100)
			r.setting = name + ", a slow database from 40 s on"
			r.note("calls over the best, 15 s later", got.perSecond/far.perSecond, atLeast(0.93))
			r.note("run time over that of the best", Share(got.run, far.run), atMost(1.5))
			r.note("calls over those before, until then", out.between(40, 55).perSecond/best.perSecond, atLeast(1.0/3))
		}
	})
}

// Under light load the limit makes no difference and does not fall, whatever the run times are
// like. Below saturation calls are about as quick as with any number of slots, though probes let
// half of them run now and then.
func TestBarAdaptOpenLoad(t *testing.T) {
	t.Parallel()
	bar(t, "slots that adapt", func(r *recorder) {
		for name, wait := range map[string]Service{"constant": Constant(20 * ms), "exponential": Exponential(20 * ms), "mixed": Mixed()} {
			got := (&async{methods: []needs{{Exponential(ms), wait}}, rate: 100}).run(adaptive(), r.seed, 300*time.Second).between(0, 299)
			r.setting = "100 calls a second, " + name
			r.note("the lowest limit", float64(got.lowest), atLeast(10))
			r.note("ms that calls wait", (got.sojourn-got.run).Seconds()*1000, atMost(0.2))
		}
		for rate, most := range map[float64]float64{500: 1.05, 800: 1.1, 900: 1.5} {
			open := async{methods: exponentialWork, rate: rate}
			free := open.run(Worker{Slots: 1000, OnCancel: rank.Free}, r.seed, 100*time.Second).between(20, 99)
			got := open.run(adaptive(), r.seed, 100*time.Second).between(20, 99)
			r.setting = time.Duration(float64(time.Second)/rate).String() + " between calls"
			r.note("time in the system over that without a limit", Share(got.sojourn, free.sojourn), atMost(most))
		}
	})
}

// A worker that takes eight calls and refuses more is soon asked for eight.
func TestBarAdaptRefusals(t *testing.T) {
	t.Parallel()
	bar(t, "slots that adapt", func(r *recorder) {
		w := adaptive()
		w.Threads = 8
		out := (&async{methods: constantWork}).run(w, r.seed, 30*time.Second)
		got := out.between(5, 30)
		r.setting = "eight threads"
		r.note("calls over what they can do", got.perSecond/(8/0.021), atLeast(0.97))
		r.note("refusals over calls", Share(out.Refusals, len(out.Records)), atMost(0.02))
		r.note("the lowest limit", float64(got.lowest), atLeast(5))
	})
}

// Three workers behind one rank, one with half the processor, find their limits side by side: run
// times are compared with those of all.
func TestBarAdaptInAPool(t *testing.T) {
	t.Parallel()
	bar(t, "slots that adapt", func(r *recorder) {
		all := []*async{{methods: exponentialWork}, {methods: exponentialWork}, {methods: exponentialWork, cpuAt: constantly(2)}}
		var workers []Worker
		for i, a := range all {
			w := adaptive()
			w.Slots = 5
			workers = append(workers, a.works(w, uint64(i)))
		}
		var last []rank.EndpointState
		Run(System{Rank: rankOptions(), Workers: workers, Look: func(r *rank.Rank, _ time.Duration) { last = r.Snapshot().Endpoints }}, nil, all[0].loop(150, 60*time.Second))
		for i, most := range []float64{1000, 1000, 500} {
			did := 0
			for _, n := range all[i].begun[20:60] {
				did += n
			}
			r.setting = last[i].Name
			r.note("calls over what its processor can do", float64(did)/40/most, atLeast(0.9))
			r.note("its limit", float64(last[i].Limit), atMost(80))
		}
	})
}
