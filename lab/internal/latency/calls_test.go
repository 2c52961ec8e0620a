package latency_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/latency"
)

// Failures do not touch the answers, and every one has its code.
func TestFailuresAreKeptApart(t *testing.T) {
	calls := latency.NewCalls()
	calls.Answer(10 * time.Millisecond)
	calls.Answer(20 * time.Millisecond)
	for _, code := range []uint32{4, 14, 14, 0, 17, 1 << 31} {
		calls.Fail(code, time.Second)
	}
	want := map[uint32]int64{2: 3, 4: 1, 14: 2}
	if !maps.Equal(calls.Codes, want) {
		t.Errorf("codes %v, want %v", calls.Codes, want)
	}
	answered, failed := calls.Answered, calls.Failed
	if calls.Count() != 8 || answered.Count() != 2 || failed.Count() != 6 {
		t.Errorf("%d calls, %d answered, %d failed; want 8, 2, 6", calls.Count(), answered.Count(), failed.Count())
	}
	if answered.Max() > 21*time.Millisecond || failed.At(0) < 999*time.Millisecond {
		t.Errorf("answers up to %v, failures from %v", answered.Max(), failed.At(0))
	}
}

func TestCallsMerge(t *testing.T) {
	a, b := latency.NewCalls(), latency.NewCalls()
	a.Answer(time.Millisecond)
	a.Fail(14, time.Second)
	b.Fail(14, time.Second)
	b.Fail(8, time.Second)
	a.Merge(b)
	if want := map[uint32]int64{8: 1, 14: 2}; a.Count() != 4 || !maps.Equal(a.Codes, want) {
		t.Errorf("%d calls, codes %v; want 4, %v", a.Count(), a.Codes, want)
	}
	if b.Count() != 2 {
		t.Errorf("what was merged has %d calls, had 2", b.Count())
	}
}

func TestCallsAsJSON(t *testing.T) {
	calls := latency.NewCalls()
	for _, d := range latencies(20_000, 1) {
		calls.Answer(d)
	}
	calls.Fail(4, 300*time.Millisecond)
	data, err := json.Marshal(calls)
	testkit.Must(t, err)
	var read latency.Calls
	testkit.Must(t, json.Unmarshal(data, &read))
	if read.Count() != calls.Count() || !maps.Equal(read.Codes, calls.Codes) {
		t.Errorf("read %d calls with the codes %v, want %d with %v", read.Count(), read.Codes, calls.Count(), calls.Codes)
	}
	again, err := json.Marshal(&read)
	if err != nil || string(again) != string(data) {
		t.Errorf("written again it differs (%v)", err)
	}
	if len(data) > 32<<10 {
		t.Errorf("20,000 calls take %d bytes", len(data))
	}
}
