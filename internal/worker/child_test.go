package worker

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/process"
	"github.com/cabrank/cabrank/internal/testkit"
)

// R19: strangers in a row are counted; R6: what a stopped process does not answer says
// nothing.
func TestLifeHears(t *testing.T) {
	now := time.Now()
	stranger := finding{taken: true}
	var shared child
	for _, f := range []finding{stranger, stranger, failed("nobody listens"), stranger, stranger} {
		shared.hear(f, now)
	}
	testkit.Want(t, shared.taken == 2, "%d strangers in a row, want 2", shared.taken)
	var l child
	l.hear(finding{Answer: health.Answer{Said: health.Serving}, owners: []int{7}}, now)
	testkit.Want(t, l.judge.Serving && !l.waiting && l.readyAt.Equal(now) && len(l.watched) == 1, "serves: %+v", l)
	l.stopped = true
	for range 5 {
		l.hear(finding{Answer: health.Answer{Asked: now}}, now)
	}
	testkit.Want(t, l.judge.Serving && l.judge.Verdict() == health.OK, "questions to a stopped process counted against it")
}

func TestProcessStates(t *testing.T) {
	ready := time.Now()
	var silent, turning health.Judge
	silent.Hear(health.Answer{Asked: ready}, ready)
	turning.Look(Work{TurnsAway: true}, ready, ready)
	for _, test := range []struct {
		child child
		want  State
	}{
		{child{}, CrashLoop},
		{child{readyAt: ready, up: true}, Ready},
		{child{readyAt: ready, up: true, judge: silent}, Suspect},
		{child{readyAt: ready, up: true, judge: turning}, Suspect},
		{child{readyAt: ready, judge: silent}, NotServing},
		{child{readyAt: ready}, NotServing},
		{child{readyAt: ready, stopped: true}, Stopped},
		{child{stopped: true}, Stopped},
	} {
		testkit.Equal(t, test.child.state(CrashLoop), test.want, "%+v", test.child)
	}
	l := child{readyAt: ready}
	testkit.Equal(t, l.served(ready.Add(time.Minute)), time.Minute, "served")
	testkit.Equal(t, (&child{}).served(ready), 0, "never ready: served")
}

// R6: the time in which this process did not run counts neither for a boot nor for a
// silence; the short pauses of a busy machine do.
func TestSuspendedTimeTellsNothing(t *testing.T) {
	start := time.Now()
	l := child{looked: start, booted: start, stoppedAt: start, cpuWatch: cpuWatch{since: start, served: 7}}
	l.judge.Hear(health.Answer{Asked: start}, start)
	judge := l.judge
	testkit.Want(t, !l.wasSuspended(start.Add(suspendedAfter-1)) && l.booted.Equal(start) && l.judge == judge,
		"a short pause changes something: %+v", l)
	resumed := l.looked.Add(time.Minute)
	testkit.Want(t, l.wasSuspended(resumed), "a minute without a look is not noticed")
	if want := start.Add(time.Minute); !l.booted.Equal(want) || !l.stoppedAt.Equal(want) {
		t.Errorf("booted %v, stopped %v after the start, want a minute", l.booted.Sub(start), l.stoppedAt.Sub(start))
	}
	if judge.Excuse(resumed); l.judge != judge || l.cpuWatch != (cpuWatch{served: 7}) {
		t.Errorf("what was seen before still counts: %+v, %+v", l.judge, l.cpuWatch)
	}
	testkit.Want(t, !l.wasSuspended(resumed.Add(tickEvery)), "the next look, in time, is called late")
}

// A reload that sets hang_timeout to 0, or back, counts for workers that run: with 0 an
// idle one that is deaf to three questions gets no calls, else it is replaced.
func TestHangTimeoutFollowsAReload(t *testing.T) {
	o := validOptions()
	s, err := New(o)
	testkit.Must(t, err)
	now := time.Now()
	l := &child{prober: &prober{}, exited: make(chan struct{}), waiting: true, booted: now, looked: now}
	for _, timeout := range []time.Duration{30 * time.Second, 0, 30 * time.Second} {
		o.HangTimeout = timeout
		s.Configure(o)
		s.workers[0].look(l)
		testkit.Want(t, l.judge.Timeout == timeout, "hang_timeout %v: judged by %v", timeout, l.judge.Timeout)
	}
}

// The liveness probe fails only when the goroutine of a worker is silent.
func TestAliveNeedsBeats(t *testing.T) {
	s, err := New(validOptions())
	testkit.Must(t, err)
	s.began = time.Now().Add(-time.Hour)
	s.workers[0].showBeat()
	testkit.Want(t, s.Alive(), "not alive after a beat")
	s.workers[1].beat.Store(int64(time.Hour - stuckAfter - time.Second))
	testkit.Want(t, !s.Alive(), "alive though a worker's goroutine is silent")
	s.workers[1].beat.Store(noBeat)
	testkit.Want(t, s.Alive(), "not alive though the goroutine has ended")
	s.beat.Store(int64(time.Hour - stuckAfter - time.Second))
	testkit.Want(t, !s.Alive(), "alive although the foreman has been silent for too long")
}

// Why a process was killed stays: what is seen of it while it dies, a socket that has
// left its group, say, is no reason.
func TestDyingProcessSaysNothing(t *testing.T) {
	l := &child{waiting: true}
	l.hear(failed("it speaks TLS"), time.Now())
	l.killed, l.killCause = true, CauseBootTimeout
	stranger := failed(process.ErrStranger.Error())
	stranger.taken = true
	l.hear(stranger, time.Now())
	testkit.Equal(t, l.how(nil), "not ready: it speaks TLS", "how it is")
}

// A kill that the control group has counted just then is the end of one worker, and of no
// other; an old one is nobody's.
func TestOutOfMemoryIsNamed(t *testing.T) {
	now, count, told := time.Unix(0, 0), int64(7), true
	o := &oomWatch{count: func() (int64, bool) { return count, told }}
	pass := func(d time.Duration) {
		now = now.Add(d)
		o.look(now)
	}
	want := func(when string, yes, known bool) {
		t.Helper()
		oom, sure := o.killed()
		testkit.Want(t, oom == yes && sure == known, "%s: out of memory %v, known %v", when, oom, sure)
	}
	pass(0)
	want("at the start, of kills before it", false, true)
	count++
	pass(oomEvery / 2)
	want("just counted", true, true)
	want("another worker then, which somebody else has killed", false, true)
	count += 2
	pass(oomEvery) // counted before the end is seen
	want("one of two", true, true)
	want("two of two", true, true)
	want("one more than were counted", false, true)
	count++ // of a process that is none of ours
	pass(oomEvery)
	pass(oomEvery)
	pass(oomEvery)
	want("long after a kill elsewhere", false, true)
	told = false
	want("a group that does not tell", false, false)
}
