//go:build real || soak

package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// chaosLimits are the bars that measure time; the others are the same on every
// machine.
type chaosLimits struct {
	plannedP99 float64       // in planned changes alone, times calm
	stormP99   float64       // of calls not sent to a faulty worker, times calm
	stall      time.Duration // p99 that is allowed in any case: the machine may stop for a moment
	detection  time.Duration // of a stopped process (R6)
	afterwards time.Duration // in which its calls end when it goes on
}

const (
	// matchSlack is what the clocks of writers and readers may differ by.
	matchSlack = 100 * time.Millisecond
	// lossKnown is how soon after a kill the callers hear of it.
	lossKnown = 2 * time.Second
	// chaosGrowth is what memory may grow by, in MiB: caches, pools and the tables
	// of metrics fill up.
	chaosGrowth = 16
	lostWords   = "cabrank: worker lost"
	// shown is how many violations of one bar are written out.
	shown = 5
)

// verdict is everything that is judged, with what it is judged by.
type chaosVerdict struct {
	*chaosRun

	t      *testing.T
	calls  []harness.ChaosCall // of all phases
	ledger *ledger
	faults []chaosFault
	rows   []barRow
}

// chaosCount is what cabrank counts itself.
type chaosCount struct {
	lost    float64            // calls
	retired map[string]float64 // processes of workers that it has ended, by reason
	blind   [][2]time.Time     // when one that was handing over counted what nobody can read
}

// add adds what the metrics page tells.
func (n *chaosCount) add(c *harness.Cabrank) {
	n.lost += c.Metric("cabrank_refusals_total", "reason", "worker_lost")
	for _, s := range c.Samples()["cabrank_worker_retired_total"] {
		n.retired[s.Labels["reason"]] += s.Value
	}
}

// barRow is a row of the table of bars.
type barRow struct {
	bar, wanted, seen string
	held              bool
}

// finish waits for the end of what is under way, judges, prints and stops.
func (r *chaosRun) finish(t *testing.T, watch *chaosWatch) {
	t.Helper()
	v := &chaosVerdict{chaosRun: r, t: t, ledger: readLedger(t, r.ledger), faults: r.faults.faults()}
	for _, phase := range r.phases {
		v.calls = append(v.calls, phase.calls...)
	}
	v.judgeCalls()
	v.judgeLatency()
	v.judgeStops()
	v.judgeCounters()
	watch.judge(v)
	err := r.changes.restore()
	testkit.Want(t, err == nil, "%v", err)
	// The load has left workers behind that are due, and are recycled one by one.
	testkit.Eventually(t, harness.Patience, "recycling to end", func() bool { return len(r.Family()) <= r.before.Processes })
	after := harness.FootprintOf(r.Cabrank, r.pid())
	growth := r.before.GrownBy(after)
	v.row("descriptors, goroutines, processes before and after", "no more", fmt.Sprintf("%+v, then %+v", r.before, after), growth == nil)
	grown := after.Kibibytes - r.before.Kibibytes
	v.row("memory of cabrank, more than before", fmt.Sprintf("<= %d MiB", chaosGrowth), fmt.Sprintf("%d KiB", grown), grown <= chaosGrowth<<10)
	r.stopLast(t)
	left := harness.FilesIn(t, r.runtime)
	v.row("socket files left at the end", "0", fmt.Sprint(len(left), left), len(left) == 0)
	v.print()
}

// stopLast ends the cabrank that serves, which is not the test's child after an
// upgrade.
func (r *chaosRun) stopLast(t *testing.T) {
	t.Helper()
	if r.pid() == r.PID {
		r.Stop()
		return
	}
	r.WantExit(harness.Patience, 0)
	r.SignalTo(r.pid(), syscall.SIGTERM)
	r.WaitNoneLeft(harness.StopBound)
}

// row adds a row and fails the test if the bar was missed.
func (v *chaosVerdict) row(bar, wanted, seen string, held bool) {
	v.t.Helper()
	v.rows = append(v.rows, barRow{bar, wanted, seen, held})
	testkit.Want(v.t, held, "%s: %s, want %s", bar, seen, wanted)
}

// none is a row for something of which there must be none.
func (v *chaosVerdict) none(bar string, violations []string) {
	v.t.Helper()
	for _, violation := range violations[:min(shown, len(violations))] {
		v.t.Errorf("%s: %s", bar, violation)
	}
	v.row(bar, "0", fmt.Sprint(len(violations)), len(violations) == 0)
}

