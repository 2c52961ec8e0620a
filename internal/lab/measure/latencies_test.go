package measure

import (
	"math"
	"testing"
	"time"
)

// Every value lies in its bucket, and buckets are at most 3 % wide.
func TestBuckets(t *testing.T) {
	last := -1
	for _, ns := range []uint64{0, 1, 31, 32, 63, 64, 65, 127, 128, 1000, 65535, 65536, 1e9, math.MaxInt64} {
		i := bucket(ns)
		if i < last {
			t.Errorf("%d is in bucket %d, a smaller one was in %d", ns, i, last)
		}
		last = i
		if u := upper(i); u < ns || float64(u) > float64(ns)*1.032+1 {
			t.Errorf("%d is in bucket %d that ends at %d", ns, i, u)
		}
		if i > 0 && upper(i-1) >= ns {
			t.Errorf("%d is in bucket %d, but the one before ends at %d", ns, i, upper(i-1))
		}
	}
	var l Latencies
	if i := bucket(math.MaxUint64); i >= len(l.counts) {
		t.Errorf("bucket %d of %d", i, len(l.counts))
	}
}

func TestQuantiles(t *testing.T) {
	var none, a, b, all Latencies
	if none.Quantile(0.5) != 0 {
		t.Error("a quantile of nothing is not 0")
	}
	for i := range 500 {
		a.Add(time.Duration(2*i+1) * time.Microsecond)
		b.Add(time.Duration(2*i+2) * time.Microsecond)
	}
	all.Merge(&a)
	all.Merge(&b)
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond, 1: time.Millisecond} {
		if got := all.Quantile(q); got < want || float64(got) > 1.032*float64(want) {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	all.Add(-time.Second)
	if all.Quantile(0) != 0 || all.Quantile(1) != time.Millisecond {
		t.Error("a clock that goes back counts as 0")
	}
}

func TestBetween(t *testing.T) {
	from := Sample{
		At: time.Unix(10, 0), Calls: 100, Traffic: Traffic{Received: 50, Sent: 60},
		Process: Process{CPU: time.Second, User: 10, System: 10, Switches: 5},
		Host:    Host{Busy: []float64{1, 2}, Packets: 7, Bytes: 70},
	}
	to := Sample{
		At: time.Unix(12, 0), Calls: 1100, Traffic: Traffic{Received: 80_050, Sent: 100_060},
		Process: Process{CPU: time.Second + 2*time.Millisecond, User: 13, System: 19, Switches: 505},
		Host:    Host{Busy: []float64{1.5, 4}, Packets: 4007, Bytes: 90070},
		Rig:     time.Second,
	}
	var r Result
	r.Between(from, to)
	if r.Calls != 1000 || r.PerSecond != 500 || r.CPUPerCall != 2 || r.UserShare != 0.25 || r.Switches != 0.5 || r.LoopPackets != 4 || r.LoopBytes != 90 {
		t.Errorf("got %+v", r)
	}
	if r.Answer != 80 || r.Request != 100 || r.CoreBusy[0] != 0.5 || r.CoreBusy[1] != 2 || r.RigShare != 0.5 {
		t.Errorf("got %+v", r)
	}
}
