package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/testkit"
)

// moment is the look after so many quarters of a second at two workers of five slots that serve
// 100 calls a second of 20 ms with deadlines.
func moment(i int) Look {
	at, calls := time.Duration(i)*250*time.Millisecond, uint64(25*i)
	times := func(bucket int) admin.LiveTimes {
		counts := make([]uint64, 5)
		counts[bucket] = calls
		return admin.LiveTimes{Bounds: []float64{.01, .025, .05, .1}, Counts: counts}
	}
	look := Look{Status: &admin.Status{PID: 7, State: "serving", Wanted: 2, Ready: 2}, Live: admin.Live{
		PID: 7, Time: time.Unix(1000, 0).Add(at),
		Codes: map[string]uint64{"OK": calls}, Refusals: map[string]uint64{}, Pages: map[string]uint64{"ok": uint64(i)},
		Methods: []admin.LiveMethod{{Method: "/a.B/C", Calls: calls, Seconds: .02 * float64(calls)}},
		Seconds: times(1), Waited: times(0), Worked: times(1),
		Connections: 4, ConnectionsLimit: 1000, Accepted: 4, Files: 30, FilesLimit: 20_000, BufferedLimitBytes: 64 << 20,
		Load: &scale.Sample{
			Now: at, Arrivals: calls, Served: calls, SlotTime: time.Duration(calls) * 20 * time.Millisecond,
			Ready: 2, Slots: 10, Boot: time.Second, CPUs: 2, CPU: at / 5, MemoryLimit: 4 << 30, MemoryUsed: 1 << 30, MemoryEach: 100 << 20,
		},
		Certificates: map[string]float64{"site.pem": 90 * 86400},
	}}
	for _, name := range []string{"worker-1", "worker-2"} {
		look.Status.Workers = append(look.Status.Workers, admin.WorkerStatus{Name: name, State: "ready", PID: 8, Restarts: map[string]int{}})
		look.Live.Workers = append(look.Live.Workers, admin.LiveWorker{Worker: name, Slots: 5, InFlight: 1, Pace: 1, CPUSeconds: at.Seconds() / 10})
	}
	return look
}

// seen is ten seconds of looks, of which edit has changed each.
func seen(edit func(l *Look, i int)) (looks []Look) {
	for i := range 41 {
		look := moment(i)
		if edit != nil {
			edit(&look, i)
		}
		looks = append(looks, look)
	}
	return looks
}

