package ranksim

import (
	"fmt"
	"testing"
	"time"
)

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
