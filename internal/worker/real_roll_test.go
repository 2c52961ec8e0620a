//go:build (real || soak) && linux

package worker

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/process"
	"github.com/cabrank/cabrank/internal/testkit"
)

// rollingHouse is a house of workers that may be replaced.
func rollingHouse(t *testing.T, edit func(*Options)) *house {
	t.Helper()
	return startHouse(t, func(o *Options) {
		o.Count.N, o.MaxSurge, o.MinReady = 3, 1, 2
		o.DrainTimeout = 5 * time.Second
		if edit != nil {
			edit(o)
		}
	})
}

// pids returns the processes of workers that are not vacant, by name.
func (h *house) pids() map[string]int {
	pids := make(map[string]int)
	for _, s := range h.Workers() {
		if s.State != Vacant {
			pids[s.Name] = s.PID
		}
	}
	return pids
}

// processes is the set of processes that workers have.
func (h *house) processes() map[int]bool {
	all := make(map[int]bool)
	for _, s := range h.Workers() {
		if s.PID != 0 {
			all[s.PID] = true
		}
	}
	return all
}

// watch looks at the workers until stop is called, and remembers the extremes.
func (h *house) watch() (stop func() (fewestReady, mostProcesses int)) {
	quit, done := make(chan struct{}), make(chan struct{})
	fewest, most := 1<<20, 0
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			fewest = min(fewest, h.rank.ready())
			// The workers are read one after the other. A process that is seen in two
			// readings was there between them.
			processes, before := 0, h.processes()
			for pid := range h.processes() {
				if before[pid] {
					processes++
				}
			}
			most = max(most, processes)
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return func() (int, int) {
		close(quit)
		<-done
		return fewest, most
	}
}

// A roll replaces every process, has never fewer ready workers than before and
// never more than one process too many, and says what it does.
func TestRoll(t *testing.T) {
	h := rollingHouse(t, nil)
	h.waitReady(3)
	old := h.pids()
	stop := h.watch()
	var steps []Progress
	testkit.Must(t, h.Roll(t.Context(), Change{}, func(p Progress) { steps = append(steps, p) }))
	fewest, most := stop()
	testkit.Want(t, fewest >= 3 && most <= 4, "at least %d ready and at most %d processes; want 3 and 4", fewest, most)
	for name, pid := range h.pids() {
		testkit.Want(t, !slices.Contains(slices.Collect(maps.Values(old)), pid), "%s still has the old process %d", name, pid)
	}
	if got := h.Overview(); got.Wanted != 3 || got.Generation != 2 || got.Operation != "" || !got.Settled || got.Last.Operation != "roll" || got.Last.Error != "" {
		t.Errorf("overview %+v", got)
	}
	testkit.Equal(t, len(h.pids()), 3, "workers")
	last := steps[len(steps)-1]
	if len(steps) != 12 || steps[0].String() != "starting worker-4" || steps[1].String() != "ready worker-4" ||
		steps[2].String() != "draining worker-1 (no calls)" || last.Done != 3 || last.Total != 3 {
		t.Errorf("steps %v", steps)
	}
	for _, s := range h.Workers() {
		testkit.Want(t, s.State == Vacant || s.Generation == 2, "%s is of generation %d", s.Name, s.Generation)
	}
}

// A worker with calls is waited for; what is left after the drain timeout is cut.
func TestRollWaitsForCalls(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.Count.N, o.MinReady, o.DrainTimeout = 1, 1, 300*time.Millisecond })
	h.waitReady(1)
	h.rank.setWork(Work{InFlight: 2})
	began := time.Now()
	testkit.Must(t, h.Roll(t.Context(), Change{}, nil))
	took := time.Since(began)
	testkit.Want(t, took >= 300*time.Millisecond, "the roll took %v, less than the drain timeout", took)
	testkit.EqualList(t, h.rank.seen().cut, []string{"worker-1"}, "cut")
	testkit.Want(t, strings.Contains(h.logs.String(), "calls=2"), "the log does not tell how many calls were left")
}

