package rank

import (
	"testing"
	"time"
)

// What a handler passes on in the words of a refusal takes no slot away for long:
// once a worker with nothing else to do has said so a few times it teaches nothing
// any more, for this method, and what it has taught is taken back. The refusals of
// other methods count.
func TestOwnAnswersTeachNothing(t *testing.T) {
	r, e := newRank(t, 100, 8)
	r.SetRefuses(e[0], true)
	nested, plain := r.Method("/test.Nested/Do"), r.Method("/test.Plain/Do")
	call := newCaller(0)
	call.Request.Method = nested
	now := time.Second
	e[0].shrink.left, e[0].lateness.by = 1, 4*ms
	e[0].relimit()
	r.refresh(e[0])
	for range ownAfter {
		if e[0].shrink.left != 1 {
			t.Fatal("slots came back too soon")
		}
		call.acquire(t, r, now, Granted)
		call.release(r, MaybeRefused, now+ms)
		now += 100 * ms
		tick(r, now)
	}
	if left, by := e[0].shrink.left, e[0].lateness.by; left != 8 || by != 0 {
		t.Errorf("%d slots of 8, which wait for %v", left, by)
	}
	busy := make([]*caller, 7)
	for i := range busy {
		busy[i] = newCaller(now)
		busy[i].acquire(t, r, now, Granted)
	}
	storm := func(m *Method, times int) {
		for range times {
			if e[0].shrink.left < 8 {
				return
			}
			call.Request.Method = m
			call.acquire(t, r, now, Granted)
			now += 30 * ms
			call.release(r, MaybeRefused, now)
			tick(r, now)
			now += 60 * ms
			tick(r, now)
		}
	}
	storm(nested, 50)
	if left := e[0].shrink.left; left != 8 {
		t.Errorf("%d slots of 8 after answers of the method's own", left)
	}
	for _, c := range busy[3:] {
		c.release(r, OK, now)
	}
	now += time.Second
	tick(r, now)
	storm(plain, 50)
	if left := e[0].shrink.left; left == 8 {
		t.Error("refusals of another method take no slot")
	}
}
