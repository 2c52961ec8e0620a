package traffic

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Twenty callers with calls of 150 ms and pauses of 100 ms: each makes four calls a second.
func TestCallersThink(t *testing.T) {
	r := run(t, Options{Callers: 20, Think: 100 * time.Millisecond, Duration: 10 * time.Second}, takes(150*time.Millisecond))
	if r.Loop != ClosedLoop || r.Due != 800 || r.Calls.Answered.Count() != 800 || r.MostUnderWay != 20 {
		t.Errorf("%s loop, %d due, %d answered, %d under way", r.Loop, r.Due, r.Calls.Answered.Count(), r.MostUnderWay)
	}
	if r.Calls.Answered.Max() > 151*time.Millisecond || r.Lag.Count() != 0 {
		t.Errorf("latencies up to %v, %d lags", r.Calls.Answered.Max(), r.Lag.Count())
	}
	for i, interval := range r.Timeline.Intervals {
		if interval.Due != 80 {
			t.Errorf("second %d: %d calls", i, interval.Due)
		}
	}
}

// In a closed loop a pause of the server hides itself: this is why its results are
// not ranked. Of 20 callers each waits once.
func TestClosedLoopLeavesOutThePause(t *testing.T) {
	r := run(t, Options{Callers: 1, Think: time.Millisecond, Duration: 30 * time.Second}, paused())
	if p99 := r.Latency().Quantile(0.99); p99.TooFew || p99.Value > 2*time.Millisecond {
		t.Errorf("p99 is %v", p99)
	}
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
	if most.Load() != 60 {
		t.Errorf("at most %d callers, want 60", most.Load())
	}
	for i, want := range []float64{5, 10, 15, 20, 25, 30, 32.5, 35, 37.5, 40, 42.5, 45, 47.5, 50, 52.5, 55, 57.5, 60, 45, 30, 15} {
		// A caller that is no longer wanted ends its call of a second first.
		if got := float64(levels[i]); got < want-1 || got > want+4 {
			t.Errorf("after %d s: %v callers, want %v", 5*(i+1), got, want)
		}
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
		if interval.Due != want {
			t.Errorf("second %d: %d calls, want %d", i, interval.Due, want)
		}
	}
}

// Stages that begin with nobody warm up with one caller.
func TestStagesWarmUp(t *testing.T) {
	r := run(t, Options{Stages: "10s:10", Warmup: time.Second}, takes(100*time.Millisecond))
	if r.Warmup.Calls != 10 || r.Counted != 10*time.Second {
		t.Errorf("warm-up %+v, counted %v", r.Warmup, r.Counted)
	}
}

// The parts of a closed loop have all its callers and no number twice.
func TestClosedParts(t *testing.T) {
	c := number(takes(100 * time.Millisecond))
	inParts(t, Options{Callers: 10, Duration: time.Second}, c)
	if len(c.due) != 100 || c.more > 0 {
		t.Errorf("%d calls, want 100; %d of a number that there was", len(c.due), c.more)
	}
}

// A deadline counts in a closed loop, too.
func TestClosedDeadline(t *testing.T) {
	r := run(t, Options{Callers: 2, Duration: time.Second, Timeout: 100 * time.Millisecond}, clientFunc(func(ctx context.Context, call Call) Answer {
		after(ctx, time.Until(call.Deadline))
		return Answer{Code: 4}
	}))
	if r.Calls.Codes[4] != 20 || r.Calls.Failed.Max() > 101*time.Millisecond {
		t.Errorf("codes %v, up to %v", r.Calls.Codes, r.Calls.Failed.Max())
	}
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
		if live.PerSecond != 100 {
			t.Errorf("%v answers per second", live.PerSecond)
		}
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
		if r := run(t, o, refuses); r.Due < c.calls || r.Due > c.calls+2 {
			t.Errorf("retry at once %v: %d calls, want about %d", c.retry, r.Due, c.calls)
		}
	}
}
