package peers

import (
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/oneslot"
	"github.com/cabrank/cabrank/lab/internal/measure"
)

// queueReport has one run of each peer on a workload of kindQueue.
func queueReport(t *testing.T, workload string, findings map[string]oneslot.Finding) *report {
	t.Helper()
	w, err := choose(workload, allWorkloads())
	if err != nil {
		t.Fatal(err)
	}
	o := options{workloads: w, files: 1 << 20}
	r := &report{Workloads: w}
	for _, p := range allPeers() {
		f, ok := findings[p.Name]
		if !ok {
			continue
		}
		o.peers = append(o.peers, p)
		one := run{Peer: p.Name, Workload: workload, Phase: phaseRate, Result: measure.Result{Calls: 100}}
		one.addFinding(*w[0].Queue, f)
		r.Runs = append(r.Runs, one)
	}
	r.summarize(o)
	return r
}

// The p99 is held against that of the ideal queue, and nobody may overlap.
func TestQueueBars(t *testing.T) {
	good := oneslot.Finding{Calls: 100, InTime: 100, P99: 103 * time.Millisecond, IdealP99: 100 * time.Millisecond}
	r := queueReport(t, "q70", map[string]oneslot.Finding{oneSlotPeer: good, "nghttpx": good})
	if r.Missed != 0 || r.NotValid != 0 || len(r.Checks) != 2 || r.Checks[0].Median != 1.03 {
		t.Errorf("got %+v", r.Checks)
	}
	if text := r.table(); !strings.Contains(text, "p99 over that of the ideal queue, cabrank-1slot: 1.030") || !strings.Contains(text, "1.03 (1.03..1.03)") {
		t.Error(text)
	}
	bad := good
	bad.Overlaps = 1
	if r = queueReport(t, "q70", map[string]oneslot.Finding{oneSlotPeer: bad}); r.Missed != 1 {
		t.Errorf("got %+v", r.Checks)
	}
	bad.InTime = 99
	if r = queueReport(t, "q70", map[string]oneslot.Finding{oneSlotPeer: bad}); r.Runs[0].Failed != 1 {
		t.Errorf("a call without a deadline was lost: %+v", r.Runs)
	}
}

// In an overload calls are lost, but not too many, and none begins late.
func TestOverloadBars(t *testing.T) {
	good := oneslot.Finding{Calls: 100, InTime: 60, Overlaps: 30}
	r := queueReport(t, "q140", map[string]oneslot.Finding{oneSlotPeer: good})
	if r.Missed != 0 || r.NotValid != 0 || len(r.Checks) != 2 {
		t.Errorf("got %+v", r.Checks)
	}
	r = queueReport(t, "q140", map[string]oneslot.Finding{oneSlotPeer: {Calls: 100, InTime: 59, Late: 1}})
	if r.Missed != 2 || r.Runs[0].Failed != 0 {
		t.Errorf("got %+v", r.Checks)
	}
}

// Peers are measured where they were told to be, and nowhere else.
func TestQueuePeers(t *testing.T) {
	w, err := choose("q70", allWorkloads())
	if err != nil {
		t.Fatal(err)
	}
	o := options{peers: allPeers(), files: 1 << 20}
	got := strings.Join(names(o.peersOf(w[0])), ",")
	if want := "nghttpx,haproxy-h2,envoy,cabrank-1slot,haproxy-maxconn1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