// Each fault is found first by its figures, and what is just below its bound is not.
func TestExamine(t *testing.T) {
	for _, test := range []struct {
		name, says string // "" nothing is found
		edit       func(l *Look, i int)
	}{
		{"", "", nil},
		{"crash_loop", `worker-2 ends again and again: 7 times so far, the last time by exit status 3`, func(l *Look, i int) {
			w := &l.Status.Workers[1]
			w.State, w.Restarts, w.LastExit = "crash loop", map[string]int{"exit": 7}, "exit status 3"
			l.Live.Workers[1].LastLines = []string{"no such table: orders"}
			l.Live.Load.Waiting, l.Live.Load.SlotTime = 5, time.Duration(i)*2500*time.Millisecond // and for this too few are left
		}},
		{"crash_loop", "3 times", func(l *Look, i int) {
			l.Status.Workers[0].Restarts = map[string]int{"exit": 1 + min(i, 2)}
		}},
		{"", "", func(l *Look, i int) { // once is no loop
			l.Status.Workers[0].Restarts = map[string]int{"exit": 1 + min(i, 1)}
		}},
		{"no_worker", "no worker takes calls: exec: no such file", func(l *Look, _ int) {
			l.Status.Ready, l.Status.Workers[0].LastExit = 0, "exec: no such file"
		}},
		{"sick_worker", "worker-1 gets no new calls: silent for 9s", func(l *Look, _ int) {
			l.Status.Workers[0].State, l.Status.Workers[0].Reason = "suspect", "silent for 9s"
		}},
		{"sick_worker", "worker-1 gets no new calls: it was silent, and was replaced", func(l *Look, i int) {
			l.Status.Workers[0].Restarts = map[string]int{"hung": i}
		}},
		{"sick_worker", "10.0.0.7:1 gets no calls: connection refused", func(l *Look, _ int) {
			l.Status.Upstreams = []admin.UpstreamStatus{{Address: "10.0.0.7:1", State: "down", Reason: "connection refused"}}
		}},
		{"sick_worker", "NOT_SERVING", func(l *Look, _ int) {
			l.Status.Workers[0].State, l.Status.Workers[0].Reason = "not serving", "health service says NOT_SERVING"
		}},
		{"", "", func(l *Look, i int) { // since a moment ago
			if i == 40 {
				l.Status.Workers[0].State = "not serving"
			}
		}},
		{"certificate", "expired 1h0m0s ago", func(l *Look, _ int) { l.Live.Certificates["old.pem"] = -3600 }},
		{"certificate", "good for another 144h0m0s", func(l *Look, _ int) { l.Live.Certificates["old.pem"] = 6 * 86400 }},
		{"", "", func(l *Look, _ int) { l.Live.Certificates["old.pem"] = 8 * 86400 }},
		{"files", "17000 of at most 20000 files", func(l *Look, _ int) { l.Live.Files = 17_000 }},
		{"files", "850 of at most 1000 connections", func(l *Look, _ int) { l.Live.Connections = 850 }},
		{"", "", func(l *Look, _ int) { l.Live.Files, l.Live.Connections = 16_999, 849 }},
		{"memory", "3891 of 4096 MB", func(l *Look, _ int) { l.Live.Load.MemoryUsed = 3891 << 20 }},
		{"memory", "60 of at most 64 MB", func(l *Look, _ int) { l.Live.BufferedBytes = 60 << 20 }},
		{"", "", func(l *Look, _ int) { l.Live.Load.MemoryUsed, l.Live.BufferedBytes = 3<<30, 32<<20 }},
		{"too_many_slots", "workers refused 40 of 1000 calls", func(l *Look, i int) { l.Live.Refusals["refused_by_worker"] = uint64(i) }},
		{"", "", func(l *Look, i int) { l.Live.Refusals["refused_by_worker"] = uint64(i / 5) }},
		{"too_many_slots", "worker-2 has 4.0 calls at a time", func(l *Look, i int) {
			l.Live.Workers[1].InFlight, l.Live.Workers[1].CPUSeconds = 4, float64(i)*.25
		}},
		{"", "", func(l *Look, i int) { // several threads
			l.Live.Workers[1].InFlight, l.Live.Workers[1].CPUSeconds = 4, float64(i)*.4
		}},
		{"", "", func(l *Look, i int) { // no CPU is left, so that many threads look like one
			l.Live.Workers[1].InFlight, l.Live.Workers[1].CPUSeconds = 4, float64(i)*.25
			l.Live.Load.CPU = time.Duration(i) * 450 * time.Millisecond
		}},
		{"slow_worker", "calls take 3.0 times as long at worker-2", func(l *Look, _ int) {
			l.Live.Workers[1].Pace, l.Live.Workers[1].Slow = 3, true
		}},
		{"", "", func(l *Look, i int) { l.Live.Workers[1].Slow = i%3 == 0 }},
		{"short_deadlines", "40 of 1000", func(l *Look, i int) { // before the load is known
			if l.Live.Refusals["deadline_queued"] = uint64(i); i == 0 {
				l.Live.Load = nil
			}
		}},
		{"too_few_workers", "2 → 3 workers, p99 25ms → about 25ms", func(l *Look, i int) {
			l.Live.Load.Waiting, l.Live.Load.SlotTime = 3, time.Duration(i)*2500*time.Millisecond
		}},
		{"too_few_workers", "cpu allows no more", func(l *Look, i int) {
			l.Live.Load.Waiting, l.Live.Load.SlotTime = 3, time.Duration(i)*2500*time.Millisecond
			l.Live.Load.CPU = time.Duration(i) * 500 * time.Millisecond
		}},
		{"", "", func(l *Look, i int) { // they wait in nine of ten looks
			l.Live.Load.Waiting, l.Live.Load.SlotTime = min(i%10, 1), time.Duration(i)*2500*time.Millisecond
		}},
		{"short_deadlines", "40 of 1000 calls would have passed", func(l *Look, i int) {
			l.Live.Load.Shed, l.Live.Refusals["deadline_queued"] = uint64(i), uint64(i)
		}},
		{"too_few_workers", "40 of 1000 calls were refused", func(l *Look, i int) { // the same, if no slot is free
			l.Live.Load.Shed, l.Live.Refusals["deadline_queued"] = uint64(i), uint64(i)
			l.Live.Load.SlotTime = time.Duration(i) * 2400 * time.Millisecond
		}},
		{"pages_lost", "20 of 60 metrics pages of workers could not be read (late)", func(l *Look, i int) { l.Live.Pages["late"] = uint64(i / 2) }},
		{"connection_per_call", "callers opened 1000 connections for 1000 calls", func(l *Look, i int) { l.Live.Accepted = uint64(25 * i) }},
		{"", "", func(l *Look, i int) { l.Live.Accepted = uint64(10 * i) }},  // some of many callers
		{"", "", func(l *Look, i int) { l.Live.Accepted = uint64(100 * i) }}, // by which nobody calls
		{"no_deadlines", "1000 of 1000 calls have no deadline, most of them of /a.B/C", func(l *Look, i int) {
			l.Live.Methods[0].NoDeadline = uint64(25 * i)
		}},
		{"", "", func(l *Look, i int) { // streams
			l.Live.Methods[0].NoDeadline, l.Live.Methods[0].Seconds = uint64(25*i), float64(50*i)
		}},
		{"no_health_service", "1 of 2 workers have no health service", func(l *Look, _ int) { l.Live.Workers[0].NoHealth = true }},
	} {
		found, err := Examine(seen(test.edit))
		testkit.Must(t, err)
		switch {
		case test.name == "" && len(found) > 0:
			t.Errorf("calm: %+v", found)
		case test.name != "" && (len(found) == 0 || found[0].Name != test.name || !strings.Contains(found[0].Says, test.says)):
			t.Errorf("%s %q: %+v", test.name, test.says, found)
		}
	}
}

