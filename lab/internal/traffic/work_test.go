package traffic

import (
	"context"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Twenty callers share fifty calls of a second: three rounds of it, the last of ten.
func TestGivenNumberOfCalls(t *testing.T) {
	c := number(clientFunc(func(ctx context.Context, _ Call) Answer {
		answer := after(ctx, time.Second)
		answer.Workers = Shares{"a": 3, "b": 1}
		return answer
	}))
	r := run(t, Options{Callers: 20, Calls: 50, Duration: time.Hour}, c)
	testkit.Want(t, r.Whole() && !r.Cut && r.Due == 50 && r.Calls.Answered.Count() == 50 && r.MostUnderWay == 20,
		"whole %v, cut %v, %d due, %d answered, %d under way", r.Whole(), r.Cut, r.Due, r.Calls.Answered.Count(), r.MostUnderWay)
	testkit.Want(t, r.Counted == 3*time.Second, "it took %v, want 3s", r.Counted)
	testkit.Want(t, r.Workers["a"] == 150 && r.Workers["b"] == 50, "workers: %v", r.Workers)
	testkit.Want(t, len(c.due) == 50 && c.more == 0 && !c.due[49].IsZero(), "%d numbers, %d of them again", len(c.due), c.more)
}

// What is not made within the time is not in it, and the record says so.
func TestGivenNumberOfCallsTakesTooLong(t *testing.T) {
	r := run(t, Options{Callers: 1, Calls: 50, Duration: 10 * time.Second}, takes(time.Second))
	testkit.Want(t, !r.Whole() && r.Due == 10 && r.Work == 50, "whole %v, %d of %d calls", r.Whole(), r.Due, r.Work)
}

// The parts of a plan have all its numbers, each once.
func TestGivenNumberOfCallsInParts(t *testing.T) {
	c := number(takes(0))
	sum := inParts(t, Options{Callers: 4, Calls: 10, Duration: time.Minute}, c)
	testkit.Want(t, len(c.due) == 10 && c.more == 0 && sum.Whole() && !sum.Cut,
		"%d numbers, %d of them again, whole %v, cut %v", len(c.due), c.more, sum.Whole(), sum.Cut)
}