// A new version that does not get ready stops the roll; the old workers serve on
// and, when they crash, come back as what they were.
func TestRollOfABadVersion(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.BootTimeout = 2 * time.Second })
	h.waitReady(3)
	old := h.pids()
	err := h.Roll(t.Context(), Change{Command: []string{"sleep", "60"}}, nil)
	testkit.Need(t, err != nil && strings.Contains(err.Error(), "worker-4"), "error %v", err)
	h.eventually("the spare to go", func() bool { return len(h.pids()) == 3 })
	if got := h.pids(); !maps.Equal(got, old) || h.rank.ready() != 3 {
		t.Errorf("workers %v, were %v; %d are ready", got, old, h.rank.ready())
	}
	if got := h.Overview(); got.Operation != "" || !strings.HasPrefix(got.Last.Error, "the new workers") {
		t.Errorf("overview %+v", got)
	}
	h.signal(unix.SIGKILL)
	h.eventually("the old worker to come back", func() bool { return h.first().PID != old["worker-1"] && h.rank.ready() == 3 })
}

// A new version that gets ready and then dies again and again stops the roll, too;
// what has begun to run it goes back to the version before.
func TestRollOfAVersionThatDiesLater(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.DrainTimeout = time.Hour })
	h.waitReady(3)
	h.rank.setWork(Work{InFlight: 1}) // the first old worker does not leave before
	sick := shell(`"$0" test-worker serve & sleep 0.7; exit 7`)
	err := h.Roll(t.Context(), Change{Command: sick}, nil)
	testkit.Need(t, err != nil && strings.Contains(err.Error(), "do not get ready"), "error %v", err)
	h.rank.setWork(Work{})
	h.eventually("three workers of the version before", func() bool {
		n := 0
		for _, s := range h.Workers() {
			if s.State == Ready && s.Generation == 1 {
				n++
			}
		}
		return n == 3 && len(h.pids()) == 3
	})
}

// Whoever is in a hurry during a roll cuts the calls of those that drain already.
func TestRollByForceTakesOver(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.Count.N, o.MinReady, o.DrainTimeout = 1, 1, time.Hour })
	h.waitReady(1)
	h.rank.setWork(Work{InFlight: 1})
	first := make(chan error, 1)
	go func() { first <- h.Roll(context.Background(), Change{}, nil) }()
	h.waitState(Draining)
	testkit.Must(t, h.Roll(t.Context(), Change{Force: true}, nil))
	testkit.Is(t, <-first, ErrTakenOver, "the first roll ended with")
}

// A roll whose new workers neither serve nor end is given up after the time that
// RollLimit names.
func TestRollIsGivenUp(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.DrainTimeout = time.Hour })
	h.waitReady(3)
	h.rank.setWork(Work{InFlight: 1}) // the first old worker does not leave before
	limit, result := h.RollLimit(), make(chan error, 1)
	// It is ready once, says NOT_SERVING when it is told to and lives on.
	shy, word := shell(`"$0" test-worker serve & until test -e "$1"; do sleep 0.05; done; kill -USR1 $!; wait`), filepath.Join(t.TempDir(), "word")
	go func() { result <- h.Roll(context.Background(), Change{Command: append(shy, word)}, nil) }()
	h.eventually("a new worker that is ready", func() bool { return h.rank.ready() == 3 && h.Workers()[0].State == Draining })
	testkit.Must(t, os.WriteFile(word, nil, 0o600))
	h.eventually("a new worker that is ready no more", func() bool {
		return slices.ContainsFunc(h.Workers(), func(s Status) bool { return s.State == NotServing })
	})
	testkit.Must(t, h.order(t.Context(), func(f *foreman) { f.op.began = f.op.began.Add(-limit) }))
	if err := <-result; err == nil || !strings.Contains(err.Error(), "given up") || !strings.Contains(err.Error(), "is not serving") {
		t.Errorf("the roll ended with %v", err)
	}
	got := h.Overview()
	testkit.Want(t, got.Operation == "", "overview %+v", got)
	h.rank.setWork(Work{})
}

