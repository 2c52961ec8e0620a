package traffic

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A server that stands still for 1 s of 30 s at a constant rate, and is quick
// otherwise: the calls due in the pause wait for the rest of it, so that their
// latencies are even over 0 to 1 s, and they are 1/30 of all. The share of all calls
// above x is (1 s − x)/30 s; it is 1 % at x = 0.70 s, which is p99.
func TestPausedServerGivesTheP99OfArithmetic(t *testing.T) {
	r := run(t, Options{Rate: "500", Duration: 30 * time.Second}, paused())
	p99 := r.Latency().Quantile(0.99)
	near(t, "p99 in seconds", p99.Value.Seconds(), 0.70, 0.05)
	testkit.Want(t, !p99.TooFew && r.Due == 15_000 && r.Calls.Answered.Count() == 15_000,
		"%d calls, %d answered", r.Due, r.Calls.Answered.Count())
	// In the timeline the pause stands where it was, and the answers after it.
	pause, behind := r.Timeline.Intervals[10], r.Timeline.Intervals[11]
	testkit.Want(t, pause.Due == 500 && pause.Answered == 500 && pause.Came == 0 && behind.Came >= 990,
		"the pause: %+v, the second behind: %+v", pause, behind)
	testkit.Want(t, r.MostUnderWay >= 500 && r.MostUnderWay <= 502, "%d calls under way", r.MostUnderWay)
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
	testkit.Want(t, sent.Load() == 2000 && r.Open.Count() == 2000 && r.Calls.Count() == 0 && r.Unsent.Ages.Count() == 0,
		"%d sent, %d open, %d ended", sent.Load(), r.Open.Count(), r.Calls.Count())
	if low, high := r.Open.At(0), r.Open.Max(); low < 999*time.Millisecond || low > 1010*time.Millisecond || high < 2990*time.Millisecond {
		t.Errorf("ages from %v to %v, want 1 s to 3 s", low, high)
	}
	testkit.Want(t, r.Latency().Count() == 2000 && r.FailedShare() == 1 && r.Came == 0,
		"%d latencies, failed share %v", r.Latency().Count(), r.FailedShare())
}

// A deadline runs from the intended start, and the client is told of it.
func TestDeadlineFromTheIntendedStart(t *testing.T) {
	honest := clientFunc(func(ctx context.Context, call Call) Answer {
		after(ctx, time.Until(call.Deadline))
		return Answer{Code: 4, Message: "deadline"}
	})
	r := run(t, Options{Rate: "100", Duration: 10 * time.Second, Timeout: 300 * time.Millisecond}, honest)
	testkit.Want(t, r.Calls.Codes[4] == 1000 && r.Calls.Failed.Max()-r.Calls.Failed.At(0) <= time.Millisecond,
		"codes %v, failures from %v to %v", r.Calls.Codes, r.Calls.Failed.At(0), r.Calls.Failed.Max())
	near(t, "failures in seconds", r.Calls.Failed.Max().Seconds(), 0.3, 0.002)
	testkit.Want(t, len(r.Failures) == 1 && r.Failures[0] == (Failure{Code: 4, Message: "deadline", Calls: 1000}),
		"failures %v", r.Failures)
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
		testkit.Must(t, err)
		near(t, "late calls", float64(r.Unsent.Late), 700, 0.01)
		if r.Due != 15_000 || r.Unsent.Full != 0 || r.Unsent.Ages.At(0) < 299*time.Millisecond || r.Unsent.Ages.Max() > 301*time.Millisecond {
			t.Errorf("%d due; ages from %v to %v", r.Due, r.Unsent.Ages.At(0), r.Unsent.Ages.Max())
		}
		near(t, "the longest latency", r.Calls.Answered.Max().Seconds(), 0.3, 0.01)
		near(t, "the longest lag", r.Lag.Max().Seconds(), 1, 0.01)
		testkit.Want(t, r.Lag.Count() == r.Due, "%d lags of %d calls", r.Lag.Count(), r.Due)
		testkit.Want(t, r.GeneratorLimits(0) != "", "a late generator is not told")
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
		testkit.Want(t, r.Lag.Max() == 0, "what was sent was %v late", r.Lag.Max())
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
		_, err := p.run(t.Context())
		testkit.Must(t, err)
		l.calls.Wait()
		testkit.Want(t, p.workers >= 10 && p.workers <= 11, "%d goroutines for 10 calls at a time", p.workers)
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
	testkit.Want(t, r.Due == 500 && r.Calls.Answered.Count() == 500 && r.Calls.Failed.Count() == 0 && len(r.Failures) == 0,
		"%d due, %d answered, failures %v", r.Due, r.Calls.Answered.Count(), r.Failures)
	if (r.Warmup != Warmup{Calls: 100, Failed: 50}) || r.Lag.Count() != 500 || r.Counted != 5*time.Second {
		t.Errorf("warm-up %+v, %d lags, %v", r.Warmup, r.Lag.Count(), r.Counted)
	}
	// The ten answers of the warm-up that came in the counted part make up for the
	// ten of the counted part that came behind it.
	testkit.Want(t, r.Came == 500 && r.PerSecond() == 100, "%d answers came, %v per second", r.Came, r.PerSecond())
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
			took := time.Since(began)
			testkit.Want(t, took <= 5200*time.Millisecond, "%+v: it ended after %v", o, took)
			testkit.Want(t, r.Cut && r.Counted >= 4*time.Second && r.Counted <= 4030*time.Millisecond && r.Open.Count() == 0,
				"%+v: cut short %v, counted %v, %d open", o, r.Cut, r.Counted, r.Open.Count())
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
		testkit.Want(t, r.Cut && r.Open.Count() == r.Due && r.Due >= 20 && r.Due <= 21, "%d due, %d open", r.Due, r.Open.Count())
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
	testkit.Need(t, len(fast) >= 1000 && len(fast) == len(slow), "%d and %d calls", len(fast), len(slow))
	for n, due := range fast {
		testkit.Need(t, slow[n].Equal(due), "call %d is due at %v and at %v", n, due, slow[n])
	}
}

