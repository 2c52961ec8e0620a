package oneslot

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// The same demand makes the same calls, which need what it says.
func TestDraw(t *testing.T) {
	d := Demand{Seed: 7, Calls: 200_000, Workers: 4, Load: 0.7}
	calls := d.Draw()
	if !slices.EqualFunc(calls, d.Draw(), func(a, b Call) bool { return a.At == b.At && a.Service == b.Service }) {
		t.Error("two draws of one demand differ")
	}
	var work time.Duration
	long := 0
	for i, c := range calls {
		work += c.Service
		if c.Service > 100*time.Millisecond {
			long++
		}
		if i > 0 && c.At < calls[i-1].At {
			t.Fatalf("call %d is due before the one before", i)
		}
	}
	last := calls[len(calls)-1].At
	if load := float64(work) / float64(4*last); load < 0.68 || load > 0.72 {
		t.Errorf("the calls are a load of %.3f, want 0.7", load)
	}
	if share := float64(long) / float64(len(calls)); share < 0.028 || share > 0.034 { // 5 % exp(-100/210)
		t.Errorf("%.4f of the calls take longer than 100 ms, want 0.031", share)
	}
	if got := Mixed().Mean(); got != 20*time.Millisecond {
		t.Errorf("mean service time %v, want 20ms", got)
	}
}

// Two workers by hand: the third call waits for whoever is free first.
func TestIdeal(t *testing.T) {
	calls := []Call{{At: 0, Service: 10}, {At: 1, Service: 3}, {At: 2, Service: 5}, {At: 20, Service: 1}}
	if got, want := Ideal(calls, 2), []time.Duration{10, 3, 7, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// M/M/1 at load 0.5: the mean time is twice the service time.
	d := Demand{Seed: 1, Calls: 200_000, Workers: 1, Load: 0.5, Mix: Mix{Short: time.Millisecond}}
	var sum time.Duration
	for _, took := range Ideal(d.Draw(), 1) {
		sum += took
	}
	if mean := sum / 200_000; mean < 1900*time.Microsecond || mean > 2100*time.Microsecond {
		t.Errorf("mean time in an M/M/1 queue %v, want 2ms", mean)
	}
}

func TestQuantile(t *testing.T) {
	all := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.2: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := Quantile(all, q); got != want {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	if Quantile(nil, 0.5) != 0 {
		t.Error("a quantile of nothing is not 0")
	}
}

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
	var records bytes.Buffer
	w.Name, w.Records = "w", &records
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, l) }()
	trial.Addr, trial.Conns = l.Addr().String(), 2
	outcomes, err := trial.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	all, err := readRecords(records.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b Record) int { return a.Call - b.Call })
	return outcomes, all
}

// A worker that waits runs one call after the other, in order, and says that
// they met.
func TestWorkerQueues(t *testing.T) {
	trial := Trial{Calls: []Call{{Service: long}, {At: short, Service: short, Method: "/a.B/C"}}}
	outcomes, records := try(t, &Worker{}, trial)
	for i, o := range outcomes {
		if o.Code != codes.OK || o.Worker != "w" || o.Took() < trial.Calls[i].Service {
			t.Errorf("call %d: %+v", i, o)
		}
	}
	for i, r := range records {
		if r.Call != i || r.Fate != Done || r.Ended-r.Began < trial.Calls[i].Service || r.Overlap != (i > 0) || i > 0 && r.Began < records[i-1].Ended {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	f := Judge(trial, outcomes, 1, records)
	if f.InTime != 2 || f.Overlaps != 1 || f.Late != 0 || f.Unseen != 0 || f.Twice != 0 || f.UsefulRun != 1 || f.OverIdeal() < 1 {
		t.Errorf("%v", f)
	}
}

// A worker that refuses takes the next call only when it has been free for the
// lag.
func TestWorkerRefuses(t *testing.T) {
	trial := Trial{Calls: []Call{{Service: long}, {At: short}}}
	outcomes, records := try(t, &Worker{Busy: Refuse}, trial)
	if o := outcomes[1]; o.Code != codes.ResourceExhausted || o.Message != refusal {
		t.Errorf("a call beside another one: %+v", o)
	}
	if f := Judge(trial, outcomes, 1, records); f.Refused != 1 || f.Overlaps != 1 || f.InTime != 1 {
		t.Errorf("%v", f)
	}
	trial = Trial{Calls: []Call{{}, {At: short}}}
	outcomes, _ = try(t, &Worker{Busy: Refuse, Lag: long}, trial)
	if outcomes[0].Code != codes.OK || outcomes[1].Code != codes.ResourceExhausted {
		t.Errorf("a call within the lag of another one: %+v", outcomes)
	}
}

// A call that runs goes on without its caller; one that waits begins all the
// same, or does not.
func TestWorkerOutlivesCallers(t *testing.T) {
	for busy, fate := range map[WhenBusy]Fate{Run: Done, Skip: Skipped} {
		t.Run(string(busy), func(t *testing.T) { outlive(t, busy, fate) })
	}
}

func outlive(t *testing.T, busy WhenBusy, fate Fate) {
	t.Helper()
	trial := Trial{
		Timeout: long,
		Calls:   []Call{{Service: 2 * long}, {At: short, Service: time.Millisecond}},
	}
	outcomes, records := try(t, &Worker{Busy: busy}, trial)
	if len(records) != 2 || records[0].Fate != Done || !records[0].Abandoned || records[1].Fate != fate {
		t.Errorf("%+v", records)
	}
	for i, o := range outcomes {
		if o.Code != codes.DeadlineExceeded {
			t.Errorf("call %d: %+v", i, o)
		}
	}
	late := 0
	if fate == Done {
		late = 1
	}
	if f := Judge(trial, outcomes, 1, records); f.InTime != 0 || f.UsefulRun != 0 || f.Skipped != 1-late || f.Late != late {
		t.Errorf("%v", f)
	}
}

// What began after its deadline, ran twice or ran nowhere is found.
func TestJudgeFindsFaults(t *testing.T) {
	trial := Trial{Timeout: 10, Calls: []Call{{At: 1}, {At: 2}, {At: 3}}}
	outcomes := []Outcome{{Due: 101, Ended: 105}, {Due: 102, Ended: 113}, {Due: 103, Ended: 104}}
	records := []Record{
		{Call: 0, Began: 102, Ended: 104, Fate: Done},
		{Call: 0, Began: 102, Ended: 104, Fate: Done},
		{Call: 1, Began: 115, Ended: 116, Fate: Done, Overlap: true},
		{Call: -1, Fate: Done},
	}
	f := Judge(trial, outcomes, 1, records)
	if f.Late != 1 || f.Latest != 3 || f.Twice != 1 || f.Unseen != 1 || f.InTime != 2 || f.Overlaps != 1 {
		t.Errorf("%+v", f)
	}
	if text := f.String(); !strings.Contains(text, "3 OK") || !strings.Contains(text, "1 overlaps") {
		t.Error(text)
	}
}

func TestReadRecords(t *testing.T) {
	records, err := readRecords([]byte("{\"call\":1,\"fate\":\"done\"}\n{\"call\":"))
	if err != nil || len(records) != 1 || records[0].Call != 1 {
		t.Errorf("got %+v, %v", records, err)
	}
	if _, err := readRecords([]byte("no\n")); err == nil {
		t.Error("what is no record was read")
	}
}