// Before the stop, while calls are finished, no roll goes on and none begins; what
// serves goes on serving.
func TestFreeze(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.DrainTimeout = time.Hour })
	h.waitReady(3)
	h.rank.setWork(Work{InFlight: 1})
	rolled := make(chan error, 1)
	go func() { rolled <- h.Roll(context.Background(), Change{}, nil) }()
	h.waitState(Draining)
	h.Freeze()
	h.Freeze()
	testkit.Is(t, <-rolled, process.ErrStopping, "the roll ended with")
	testkit.Is(t, h.Replace(t.Context(), "worker-2", false, nil), process.ErrStopping, "a worker is replaced")
	testkit.Equal(t, h.rank.ready(), 3, "workers are ready")
	h.rank.setWork(Work{})
}

// One worker can be replaced alone.
func TestReplace(t *testing.T) {
	h := rollingHouse(t, nil)
	h.waitReady(3)
	old := h.pids()
	testkit.Want(t, h.Replace(t.Context(), "worker-9", false, nil) != nil, "a worker was replaced that there is not")
	testkit.Must(t, h.Replace(t.Context(), "worker-2", false, nil))
	now := h.pids()
	testkit.Want(t, now["worker-1"] == old["worker-1"] && now["worker-3"] == old["worker-3"] && now["worker-2"] == 0 && now["worker-4"] != 0,
		"workers %v, were %v", now, old)
	testkit.Equal(t, h.Workers()[1].Retired[ReasonDrain], 1, "ends of worker-2 for a drain")
}

// Whoever is in a hurry joins the drain of the same worker, and cuts its calls.
func TestReplaceByForceJoins(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.Count.N, o.MinReady, o.DrainTimeout = 1, 1, time.Hour })
	h.waitReady(1)
	h.rank.setWork(Work{InFlight: 1})
	first := make(chan error, 1)
	go func() { first <- h.Replace(context.Background(), "worker-1", false, nil) }()
	h.waitState(Draining)
	testkit.Is(t, h.Replace(t.Context(), "worker-2", true, nil), errBusy, "another worker")
	testkit.Must(t, errors.Join(h.Replace(t.Context(), "worker-1", true, nil), <-first))
}

// Who wants a worker to be replaced does not hear of recycling, which goes on.
func TestReplaceWaitsForRecycling(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.Recycle.Age = time.Second })
	h.eventually("a worker to be recycled", func() bool { return h.Overview().Operation == "age" })
	for range 3 {
		h.eventually("a ready worker", func() bool { return h.rank.ready() > 0 })
		name := ""
		for _, s := range h.Workers() {
			if s.State == Ready {
				name = s.Name
			}
		}
		if err := h.Replace(t.Context(), name, false, nil); err != nil && !strings.HasSuffix(err.Error(), "ending already") && !strings.HasPrefix(err.Error(), "there is no worker") {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.eventually("a worker that has ended of age", func() bool { return h.retired(ReasonAge) > 0 })
}

// Without a surge there is one worker more than min_ready, or none could ever be
// replaced.
func TestScaleWithoutSurge(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.MaxSurge = 0 })
	err := h.Scale(2)
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "3 to "), "error %v", err)
}

// Without a surge a worker leaves before its successor comes, and min_ready holds.
func TestRollWithoutSurge(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.MaxSurge = 0 })
	h.waitReady(3)
	stop := h.watch()
	testkit.Must(t, h.Roll(t.Context(), Change{}, nil))
	fewest, most := stop()
	testkit.Want(t, fewest >= 2 && most <= 3, "at least %d ready and at most %d processes; want 2 and 3", fewest, most)
}

// R6: a process that stays stopped by a signal is replaced; its calls wait for
// nothing.
func TestStoppedForTooLong(t *testing.T) {
	h := startHouse(t, func(o *Options) { o.HangTimeout = 500 * time.Millisecond })
	h.waitReady(1)
	old := h.first().PID
	h.signal(unix.SIGSTOP)
	h.eventually("another process", func() bool { return h.first().PID != old && h.rank.ready() == 1 })
	testkit.Equal(t, h.first().Restarts[CauseHung], 1, "restarts for a hang")
}
