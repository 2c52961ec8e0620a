//go:build (real || soak) && linux

package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
)

// sh is a hook that runs a script, with the placeholders as its arguments.
func sh(script string) []string {
	return []string{"sh", "-c", script, "{worker}", "{index}", "{addr}", "{host}", "{port}"}
}

// said returns what the house's log has behind a prefix, line by line.
func (h *house) said(prefix string) []string {
	var found []string
	for line := range strings.Lines(h.logs.String()) {
		if text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), prefix); ok {
			found = append(found, text)
		}
	}
	return found
}

// Each hook runs once in the life of a process, where its name says, with the
// worker's environment, and is told what there is to tell.
func TestHooksRunAroundALife(t *testing.T) {
	const tell = `echo "$0 $1 $2 $3:$4 $SHARD $CABRANK_WORKER $CABRANK_HOOK pid=$CABRANK_WORKER_PID" >&2`
	h := startHouse(t, func(o *Options) {
		o.Env = map[string]string{"SHARD": "part-{index}"}
		o.Hooks = Hooks{BeforeStart: sh(tell), AfterReady: sh(tell), BeforeStop: sh(tell)}
	})
	h.waitReady(1)
	at := h.first().Address
	h.eventually("hook after_ready", func() bool { return len(h.said("worker-1 after_ready | ")) == 1 })
	pid := h.first().PID
	h.Stop(context.Background())
	common := fmt.Sprintf("worker-1 0 %s %s part-0 worker-1 ", at, at)
	for hook, pid := range map[string]string{
		"before_start": "", "after_ready": fmt.Sprint(pid), "before_stop": fmt.Sprint(pid),
	} {
		got := h.said("worker-1 " + hook + " | ")
		want := common + hook + " pid=" + pid
		testkit.Want(t, len(got) == 1 && got[0] == want, "%s said %q, want %q once", hook, got, want)
	}
}

// A hook before_start that fails is a failed start: it counts, and is tried again.
func TestHookBeforeStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tried")
	h := startHouse(t, func(o *Options) {
		o.Hooks.BeforeStart = []string{"sh", "-c", `[ -e "$0" ] || { touch "$0"; exit 7; }`, file}
	})
	h.waitReady(1)
	got := h.first()
	testkit.Want(t, got.Restarts[CauseHookFailed] == 1 && got.LastExit == "hook before_start: exit status 7",
		"restarts %v, last exit %q", got.Restarts, got.LastExit)
}

// A hook that takes too long is killed with all that it started, while the
// worker's goroutine goes on to show that it is alive.
func TestHookTakesTooLong(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.Hooks.BeforeStart, o.BootTimeout = []string{"sh", "-c", `sleep 1000 & sleep 1000`}, 700*time.Millisecond
	})
	h.eventually("the failed start", func() bool { return h.first().Restarts[CauseHookFailed] > 0 })
	testkit.Equal(t, h.first().LastExit, "hook before_start: not over after 700ms, killed", "last exit")
	beat := h.workerAt(0).beat.Load()
	h.eventually("beats", func() bool { return h.workerAt(0).beat.Load() > beat+int64(time.Second) })
}

// Failures of the other hooks are logged, and change nothing.
func TestOtherHooksFail(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.Hooks = Hooks{AfterReady: []string{"false"}, BeforeStop: []string{"/no/such/program"}}
	})
	h.waitReady(1)
	h.eventually("the failure", func() bool {
		return strings.Contains(h.logs.String(), `msg="hook failed" worker=worker-1 error="hook after_ready: exit status 1"`)
	})
	got := h.first()
	testkit.Want(t, got.State == Ready && len(got.Restarts) == 0, "state %v, restarts %v", got.State, got.Restarts)
	h.Stop(context.Background())
	testkit.Want(t, strings.Contains(h.logs.String(), "hook before_stop: fork/exec /no/such/program"),
		"the failure of before_stop is not in the log")
}

// Stop waits for no hook but before_stop, and for that one until it is told to
// hurry.
func TestStopEndsHooks(t *testing.T) {
	endless := []string{"sh", "-c", `echo begun; sleep 1000 & wait`}
	for _, test := range []struct {
		name  string
		hooks Hooks
		ctx   func() context.Context
	}{
		{beforeStart, Hooks{BeforeStart: endless}, context.Background},
		{afterReady, Hooks{AfterReady: endless}, context.Background},
		{beforeStop, Hooks{BeforeStop: endless}, func() context.Context {
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t, func(o *Options) { o.Hooks, o.BootTimeout = test.hooks, time.Hour })
			failed := make(chan error, 1)
			go func() { failed <- h.Start(context.Background()) }()
			if test.name == beforeStop {
				h.waitReady(1)
			} else {
				h.eventually("the hook", func() bool { return len(h.said("worker-1 "+test.name+" | begun")) == 1 })
			}
			h.stopsWithin(test.ctx(), patience)
			<-failed
			h.checkNothingLeft()
		})
	}
}

// A worker that is replaced has its hook after its last call and before TERM.
func TestHookBeforeStopInARoll(t *testing.T) {
	h := rollingHouse(t, func(o *Options) {
		o.Count.N, o.MinReady = 1, 1
		o.Hooks.BeforeStop = []string{"sh", "-c", `kill -0 "$CABRANK_WORKER_PID" && echo "$CABRANK_WORKER_PID lives"`}
	})
	h.waitReady(1)
	old := h.first().PID
	testkit.Must(t, h.Roll(t.Context(), Change{}, nil))
	h.eventually("the hook's word", func() bool {
		got := h.said("worker-1 before_stop | ")
		return len(got) == 1 && got[0] == fmt.Sprintf("%d lives", old)
	})
}

