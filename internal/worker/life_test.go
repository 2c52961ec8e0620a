package worker

import (
	"strings"
	"testing"
	"time"
)

// R6: NOT_SERVING counts at once, silence after three checks in a row, busy and
// a stopped process never.
func TestLifeHears(t *testing.T) {
	for _, test := range []struct {
		name  string
		heard []finding
		want  bool
	}{
		{"nothing", nil, false},
		{"failures at boot", []finding{failed, failed, failed, failed, serving}, true},
		{"two failures", []finding{serving, failed, failed}, true},
		{"three failures", []finding{serving, failed, failed, failed}, false},
		{"failures with a busy one between", []finding{serving, failed, failed, busy, failed, failed}, true},
		{"failures with a good one between", []finding{serving, failed, failed, serving, failed}, true},
		{"back after failures", []finding{serving, failed, failed, failed, serving}, true},
		{"busy does not bring back", []finding{serving, failed, failed, failed, busy}, false},
		{"not serving", []finding{serving, notServing}, false},
		{"back", []finding{serving, notServing, serving}, true},
		{"busy for ever", []finding{serving, busy, busy, busy, busy, busy}, true},
	} {
		l := life{patient: true}
		for _, f := range test.heard {
			l.hear(verdict{finding: f}, time.Now())
		}
		if l.serving != test.want {
			t.Errorf("%s: serving %v, want %v", test.name, l.serving, test.want)
		}
	}
	var shared life
	for _, f := range []finding{taken, taken, failed, taken, taken} {
		shared.hear(verdict{finding: f}, time.Now())
	}
	if shared.taken != 2 {
		t.Errorf("%d strangers in a row, want 2", shared.taken)
	}
	l := life{stopped: true, serving: true, patient: true}
	for range 5 {
		l.hear(verdict{finding: failed}, time.Now())
	}
	if !l.serving || l.suspect || l.missed > 0 {
		t.Error("checks of a stopped process counted against it")
	}
}

// R6: suspect is who does not answer at all while idle, or while calls there
// should long be over; saturation is never sickness.
func TestLifeSuspects(t *testing.T) {
	good := verdict{finding: serving, answered: true}
	missed := verdict{finding: failed}
	fault := verdict{finding: failed, answered: true}
	refused := verdict{finding: busy, answered: true}
	occupied := verdict{finding: busy}
	doubtful := verdict{finding: busy, doubted: true}
	refusedInDoubt := verdict{finding: busy, answered: true, doubted: true}
	for _, test := range []struct {
		name    string
		heard   []verdict
		suspect bool
		missed  int
		serving bool
	}{
		{"at boot", []verdict{missed, missed, missed, missed}, false, 0, false},
		{"just ready", []verdict{good}, false, 0, true},
		{"idle and silent", []verdict{good, missed}, true, 1, true},
		{"idle and silent three times", []verdict{good, missed, missed, missed}, true, 3, true},
		{"answers again", []verdict{good, missed, missed, good}, false, 0, true},
		{"answers with a fault", []verdict{good, fault, fault}, false, 0, true},
		{"answers with faults", []verdict{good, fault, fault, fault}, false, 0, false},
		{"a fault is an answer", []verdict{good, missed, fault, missed}, true, 1, true},
		{"all threads busy, health refused", []verdict{good, refused, refused, refused, refused}, false, 0, true},
		{"all threads busy, health waits", []verdict{good, occupied, occupied, occupied, occupied}, false, 0, true},
		{"calls should long be over, no answer", []verdict{good, doubtful}, true, 0, true},
		{"calls should long be over, refused", []verdict{good, refusedInDoubt}, false, 0, true},
		{"calls should long be over, a thread is free", []verdict{good, doubtful, good}, false, 0, true},
		{"calls came after a missed check", []verdict{good, missed, missed, occupied}, true, 0, true},
	} {
		l := life{waiting: true}
		for _, v := range test.heard {
			l.hear(v, time.Now())
		}
		if l.suspect != test.suspect || l.missed != test.missed || l.serving != test.serving {
			t.Errorf("%s: suspect %v, %d missed, serving %v; want %v, %d, %v", test.name,
				l.suspect, l.missed, l.serving, test.suspect, test.missed, test.serving)
		}
	}
}

// R6: the first byte ends a suspicion, an older one does not.
func TestLifeSpeaks(t *testing.T) {
	asked := time.Now()
	l := life{serving: true}
	l.hear(verdict{finding: failed, asked: asked}, asked.Add(time.Second))
	l.speak(time.Time{})
	l.speak(asked)
	if !l.suspect {
		t.Error("not suspect any more, but nothing has come")
	}
	l.speak(asked.Add(time.Millisecond))
	if l.suspect || l.missed > 0 {
		t.Errorf("suspect %v, %d missed after a byte", l.suspect, l.missed)
	}
}

