package traffic

import (
	"context"
	"testing"
	"time"
)

// instant answers at once.
type instant struct{}

func (instant) Call(context.Context, Call) Answer { return Answer{Worker: "one"} }

// loop is a load with what a call needs.
func loop(t testing.TB) (*Load, *pacer, func()) {
	t.Helper()
	l := New(plan(t, Options{Rate: "1000", Duration: time.Hour, Timeout: time.Hour}), instant{})
	now := time.Now()
	l.began.Store(&now)
	p := newPacer(context.Background(), l)
	return l, p, func() { close(p.jobs); l.calls.Wait() }
}

// The generator allocates nothing for a call.
func TestCallsAllocateNothing(t *testing.T) {
	l, p, end := loop(t)
	defer end()
	s := newSchedule(l.plan)
	a, _ := s.draw()
	p.start(a)
	if n := testing.AllocsPerRun(1000, func() {
		a, _ := s.draw()
		l.enter()
		a.Due = 0
		p.call(l.tallies[0], a)
	}); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
}

// BenchmarkCall is what the generator does for a call beside the client: draw, hand
// over to a goroutine, record.
func BenchmarkCall(b *testing.B) {
	l, p, end := loop(b)
	defer end()
	s := newSchedule(l.plan)
	b.ReportAllocs()
	for b.Loop() {
		a, ok := s.draw()
		if !ok {
			s = newSchedule(l.plan)
			continue
		}
		a.Due = 0
		p.start(a)
	}
}
