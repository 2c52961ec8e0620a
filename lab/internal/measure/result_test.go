package measure

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// What is kept of a run comes back from its file, and a difference of 5 % with it.
func TestKeep(t *testing.T) {
	var r Result
	r.Keep(nil, nil)
	if b, err := json.Marshal(r); err != nil || strings.Contains(string(b), "latencies") || strings.Contains(string(b), "lag") {
		t.Errorf("nothing was kept, and the file has %s (%v)", b, err)
	}
	for _, most := range []time.Duration{1000 * time.Microsecond, 1050 * time.Microsecond} {
		latencies, lags := latency.New(), latency.New()
		for i := range 1000 {
			latencies.Record(most * time.Duration(i+1) / 1000)
			lags.Record(time.Duration(i+1) * time.Microsecond)
		}
		r = Result{Rate: 1}
		r.Keep(latencies, lags)
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Result
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		for name, tc := range map[string]struct{ got, want float64 }{
			"p50": {back.P50, micros(most) / 2}, "p99": {back.P99, 0.99 * micros(most)}, "max": {back.Max, micros(most)},
			"lag": {back.Lag, 990}, "p90 of what is kept": {micros(back.Latencies.At(0.9)), 0.9 * micros(most)},
		} {
			if tc.got < tc.want || tc.got > 1.001*tc.want {
				t.Errorf("%s of %v: got %v, want %v", name, most, tc.got, tc.want)
			}
		}
		if text := back.String(); !strings.Contains(text, "99 % sent within 990 us") || !strings.Contains(text, "too few calls: it needs 10000") {
			t.Errorf("got %s", text)
		}
	}
}

// Results of before there were histograms are read as they were.
func TestReadsOlderResults(t *testing.T) {
	var r Result
	if err := json.Unmarshal([]byte(`{"conns":4,"rate":4000,"p50_us":100.5,"p99_us":300,"max_us":900,"unsent":3}`), &r); err != nil {
		t.Fatal(err)
	}
	if r.P50 != 100.5 || r.Unsent != 3 || r.Latencies != nil || !strings.Contains(r.String(), "p99 300 us") {
		t.Errorf("got %+v: %v", r, r)
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
