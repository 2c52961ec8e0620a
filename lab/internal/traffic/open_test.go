package traffic

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A server that stands still for 1 s of 30 s at a constant rate, and is quick
// otherwise: the calls due in the pause wait for the rest of it, so that their
// latencies are even over 0 to 1 s, and they are 1/30 of all. The share of all calls
// above x is (1 s − x)/30 s; it is 1 % at x = 0.70 s, which is p99.
func TestPausedServerGivesTheP99OfArithmetic(t *testing.T) {
	r := run(t, Options{Rate: "500", Duration: 30 * time.Second}, paused())
	p99 := r.Latency().Quantile(0.99)
	near(t, "p99 in seconds", p99.Value.Seconds(), 0.70, 0.05)
	if p99.TooFew || r.Due != 15_000 || r.Calls.Answered.Count() != 15_000 {
		t.Errorf("%d calls, %d answered", r.Due, r.Calls.Answered.Count())
	}
	// In the timeline the pause stands where it was, and the answers after it.
	pause, behind := r.Timeline.Intervals[10], r.Timeline.Intervals[11]
	if pause.Due != 500 || pause.Answered != 500 || pause.Came != 0 || behind.Came < 990 {
		t.Errorf("the pause: %+v, the second behind: %+v", pause, behind)
	}
	if r.MostUnderWay < 500 || r.MostUnderWay > 502 {
		t.Errorf("%d calls under way", r.MostUnderWay)
	}
}

// A server that never answers slows no arrival; its calls are open at the end, with their ages.
func TestSilentServerSlowsNobody(t *testing.T) {
	var sent atomic.Int64
	silent := clientFunc(func(ctx context.Context, _ Call) Answer {
		sent.Add(1)
		<-ctx.Done()
		return Answer{Code: 1}
	})
	r := run(t, Options{Rate: "1000", Duration: 2 * time.Second, Grace: time.Second}, silent)
	if sent.Load() != 2000 || r.Open.Count() != 2000 || r.Calls.Count() != 0 || r.Unsent.Ages.Count() != 0 {
		t.Errorf("%d sent, %d open, %d ended", sent.Load(), r.Open.Count(), r.Calls.Count())
	}
	if low, high := r.Open.At(0), r.Open.Max(); low < 999*time.Millisecond || low > 1010*time.Millisecond || high < 2990*time.Millisecond {
		t.Errorf("ages from %v to %v, want 1 s to 3 s", low, high)
	}
	if r.Latency().Count() != 2000 || r.FailedShare() != 1 || r.Came != 0 {
		t.Errorf("%d latencies, failed share %v", r.Latency().Count(), r.FailedShare())
	}
}

// A deadline runs from the intended start, and the client is told of it.
func TestDeadlineFromTheIntendedStart(t *testing.T) {
	honest := clientFunc(func(ctx context.Context, call Call) Answer {
		after(ctx, time.Until(call.Deadline))
		return Answer{Code: 4, Message: "deadline"}
	})
	r := run(t, Options{Rate: "100", Duration: 10 * time.Second, Timeout: 300 * time.Millisecond}, honest)
	if r.Calls.Codes[4] != 1000 || r.Calls.Failed.Max()-r.Calls.Failed.At(0) > time.Millisecond {
		t.Errorf("codes %v, failures from %v to %v", r.Calls.Codes, r.Calls.Failed.At(0), r.Calls.Failed.Max())
	}
	near(t, "failures in seconds", r.Calls.Failed.Max().Seconds(), 0.3, 0.002)
	if len(r.Failures) != 1 || r.Failures[0] != (Failure{Code: 4, Message: "deadline", Calls: 1000}) {
		t.Errorf("failures %v", r.Failures)
	}
}

// stuck is a waiter that once sleeps much longer than it should, as a generator that gets no CPU.
type stuck struct {
	at, length time.Duration
	slept      time.Duration
}

