package oneslot

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// Long enough for a machine that is busy with something else.
const (
	long  = 600 * time.Millisecond
	short = 150 * time.Millisecond
)

// try has calls made at one worker and returns what both ends tell.
func try(t *testing.T, w *Worker, trial Trial) ([]Outcome, []Record) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "w"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w.Name, w.Records = "w", file
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, l) }()
	trial.Addr = l.Addr().String()
	outcomes, err := trial.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	all, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b Record) int { return a.Call - b.Call })
	return outcomes, all
}

// A worker that waits runs one call after the other, in order, and says that
// they met; the finding has it.
func TestWorkerQueues(t *testing.T) {
	trial := Trial{Calls: []Call{{Service: long}, {At: short, Service: short, Method: "/a.B/C"}}}
	outcomes, records := try(t, &Worker{}, trial)
	for i, o := range outcomes {
		if o.Code != codes.OK || o.Worker != "w" || o.Took() < trial.Calls[i].Service {
			t.Errorf("call %d: %+v", i, o)
		}
	}
	for i, r := range records {
		if r.Call != i || r.Ended-r.Began < trial.Calls[i].Service || r.Overlap != (i > 0) || i > 0 && r.Began < records[i-1].Ended {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if f := Judge(trial, outcomes, 1, records); f.InTime != 2 || f.Overlaps != 1 || f.Late+f.Unseen+f.Twice != 0 || f.P99 < f.IdealP99 || f.IdealP99 != long {
		t.Errorf("%v", f)
	}
}

// A worker that refuses takes the next call only when it has been free for the
// lag.
func TestWorkerRefuses(t *testing.T) {
	for _, first := range []time.Duration{long, 0} {
		trial := Trial{Calls: []Call{{Service: first}, {At: short}}}
		outcomes, records := try(t, &Worker{Busy: Refuse, Lag: long - first}, trial)
		if o := outcomes[1]; outcomes[0].Code != codes.OK || o.Code != codes.ResourceExhausted || o.Message != refusal || len(records) != 1 {
			t.Errorf("a call beside another one, or within its lag: %+v, %+v", outcomes, records)
		}
	}
}

// A call that runs goes on without its caller; one that waits begins all the same, or
// does not.
func TestWorkerOutlivesCallers(t *testing.T) {
	for busy, runs := range map[WhenBusy]int{Run: 2, Skip: 1} {
		trial := Trial{Timeout: long, Calls: []Call{{Service: 2 * long}, {At: short, Service: time.Millisecond}}}
		outcomes, records := try(t, &Worker{Busy: busy}, trial)
		for i, o := range outcomes {
			if o.Code != codes.DeadlineExceeded {
				t.Errorf("%s: call %d: %+v", busy, i, o)
			}
		}
		if f := Judge(trial, outcomes, 1, records); len(records) != runs || f.InTime != 0 || f.Late != runs-1 {
			t.Errorf("%s: %v, %+v", busy, f, records)
		}
	}
}

// What began after its deadline, ran twice or ran nowhere is found.
func TestJudgeFindsFaults(t *testing.T) {
	trial := Trial{Timeout: 10, Calls: []Call{{At: 1}, {At: 2}, {At: 3}}}
	outcomes := []Outcome{{Due: 101, Ended: 105}, {Due: 102, Ended: 113}, {Due: 103, Ended: 104}}
	records := []Record{{Began: 102, Ended: 104}, {Began: 102, Ended: 104}, {Call: 1, Began: 115, Ended: 116, Overlap: true}, {Call: -1}}
	f := Judge(trial, outcomes, 1, records)
	if f.Late != 1 || f.Latest != 3 || f.Twice != 1 || f.Unseen != 1 || f.InTime != 2 || f.Overlaps != 1 || f.Statuses["OK"] != 3 {
		t.Errorf("%+v", f)
	}
}