func TestLifeStates(t *testing.T) {
	ready := time.Now()
	for _, test := range []struct {
		life life
		want State
	}{
		{life{}, CrashLoop},
		{life{readyAt: ready, up: true}, Ready},
		{life{readyAt: ready, up: true, suspect: true}, Suspect},
		{life{readyAt: ready, up: true, turnsAway: true}, Suspect},
		{life{readyAt: ready, suspect: true}, NotServing},
		{life{readyAt: ready}, NotServing},
		{life{readyAt: ready, stopped: true}, Stopped},
		{life{stopped: true}, Stopped},
	} {
		if got := test.life.state(CrashLoop); got != test.want {
			t.Errorf("%+v: got %v, want %v", test.life, got, test.want)
		}
	}
	l := life{readyAt: ready}
	if got := l.served(ready.Add(time.Minute)); got != time.Minute {
		t.Errorf("served %v", got)
	}
	if got := (&life{}).served(ready); got != 0 {
		t.Errorf("never ready: served %v", got)
	}
}

// R6: the time in which this process did not run counts neither for a boot nor for a
// silence; the short pauses of a busy machine do.
func TestSuspendedTimeTellsNothing(t *testing.T) {
	start := time.Now()
	l := life{looked: start, booted: start, stoppedAt: start, missed: 2, hang: hang{deaf: start}, burn: burn{since: start, served: 7}}
	if l.wasSuspended(start.Add(suspendedAfter-1)) || !l.booted.Equal(start) || l.missed != 2 {
		t.Errorf("a short pause changes something: %+v", l)
	}
	resumed := l.looked.Add(time.Minute)
	if !l.wasSuspended(resumed) {
		t.Error("a minute without a look is not noticed")
	}
	if want := start.Add(time.Minute); !l.booted.Equal(want) || !l.stoppedAt.Equal(want) {
		t.Errorf("booted %v, stopped %v after the start, want a minute", l.booted.Sub(start), l.stoppedAt.Sub(start))
	}
	if l.missed != 0 || l.hang != (hang{excused: resumed}) || l.burn != (burn{served: 7}) {
		t.Errorf("what was seen before still counts: %d missed, %+v, %+v", l.missed, l.hang, l.burn)
	}
	if l.wasSuspended(resumed.Add(tickEvery)) {
		t.Error("the next look, in time, is called late")
	}
}

// A reload that sets hang_timeout to 0, or back, counts for workers that run: with 0 an
// idle one that is deaf to three questions gets no calls, else it is replaced.
func TestHangTimeoutFollowsAReload(t *testing.T) {
	o := validOptions()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	l := &life{prober: &prober{}, exited: make(chan struct{}), waiting: true, booted: now, looked: now}
	for _, timeout := range []time.Duration{30 * time.Second, 0, 30 * time.Second} {
		o.HangTimeout = timeout
		if err := s.Configure(o); err != nil {
			t.Fatal(err)
		}
		s.workers[0].look(l)
		if want := timeout == 0; l.patient != want {
			t.Errorf("hang_timeout %v: patient %v, want %v", timeout, l.patient, want)
		}
	}
}

// R18: the list of the keeper ends as it was told, whatever else is in it.
func TestKeeperReadsItsList(t *testing.T) {
	got := readGroups(strings.NewReader("add 10\nadd 11\ndel 10\n\nhello\nadd x\ndel 99\nadd 12"))
	if len(got) != 2 {
		t.Errorf("groups %v, want 11 and 12", got)
	}
	for _, group := range []int{11, 12} {
		if _, listed := got[group]; !listed {
			t.Errorf("group %d is missing", group)
		}
	}
}

// The liveness probe fails only when the goroutine of a worker is silent.
func TestAliveNeedsBeats(t *testing.T) {
	s, err := New(validOptions())
	if err != nil {
		t.Fatal(err)
	}
	s.began = time.Now().Add(-time.Hour)
	s.workers[0].showBeat()
	if !s.Alive() {
		t.Error("not alive after a beat")
	}
	s.workers[1].beat.Store(int64(time.Hour - stuckAfter - time.Second))
	if s.Alive() {
		t.Error("alive though a worker's goroutine is silent")
	}
	s.workers[1].beat.Store(noBeat)
	if !s.Alive() {
		t.Error("not alive though the goroutine has ended")
	}
	s.beat.Store(int64(time.Hour - stuckAfter - time.Second))
	if s.Alive() {
		t.Error("alive although the foreman has been silent for too long")
	}
}

// Why a process was killed stays: what is seen of it while it dies, a socket that has
// left its group, say, is no reason.
func TestDyingProcessSaysNothing(t *testing.T) {
	l := &life{waiting: true}
	l.hear(verdict{finding: failed, reason: "it speaks TLS"}, time.Now())
	l.doomed, l.doom = true, CauseBootTimeout
	l.hear(verdict{finding: taken, reason: errStranger.Error()}, time.Now())
	if got := l.how(nil); got != "not ready: it speaks TLS" {
		t.Error(got)
	}
}
