package traffic

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Twenty callers share fifty calls of a second: three rounds of it, the last of ten.
func TestGivenNumberOfCalls(t *testing.T) {
	var mu sync.Mutex
	seen := map[uint64]int{}
	o := Options{Callers: 20, Calls: 50, Duration: time.Hour}
	r := run(t, o, clientFunc(func(ctx context.Context, call Call) Answer {
		mu.Lock()
		seen[call.Number]++
		mu.Unlock()
		answer := after(ctx, time.Second)
		answer.Workers = Shares{"a": 3, "b": 1}
		return answer
	}))
	if !r.Whole() || r.Cut || r.Due != 50 || r.Calls.Answered.Count() != 50 || r.MostUnderWay != 20 {
		t.Errorf("whole %v, cut %v, %d due, %d answered, %d under way", r.Whole(), r.Cut, r.Due, r.Calls.Answered.Count(), r.MostUnderWay)
	}
	if r.Counted != 3*time.Second {
		t.Errorf("it took %v, want 3s", r.Counted)
	}
	if r.Workers["a"] != 150 || r.Workers["b"] != 50 {
		t.Errorf("workers: %v", r.Workers)
	}
	for number := range uint64(50) {
		if seen[number] != 1 {
			t.Errorf("number %d: %d calls", number, seen[number])
		}
	}
}

// What is not made within the time is not in it, and the record says so.
func TestGivenNumberOfCallsTakesTooLong(t *testing.T) {
	r := run(t, Options{Callers: 1, Calls: 50, Duration: 10 * time.Second}, takes(time.Second))
	if r.Whole() || r.Due != 10 || r.Work != 50 {
		t.Errorf("whole %v, %d of %d calls", r.Whole(), r.Due, r.Work)
	}
}

// The parts of a plan have all its numbers, each once.
func TestGivenNumberOfCallsInParts(t *testing.T) {
	var mu sync.Mutex
	seen := map[uint64]int{}
	var sum *Record
	for part := range 3 {
		p, err := Options{Callers: 4, Calls: 10, Duration: time.Minute}.Plan()
		if err != nil {
			t.Fatal(err)
		}
		p.Part, p.Parts = part, 3
		client := clientFunc(func(_ context.Context, call Call) Answer {
			mu.Lock()
			defer mu.Unlock()
			seen[call.Number]++
			return Answer{}
		})
		var r *Record
		synctest.Test(t, func(t *testing.T) { r = runIn(t.Context(), t, p, client) })
		if sum == nil {
			sum = r
		} else if err := sum.Merge(r); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 10 || !sum.Whole() || sum.Cut {
		t.Errorf("%d numbers, whole %v, cut %v", len(seen), sum.Whole(), sum.Cut)
	}
}

// A number of calls is for callers, and without warm-up.
func TestGivenNumberOfCallsIsForCallers(t *testing.T) {
	for _, o := range []Options{
		{Rate: "5", Calls: 5, Duration: time.Second},
		{Callers: 2, Calls: -1, Duration: time.Second},
		{Callers: 2, Calls: 5, Duration: time.Second, Warmup: time.Second},
	} {
		if _, err := o.Plan(); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