func (s *stuck) Sleep(d time.Duration) error {
	if s.slept += d; s.at > 0 && s.slept >= s.at {
		s.at, d = 0, d+s.length
	}
	return napper{}.Sleep(d)
}

// A generator that stands still sends late: the lag says so, latencies count from
// the intended start all the same, and calls whose deadline has passed are not sent. Their
// callers would have waited for their timeout, and no longer.
func TestLateGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(plan(t, Options{Rate: "1000", Duration: 15 * time.Second, Timeout: 300 * time.Millisecond}), takes(time.Millisecond))
		l.rest = &stuck{at: 5 * time.Second, length: time.Second}
		r, err := l.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		near(t, "late calls", float64(r.Unsent.Late), 700, 0.01)
		if r.Due != 15_000 || r.Unsent.Full != 0 || r.Unsent.Ages.At(0) < 299*time.Millisecond || r.Unsent.Ages.Max() > 301*time.Millisecond {
			t.Errorf("%d due; ages from %v to %v", r.Due, r.Unsent.Ages.At(0), r.Unsent.Ages.Max())
		}
		near(t, "the longest latency", r.Calls.Answered.Max().Seconds(), 0.3, 0.01)
		near(t, "the longest lag", r.Lag.Max().Seconds(), 1, 0.01)
		if r.Lag.Count() != r.Due {
			t.Errorf("%d lags of %d calls", r.Lag.Count(), r.Due)
		}
		if why := r.GeneratorLimits(0); why == "" {
			t.Error("a late generator is not told")
		}
	})
}

// Above the most calls under way calls are not sent. They grow old until the end,
// or their deadline.
func TestMostUnderWay(t *testing.T) {
	for _, timeout := range []time.Duration{0, 700 * time.Millisecond} {
		r := run(t, Options{Rate: "100", Duration: 10 * time.Second, Most: 10, Timeout: timeout}, takes(500*time.Millisecond))
		// Ten calls in half a second are 20 per second, of 100.
		near(t, "answered", float64(r.Calls.Answered.Count()), 200, 0.06)
		if r.Due != 1000 || r.Unsent.Full != 1000-r.Calls.Answered.Count() || r.MostUnderWay != 10 || r.Calls.Failed.Count() != 0 {
			t.Errorf("%d due, %d unsent, %d answered, %d under way", r.Due, r.Unsent.Full, r.Calls.Answered.Count(), r.MostUnderWay)
		}
		oldest := 10200 * time.Millisecond // from 0.1 s to the last answer
		if timeout > 0 {
			oldest = timeout
		}
		near(t, "the oldest", r.Unsent.Ages.Max().Seconds(), oldest.Seconds(), 0.02)
		if r.Lag.Max() > 0 {
			t.Errorf("what was sent was %v late", r.Lag.Max())
		}
	}
}

// Goroutines are used again: as many as calls were under way, not one for each call.
func TestGoroutinesAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(plan(t, Options{Rate: "1000", Duration: 10 * time.Second}), takes(9500*time.Microsecond))
		l.rest = napper{}
		calls, cancel := context.WithCancel(t.Context())
		defer cancel()
		now := time.Now()
		l.began.Store(&now)
		p := newPacer(calls, l)
		if _, err := p.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.calls.Wait()
		if p.workers < 10 || p.workers > 11 {
			t.Errorf("%d goroutines for 10 calls at a time", p.workers)
		}
	})
}