// In real time, with the real timer.
func TestRealTime(t *testing.T) {
	l := New(plan(t, Options{Rate: "2000", Duration: 200 * time.Millisecond}), clientFunc(func(context.Context, Call) Answer { return Answer{} }))
	r, err := l.Run(t.Context())
	testkit.Need(t, err == nil && r.Due == 400 && r.Calls.Answered.Count() == 400, "%+v, %v", r, err)
	_, err = l.Run(t.Context())
	testkit.Want(t, err != nil, "a load ran twice")
}

// Twenty callers with calls of 150 ms and pauses of 100 ms: each makes four calls a second.
func TestCallersThink(t *testing.T) {
	r := run(t, Options{Callers: 20, Think: 100 * time.Millisecond, Duration: 10 * time.Second}, takes(150*time.Millisecond))
	testkit.Want(t, r.Loop == ClosedLoop && r.Due == 800 && r.Calls.Answered.Count() == 800 && r.MostUnderWay == 20,
		"%s loop, %d due, %d answered, %d under way", r.Loop, r.Due, r.Calls.Answered.Count(), r.MostUnderWay)
	testkit.Want(t, r.Calls.Answered.Max() <= 151*time.Millisecond && r.Lag.Count() == 0,
		"latencies up to %v, %d lags", r.Calls.Answered.Max(), r.Lag.Count())
	for i, interval := range r.Timeline.Intervals {
		testkit.Want(t, interval.Due == 80, "second %d: %d calls", i, interval.Due)
	}
}

// In a closed loop a pause of the server hides itself: this is why its results are
// not ranked. Of 20 callers each waits once.
func TestClosedLoopLeavesOutThePause(t *testing.T) {
	r := run(t, Options{Callers: 1, Think: time.Millisecond, Duration: 30 * time.Second}, paused())
	p99 := r.Latency().Quantile(0.99)
	testkit.Want(t, !p99.TooFew && p99.Value <= 2*time.Millisecond, "p99 is %v", p99)
}

// The number of callers follows the stages: up to 30 in 30 s, to 60 in a minute, down
// to none in 20 s. Their sum over time is 450 + 2,700 + 600 = 3,750 seconds of
// callers, of which each call takes one.
func TestStages(t *testing.T) {
	var under, most atomic.Int64
	var levels []int64
	synctest.Test(t, func(t *testing.T) {
		client := clientFunc(func(ctx context.Context, _ Call) Answer {
			most.Store(max(most.Load(), under.Add(1)))
			defer under.Add(-1)
			return after(ctx, time.Second)
		})
		go func() {
			<-time.After(250 * time.Millisecond) // no call ends at these moments
			for at := time.Duration(0); at < 110*time.Second; at += 5 * time.Second {
				<-time.After(5 * time.Second)
				levels = append(levels, under.Load())
			}
		}()
		r := runIn(t.Context(), t, plan(t, Options{Stages: "30s:30,1m:60,20s:0"}), client)
		near(t, "calls", float64(r.Calls.Answered.Count()), 3750, 0.02)
	})
	testkit.Want(t, most.Load() == 60, "at most %d callers, want 60", most.Load())
	for i, want := range []float64{5, 10, 15, 20, 25, 30, 32.5, 35, 37.5, 40, 42.5, 45, 47.5, 50, 52.5, 55, 57.5, 60, 45, 30, 15} {
		// A caller that is no longer wanted ends its call of a second first.
		got := float64(levels[i])
		testkit.Want(t, got >= want-1 && got <= want+4, "after %d s: %v callers, want %v", 5*(i+1), got, want)
	}
}

