package rank

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R16: what is learned of exponential run times is near the truth.
func TestEstimates(t *testing.T) {
	m := New(Options{}).Method("/a.B/C")
	random := rand.New(rand.NewPCG(1, 2))
	const mean = 20 * ms
	for range 10_000 {
		m.observe(time.Duration(random.ExpFloat64()*float64(mean)), 0)
	}
	e := m.Estimate()
	near := func(name string, got time.Duration, want float64) {
		t.Helper()
		r := float64(got) / (want * float64(mean))
		testkit.Want(t, r >= 0.85 && r <= 1.15, "%s is %v, %.2f of the truth", name, got, r)
	}
	near("mean", e.Mean, 1)
	near("median", e.Median, math.Ln2)
	near("p95", e.P95, math.Log(20))
	testkit.Want(t, e.Samples >= 9_900 && e.Longest >= 100*ms, "%d samples, longest %v", e.Samples, e.Longest)
}

// The buckets cover all times without a gap, and their order is that of time.
func TestBuckets(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 3*time.Hour; d += d/16 + 100 {
		b := bucketOf(d)
		testkit.Need(t, b >= last && b <= last+1, "%v is in bucket %d after %d", d, b, last)
		if b > 0 && b < octaves*4-1 && (d < lowest(b) || d >= lowest(b+1)) {
			t.Fatalf("%v is not in its bucket %v..%v", d, lowest(b), lowest(b+1))
		}
		last = b
	}
}

// A cancelled run says only that it would have been longer.
func TestCancelledRunsTeachLengthOnly(t *testing.T) {
	m := New(Options{}).Method("/a.B/C")
	for range 1920 {
		m.observe(100*ms, 0)
	}
	before := m.Estimate()
	for range 100 {
		m.observeAtLeast(ms, 0)
	}
	testkit.Want(t, m.Estimate() == before, "cancelled runs made the method look quick")
	for range 1000 {
		m.observeAtLeast(time.Second, 0)
	}
	testkit.Want(t, m.Estimate() == before, "calls that were lost in a worker which hangs made the method look long")
	for range refreshEvery {
		m.observe(2*time.Second, 0)
	}
	for range 200 {
		m.observeAtLeast(time.Second, 0)
	}
	if e := m.Estimate(); e.P95 < 900*ms || e.Longest > 2500*ms {
		t.Errorf("p95 is %v, the longest %v, after a hundred calls that had run for 1 s", e.P95, e.Longest)
	}
}