func TestWarmupIsNotCounted(t *testing.T) {
	var n atomic.Int64
	cold := clientFunc(func(ctx context.Context, _ Call) Answer {
		if n.Add(1) <= 50 {
			return Answer{Code: 14, Message: "not yet"}
		}
		return after(ctx, 100*time.Millisecond)
	})
	r := run(t, Options{Rate: "100", Duration: 5 * time.Second, Warmup: time.Second}, cold)
	if r.Due != 500 || r.Calls.Answered.Count() != 500 || r.Calls.Failed.Count() != 0 || len(r.Failures) != 0 {
		t.Errorf("%d due, %d answered, failures %v", r.Due, r.Calls.Answered.Count(), r.Failures)
	}
	if (r.Warmup != Warmup{Calls: 100, Failed: 50}) || r.Lag.Count() != 500 || r.Counted != 5*time.Second {
		t.Errorf("warm-up %+v, %d lags, %v", r.Warmup, r.Lag.Count(), r.Counted)
	}
	// The ten answers of the warm-up that came in the counted part make up for the
	// ten of the counted part that came behind it.
	if r.Came != 500 || r.PerSecond() != 100 {
		t.Errorf("%d answers came, %v per second", r.Came, r.PerSecond())
	}
}

// Who cancels keeps what was measured until then.
func TestCutShort(t *testing.T) {
	for _, o := range []Options{
		{Rate: "100", Duration: time.Minute, Warmup: time.Second},
		{Callers: 10, Duration: time.Minute, Warmup: time.Second},
		{Callers: 10, Duration: time.Minute, Warmup: time.Second, Think: time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second+5*time.Millisecond)
			defer cancel()
			began := time.Now()
			r := runIn(ctx, t, plan(t, o), takes(100*time.Millisecond))
			if took := time.Since(began); took > 5200*time.Millisecond {
				t.Errorf("%+v: it ended after %v", o, took)
			}
			if !r.Cut || r.Counted < 4*time.Second || r.Counted > 4030*time.Millisecond || r.Open.Count() != 0 {
				t.Errorf("%+v: cut short %v, counted %v, %d open", o, r.Cut, r.Counted, r.Open.Count())
			}
			if o.Think == 0 {
				near(t, "answers", float64(r.Calls.Answered.Count()), 400, 0.03)
				near(t, "per second", r.PerSecond(), 100, 0.03)
			}
		})
	}
}

// With a grace that is too short the calls that are left are open.
func TestCutShortWithOpenCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		r := runIn(ctx, t, plan(t, Options{Rate: "10", Duration: time.Minute, Grace: 500 * time.Millisecond}), takes(time.Hour))
		if !r.Cut || r.Open.Count() != r.Due || r.Due < 20 || r.Due > 21 {
			t.Errorf("%d due, %d open", r.Due, r.Open.Count())
		}
		near(t, "the oldest", r.Open.Max().Seconds(), 2.5, 0.01)
	})
}

// Two arms with the same seed get the same calls at the same moments, however slow they are.
func TestTwoArmsGetTheSameArrivals(t *testing.T) {
	o := Options{Rate: "50..200", Arrivals: "poisson", Duration: 10 * time.Second, Warmup: time.Second, Seed: 4}
	seen := func(d time.Duration) map[uint64]time.Time { // each bubble begins at the same time
		c := number(clientFunc(func(ctx context.Context, _ Call) Answer {
			return after(ctx, time.Duration(rand.ExpFloat64()*float64(d)))
		}))
		run(t, o, c)
		return c.due
	}
	fast, slow := seen(time.Millisecond), seen(time.Second)
	if len(fast) < 1000 || len(fast) != len(slow) {
		t.Fatalf("%d and %d calls", len(fast), len(slow))
	}
	for n, due := range fast {
		if !slow[n].Equal(due) {
			t.Fatalf("call %d is due at %v and at %v", n, due, slow[n])
		}
	}
}

// In real time, with the real timer.
func TestRealTime(t *testing.T) {
	l := New(plan(t, Options{Rate: "2000", Duration: 200 * time.Millisecond}), clientFunc(func(context.Context, Call) Answer { return Answer{} }))
	r, err := l.Run(t.Context())
	if err != nil || r.Due != 400 || r.Calls.Answered.Count() != 400 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := l.Run(t.Context()); err == nil {
		t.Error("a load ran twice")
	}
}