// A jump, and callers who come back.
func TestStagesJumpAndReturn(t *testing.T) {
	r := run(t, Options{Stages: "0s:10,10s:10,0s:0,10s:0,0s:10,10s:10"}, takes(100*time.Millisecond))
	for i, interval := range r.Timeline.Intervals {
		want := int64(100)
		if i >= 10 && i < 20 {
			want = 0
		}
		testkit.Want(t, interval.Due == want, "second %d: %d calls, want %d", i, interval.Due, want)
	}
}

// Stages that begin with nobody warm up with one caller.
func TestStagesWarmUp(t *testing.T) {
	r := run(t, Options{Stages: "10s:10", Warmup: time.Second}, takes(100*time.Millisecond))
	testkit.Want(t, r.Warmup.Calls == 10 && r.Counted == 10*time.Second, "warm-up %+v, counted %v", r.Warmup, r.Counted)
}

// The parts of a closed loop have all its callers and no number twice.
func TestClosedParts(t *testing.T) {
	c := number(takes(100 * time.Millisecond))
	inParts(t, Options{Callers: 10, Duration: time.Second}, c)
	testkit.Want(t, len(c.due) == 100 && c.more == 0, "%d calls, want 100; %d of a number that there was", len(c.due), c.more)
}

// A deadline counts in a closed loop, too.
func TestClosedDeadline(t *testing.T) {
	r := run(t, Options{Callers: 2, Duration: time.Second, Timeout: 100 * time.Millisecond}, clientFunc(func(ctx context.Context, call Call) Answer {
		after(ctx, time.Until(call.Deadline))
		return Answer{Code: 4}
	}))
	testkit.Want(t, r.Calls.Codes[4] == 20 && r.Calls.Failed.Max() <= 101*time.Millisecond,
		"codes %v, up to %v", r.Calls.Codes, r.Calls.Failed.Max())
}

// Live tells how it goes, before the load has begun as well.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Rate: "100", Duration: 10 * time.Second, Warmup: 2 * time.Second}
		if live := New(plan(t, o), nil).Live(); !live.Warmup || live.Elapsed != 0 || live.Length != 12*time.Second {
			t.Errorf("before: %+v", live)
		}
		l, ended := begun(t, o, takes(250*time.Millisecond))
		<-time.After(1005 * time.Millisecond) // no call begins or ends at this moment
		if live := l.Live(); !live.Warmup || live.Answered != 0 || live.UnderWay < 25 || live.PerSecond != 0 {
			t.Errorf("in the warm-up: %+v", live)
		}
		<-time.After(4500 * time.Millisecond)
		live := l.Live()
		if live.Warmup || live.PerSecond != 100 || live.Answered < 320 || live.Answered > 330 || live.UnderWay < 25 || live.Failed != 0 {
			t.Errorf("after 5.5 s: %+v", live)
		}
		near(t, "p99 in seconds", live.P99.Seconds(), 0.25, 0.07)
		ended()
		if live := l.Live(); live.Answered != 1000 || live.UnderWay != 0 {
			t.Errorf("behind: %+v", live)
		}
	})
}

// Live figures are those of the answers that came: of calls that take longer than an
// interval none is answered in the one in which it was due.
func TestLiveOfLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ended := begun(t, Options{Rate: "100", Duration: 10 * time.Second}, takes(3*time.Second))
		<-time.After(5505 * time.Millisecond)
		live := l.Live()
		near(t, "p50 in seconds", live.P50.Seconds(), 3, 0.07)
		near(t, "p99 in seconds", live.P99.Seconds(), 3, 0.07)
		testkit.Want(t, live.PerSecond == 100, "%v answers per second", live.PerSecond)
		ended()
	})
}

// Callers who were refused do not pause, if they are impatient.
func TestRetryAtOnce(t *testing.T) {
	refuses := clientFunc(func(ctx context.Context, call Call) Answer {
		a := after(ctx, 10*time.Millisecond)
		if call.Number%2 == 0 {
			a.Code = 8
		}
		return a
	})
	for _, c := range []struct {
		retry bool
		calls int64
	}{{false, 10}, {true, 18}} { // 1.01 s for each call; or 1.02 s for two
		o := Options{Callers: 1, Duration: 10 * time.Second, Think: time.Second - 10*time.Millisecond, RetryAtOnce: c.retry}
		r := run(t, o, refuses)
		testkit.Want(t, r.Due >= c.calls && r.Due <= c.calls+2, "retry at once %v: %d calls, want about %d", c.retry, r.Due, c.calls)
	}
}