// judgeCalls holds what became of every call against the ledger.
func (v *chaosVerdict) judgeCalls() {
	v.t.Helper()
	var repeatable, unmatched, twice, unanswered, nameless, unran []string
	for i := range v.calls {
		c := &v.calls[i]
		attempts := v.ledger.attempts[c.ID]
		switch {
		case c.Err == nil && len(attempts) == 0:
			unran = append(unran, c.ID)
		case c.Err != nil && c.Kind.Idempotent() && !c.Headed:
			repeatable = append(repeatable, v.describe(c))
		case c.Err != nil && !v.matched(c):
			unmatched = append(unmatched, v.describe(c))
		}
		if c.Err != nil && c.Kind.Streams() && !reasoned(c.Err) {
			nameless = append(nameless, v.describe(c))
		}
		if !c.Kind.Idempotent() && len(attempts) > 1 {
			twice = append(twice, v.describe(c))
		}
		if status.Code(c.Err) == codes.DeadlineExceeded {
			unanswered = append(unanswered, v.describe(c))
		}
	}
	v.none("failed calls marked idempotent that had not yet received a response header", repeatable)
	v.none("other failed calls that were not sent to a worker that was killed", unmatched)
	v.none("non-idempotent calls that ran twice", twice)
	v.none("streams that neither finished nor got UNAVAILABLE with the reason", nameless)
	v.none("calls that were never answered", unanswered)
	v.none("calls that were answered and never ran", unran)
	v.none("failures of any kind in planned changes alone", v.failures(phasePlanned, phaseCalm))
	boots := readLedger(v.t, v.chaosRun.ledger+harness.BootsSuffix).boots
	maps.DeleteFunc(boots, func(_ int, b boot) bool { return !b.ours() }) // upstreams have two cabranks in an upgrade
	most := v.ledger.most(boots)
	v.row("calls at a time in one worker", fmt.Sprintf("<= %d slots", chaosSlots), fmt.Sprint(most), most <= chaosSlots)
}

func (v *chaosVerdict) failures(phases ...string) (failed []string) {
	for _, phase := range v.phases {
		for i := range phase.calls {
			if c := &phase.calls[i]; c.Err != nil && slices.Contains(phases, phase.name) {
				failed = append(failed, v.describe(c))
			}
		}
	}
	return failed
}

// reasoned reports whether an error is UNAVAILABLE with a reason of cabrank's.
func reasoned(err error) bool {
	s := status.Convert(err)
	return s.Code() == codes.Unavailable && strings.HasPrefix(s.Message(), "cabrank: ")
}

// matched reports whether a failed call is named as lost and was sent to a
// process that was killed while the call was there. A call whose bytes the
// process had not yet read is in no ledger: it is matched by the time alone.
func (v *chaosVerdict) matched(c *harness.ChaosCall) bool {
	if status.Convert(c.Err).Message() != lostWords || status.Code(c.Err) != codes.Unavailable {
		return false
	}
	attempts := v.ledger.attempts[c.ID]
	return slices.ContainsFunc(v.faults, func(f chaosFault) bool {
		killed := f.killed()
		if killed.IsZero() || c.Ended.Before(killed.Add(-matchSlack)) || c.Ended.After(killed.Add(lossKnown)) {
			return false
		}
		there := slices.ContainsFunc(attempts, func(a attempt) bool {
			return a.pid == f.pid && a.began.Before(killed.Add(matchSlack)) && (a.ended.IsZero() || a.ended.After(killed.Add(-matchSlack)))
		})
		return there || len(attempts) == 0
	})
}

// touched reports whether a call was sent to a process with a fault in its time:
// one that was killed under it, or stopped.
func (v *chaosVerdict) touched(c *harness.ChaosCall) bool {
	return slices.ContainsFunc(v.ledger.attempts[c.ID], func(a attempt) bool {
		if a.ended.IsZero() {
			return true
		}
		return slices.ContainsFunc(v.faults, func(f chaosFault) bool {
			return f.pid == a.pid && f.at.Before(c.Ended) && (f.over.IsZero() || f.over.After(c.Intended.Add(-matchSlack)))
		})
	})
}

// describe tells all that is known of a call.
func (v *chaosVerdict) describe(c *harness.ChaosCall) string {
	var at strings.Builder
	for _, a := range v.ledger.attempts[c.ID] {
		fmt.Fprintf(&at, " [process %d from %s to %s]", a.pid, clock(a.began), clock(a.ended))
	}
	return fmt.Sprintf("%s: due %s, ended %s, header %t, %d messages, %v; ran:%s", c.ID, clock(c.Intended), clock(c.Ended), c.Headed, c.Messages, c.Err, at.String())
}

