package goal

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/test/made"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// blank is the record of an open loop without a call.
func blank(counted time.Duration) *traffic.Record { return made.Record(counted) }

// add records answers that took so long.
func add(r *traffic.Record, n int, took time.Duration) *traffic.Record {
	for range n {
		r.Calls.Answer(took)
	}
	r.Due += int64(n)
	r.Came += int64(n)
	return r
}

// lag records calls that were sent so late.
func lag(r *traffic.Record, n int, late time.Duration) *traffic.Record {
	for range n {
		r.Lag.Record(late)
	}
	return r
}

// fail records failures.
func fail(r *traffic.Record, n int) *traffic.Record {
	for range n {
		r.Calls.Fail(14, time.Millisecond)
	}
	r.Due += int64(n)
	return r
}

func parse(t testing.TB, texts ...string) Thresholds {
	t.Helper()
	all, err := Parse(texts)
	testkit.Must(t, err)
	return all
}