// Looks at the process before an upgrade do not count, and one look tells nothing.
func TestLooksOfOneProcess(t *testing.T) {
	looks := seen(func(l *Look, i int) {
		if i < 39 {
			l.Live.PID, l.Live.Accepted = 6, uint64(1000-25*i)
		}
	})
	found, err := Examine(looks)
	testkit.Want(t, err == nil && len(found) == 0, "two looks at the new one: %v, %v", found, err)
	_, err = Examine(looks[:40])
	testkit.Want(t, err != nil, "one look is enough")
	_, err = Examine(nil)
	testkit.Want(t, err != nil, "none is enough")
}

// What an older cabrank does not tell is not found, and breaks nothing.
func TestLooksOfAnOlderCabrank(t *testing.T) {
	looks := seen(func(l *Look, _ int) {
		*l = Look{Status: &admin.Status{PID: 7, State: "serving", Ready: 1}, Live: admin.Live{PID: 7, Time: l.Live.Time, Codes: l.Live.Codes}}
	})
	found, err := Examine(looks)
	testkit.Want(t, err == nil && len(found) == 0, "%v, %v", found, err)
}

// The simulation agrees with what is known of a queue: of M/D/1 at seven tenths one call in a
// hundred waits for more than 6.3 times its work, and here the work differs a little.
func TestSimulate(t *testing.T) {
	r, err := newRecord(seen(func(l *Look, i int) {
		l.Live.Load.Arrivals = uint64(10 * i) // 40 a second, 17.5 ms on average, evenly from 10 to 25
	}))
	testkit.Must(t, err)
	one, many := r.simulate(1), r.simulate(10)
	testkit.Want(t, one >= 120*time.Millisecond && one <= 145*time.Millisecond && many >= 24*time.Millisecond && many <= 26*time.Millisecond,
		"p99 %v with one slot, %v with ten", one, many)
}