// clock shows a moment as cabrank's log does, without the date.
func clock(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format("15:04:05.000")
}

// judgeLatency compares the unary calls of the phases. Streams take what their
// callers make of them.
func (v *chaosVerdict) judgeLatency() {
	v.t.Helper()
	calm := v.latencies(phaseCalm, func(*harness.ChaosCall) bool { return true })
	planned := v.latencies(phasePlanned, func(*harness.ChaosCall) bool { return true })
	storm := v.latencies(phaseStorm, func(c *harness.ChaosCall) bool { return !v.touched(c) })
	base := percentile(calm, 99)
	for _, row := range []struct {
		bar    string
		phase  string
		times  []time.Duration
		factor float64
	}{
		{"p99 in planned changes alone", phasePlanned, planned, v.plan.limits.plannedP99},
		{"p99 of calls not sent to a faulty worker, in everything", phaseStorm, storm, v.plan.limits.stormP99},
	} {
		if len(row.times) == 0 {
			continue
		}
		p99 := percentile(row.times, 99)
		ratio := float64(p99) / float64(base)
		held := ratio <= row.factor || p99 <= v.plan.limits.stall
		v.row(row.bar, fmt.Sprintf("<= %gx calm (%s)", row.factor, millis(base)), fmt.Sprintf("%s, %.2fx", millis(p99), ratio), held)
		if !held {
			v.showSlow(row.phase, p99)
		}
	}
}

// showSlow writes out calls of a phase that took longer than others.
func (v *chaosVerdict) showSlow(name string, than time.Duration) {
	v.t.Helper()
	left := shown
	for _, phase := range v.phases {
		for i := range phase.calls {
			if c := &phase.calls[i]; phase.name == name && !c.Kind.Streams() && c.Took() >= than && left > 0 {
				v.t.Log(v.describe(c))
				left--
			}
		}
	}
}

// latencies returns the sorted times of the unary calls of a phase that ended
// well.
func (v *chaosVerdict) latencies(name string, include func(*harness.ChaosCall) bool) (times []time.Duration) {
	for _, phase := range v.phases {
		for i := range phase.calls {
			c := &phase.calls[i]
			if phase.name == name && c.Err == nil && !c.Kind.Streams() && include(c) {
				times = append(times, c.Took())
			}
		}
	}
	slices.Sort(times)
	return times
}

// judgeStops holds how soon a stopped process was seen, and what became of the
// calls that it had.
func (v *chaosVerdict) judgeStops() {
	v.t.Helper()
	var slowest, longest time.Duration
	for i := range v.faults {
		f := &v.faults[i]
		if f.kind == faultKill {
			continue
		}
		if !f.detected.IsZero() {
			slowest = max(slowest, f.detected.Sub(f.at))
		}
		for i := range v.calls {
			if c := &v.calls[i]; v.heldBy(c, f) {
				longest = max(longest, c.Ended.Sub(f.over))
			}
		}
	}
	limits := v.plan.limits
	v.row("a stopped worker gets no new calls (detection time)", "<= "+limits.detection.String(), millis(slowest), slowest <= limits.detection)
	v.row("calls sent to a stopped worker end after it goes on or is killed within", "<= "+limits.afterwards.String(), millis(longest), longest <= limits.afterwards)
}

// heldBy reports whether a call was with a process while that was stopped.
func (v *chaosVerdict) heldBy(c *harness.ChaosCall, f *chaosFault) bool {
	return slices.ContainsFunc(v.ledger.attempts[c.ID], func(a attempt) bool {
		return a.pid == f.pid && c.Intended.Before(f.over) && (a.ended.IsZero() || a.ended.After(f.at))
	})
}

// judgeCounters holds that cabrank counts by name what its callers saw.
func (v *chaosVerdict) judgeCounters() {
	v.t.Helper()
	counted := &v.changes.counted
	counted.add(v.Cabrank)
	lost, unread := 0, 0
	for i := range v.calls {
		c := &v.calls[i]
		if c.Err == nil || status.Convert(c.Err).Message() != lostWords {
			continue
		}
		lost++
		if slices.ContainsFunc(counted.blind, func(b [2]time.Time) bool { return c.Ended.After(b[0]) && c.Ended.Before(b[1]) }) {
			unread++
		}
	}
	v.row("calls that cabrank counts as worker_lost", fmt.Sprintf("%d to %d, as callers saw", lost-unread, lost),
		fmt.Sprint(counted.lost), counted.lost <= float64(lost) && counted.lost >= float64(lost-unread))
}

// percentile of a sorted list.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
