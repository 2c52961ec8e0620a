//go:build !race

package whatif

import (
	"math"
	"testing"
	"time"
)

func near(t *testing.T, what string, got, want time.Duration, within float64) {
	t.Helper()
	off := float64(got)/float64(want) - 1
	t.Logf("%s: %v, theory %v (%+.1f %%)", what, got, want, 100*off)
	if math.Abs(off) > within {
		t.Errorf("%s is %v, theory says %v (%+.1f %%)", what, got, want, 100*off)
	}
}

// waits is the chance that a call waits in M/M/k.
//
// Source: Erlang's C formula.
func waits(k int, busy float64) float64 {
	term, sum := 1.0, 0.0
	for n := range k {
		sum += term
		term *= busy / float64(n+1)
	}
	last := term * float64(k) / (float64(k) - busy)
	return last / (sum + last)
}

// beyond is the chance that a call takes longer than t in M/M/k, in units of the mean
// service time.
func beyond(k int, busy, t float64) float64 {
	c, gap := waits(k, busy), float64(k)-1-busy
	if math.Abs(gap) < 1e-9 {
		return math.Exp(-t) * (1 + c*t)
	}
	return math.Exp(-t) * (1 + c*(1-math.Exp(-gap*t))/gap)
}

// quantile is where beyond is 1 - share.
func quantile(k int, busy, share float64) float64 {
	low, high := 0.0, 1000.0
	for range 100 {
		if middle := (low + high) / 2; beyond(k, busy, middle) > 1-share {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Exponential service times: one queue for all is M/M/k, whatever part of the slots a
// worker has. A worker chosen by chance is M/M/1 with its part of the calls.
func TestExponentialTimes(t *testing.T) {
	t.Parallel()
	const mean = 20 * time.Millisecond
	for _, tc := range []struct {
		workers, slots int
		load           float64
	}{{1, 1, 0.7}, {4, 1, 0.8}, {2, 5, 0.8}, {8, 1, 0.5}} {
		places := tc.workers * tc.slots
		busy := tc.load * float64(places)
		a := ask(t, Question{
			Rate: busy / mean.Seconds(), Workers: []int{tc.workers}, Slots: []int{tc.slots}, Seed: 1, Calls: 300_000,
			Calibrations: []Calibration{{Slots: tc.slots, Times: exponential(mean)}},
		})
		c := a.cell(t, tc.slots, tc.workers, Cabrank)
		unit := float64(mean)
		near(t, "mean", c.Latencies.Mean, time.Duration(unit*(1+waits(places, busy)/(float64(places)-busy))), 0.04)
		for _, q := range c.Latencies.Quantiles[:4] {
			near(t, "quantile", q.Value, time.Duration(unit*quantile(places, busy, q.Share)), 0.05)
		}
		if math.Abs(c.Busy-tc.load) > 0.02 || math.Abs(c.Load-tc.load) > 0.005 || c.Failed != 0 {
			t.Errorf("busy %.3f, load %.3f, want %.1f; %.4f failed", c.Busy, c.Load, tc.load, c.Failed)
		}
		if tc.slots == 1 {
			c := a.cell(t, 1, tc.workers, Random)
			near(t, "p99 by chance", c.Latencies.Quantiles[3].Value, time.Duration(unit*math.Log(100)/(1-tc.load)), 0.08)
		}
	}
}

// Constant service times on one worker: the mean wait of M/D/1.
func TestConstantTimes(t *testing.T) {
	t.Parallel()
	const d, load = 10 * time.Millisecond, 0.8
	a := ask(t, Question{
		Rate: load / d.Seconds(), Workers: []int{1}, Seed: 2,
		Calibrations: []Calibration{{Times: constant(d)}},
	})
	for _, p := range Policies() { // of one worker there is no choice
		near(t, string(p), a.cell(t, 1, 1, p).Latencies.Mean, time.Duration(float64(d)*(1+load/(2*(1-load)))), 0.03)
	}
}