// A worker takes no call before it has answered the warm-up call, and the log
// tells why it is not ready.
func TestWarmUpComesBeforeReadiness(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.Command, o.BootTimeout = self("cold"), 5*time.Second // the log tells after half of it
		o.WarmUp.Method = "/shop.Cart/Warm"
	})
	h.eventually("the reason", func() bool {
		return strings.Contains(h.logs.String(), "warm-up: /shop.Cart/Warm answered Unavailable: caches are empty")
	})
	testkit.Want(t, h.rank.ready() == 0, "a cold worker gets calls")
	h.signal(unix.SIGUSR2)
	h.waitReady(1)
}

// A method that does not exist is told once, clearly, and nobody is ready.
func TestWarmUpMethodIsUnknown(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.BootTimeout = 500 * time.Millisecond
		o.WarmUp.Method = "/shop.Cart/Gone"
	})
	const line = `worker has no method for the warm-up call and will not be ready`
	h.eventually("the line", func() bool { return strings.Contains(h.logs.String(), line) })
	before := h.first().Restarts[CauseBootTimeout]
	h.eventually("two more attempts", func() bool { return h.first().Restarts[CauseBootTimeout] >= before+2 })
	testkit.Equal(t, strings.Count(h.logs.String(), line), 1, "lines")
	testkit.Want(t, len(h.rank.seen().everUp) == 0, "the worker was ready")
}

// A worker that computes for a call that should be over is replaced; one whose
// handler waits is left alone.
func TestRunTime(t *testing.T) {
	h := startHouse(t, func(o *Options) {
		o.Count.N, o.MaxRunTime = 2, time.Second
		o.Command = shell(`[ $CABRANK_WORKER = worker-2 ] || while :; do :; done & "$0" test-worker serve`)
	})
	h.waitReady(2)
	pids, began := h.pids(), time.Now()
	h.rank.setWork(Work{InFlight: 1, Owed: began, Heard: began})
	testkit.Eventually(t, 10*computeFor, "another process", func() bool {
		s := h.first()
		return s.PID != pids["worker-1"] && s.PID != 0
	})
	killed := time.Now()
	h.eventually("another look at the other", func() bool { return time.Since(killed) > cpuEvery+2*tickEvery })
	h.rank.setWork(Work{})
	if got := h.first().Restarts; got[CauseRunTime] != 1 || len(got) != 1 {
		t.Errorf("restarts %v, want one for the run time", got)
	}
	if got := h.Workers()[1]; got.PID != pids["worker-2"] || got.State != Ready {
		t.Errorf("a worker that waits is %v, process %d, was %d", got.State, got.PID, pids["worker-2"])
	}
}

// A worker that has served its calls is replaced, the spare first, and its
// successor begins at zero.
func TestRecycleByCalls(t *testing.T) {
	h := rollingHouse(t, func(o *Options) { o.Count.N, o.MinReady, o.Recycle.Calls = 2, 2, 100 })
	h.waitReady(2)
	old := h.pids()
	stop := h.watch()
	h.rank.setWork(Work{Served: 100})
	h.eventually("both recycled", func() bool {
		return h.retired(ReasonCalls) == 2 && h.Overview().Settled && h.rank.ready() == 2
	})
	fewest, most := stop()
	testkit.Want(t, fewest >= 2 && most <= 3, "at least %d ready and at most %d processes; want 2 and 3", fewest, most)
	for name, pid := range h.pids() {
		testkit.Want(t, old[name] != pid, "%s still has process %d", name, pid)
	}
	// The fresh ones have served nothing: two looks of the foreman find nothing.
	began, fresh := time.Now(), h.pids()
	h.eventually("two looks", func() bool { return time.Since(began) > 2*foremanTick+500*time.Millisecond })
	for name, pid := range h.pids() {
		testkit.Want(t, fresh[name] == pid, "%s was recycled again", name)
	}
}

// A spare that does not become ready costs nobody, and puts recycling off.
func TestRecycleFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broken")
	h := rollingHouse(t, func(o *Options) {
		o.Count.N, o.MinReady, o.Recycle.Calls = 1, 1, 10
		o.Command = append(shell(`[ -e "$1" ] && exit 3; exec "$0" test-worker serve`), file)
	})
	h.waitReady(1)
	pid := h.first().PID
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	h.rank.setWork(Work{Served: 10})
	h.eventually("the end of it", func() bool { return strings.Contains(h.logs.String(), "recycling postponed") })
	h.eventually("peace", func() bool { return h.Overview().Settled })
	got := h.first()
	testkit.Want(t, got.PID == pid && got.State == Ready, "the old worker is %v, process %d, was %d", got.State, got.PID, pid)
}

// What workers hold in memory is read for those that are ready.
func TestWeights(t *testing.T) {
	h := startHouse(t, func(o *Options) { o.Count.N = 2 })
	h.waitReady(2)
	h.eventually("both weights", func() bool {
		weights := h.readWeights()
		for _, s := range h.Workers() {
			if weights.of(s.PID) < 1<<20 {
				return false
			}
		}
		return true
	})
	testkit.Equal(t, (*weights)(nil).of(1), 0, "what nobody knows")
}
