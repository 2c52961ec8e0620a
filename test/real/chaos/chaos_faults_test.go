//go:build real || soak

package chaos_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A chaosFault is what was done to one process of a worker.
type chaosFault struct {
	kind     faultKind
	worker   string
	pid      int
	at       time.Time
	detected time.Time // of a stop: when cabrank told of it; zero if it was draining the worker
	over     time.Time // of a stop: when it was continued or killed
}

type faultKind string

const (
	faultKill     faultKind = "kill -9"
	faultStop     faultKind = "SIGSTOP, then SIGCONT"
	faultStopKill faultKind = "SIGSTOP, then kill -9"
)

// killed returns when the process was killed, zero if it was not.
func (f *chaosFault) killed() time.Time {
	switch f.kind {
	case faultKill:
		return f.at
	case faultStopKill:
		return f.over
	default:
		return time.Time{}
	}
}

// chaosFaults hurts processes of workers and remembers it.
type chaosFaults struct {
	c      *harness.Cabrank
	ledger string
	random *rand.Rand // used by one goroutine at a time

	mu   sync.Mutex
	done []chaosFault // guarded by mu
}

// do hurts a random process that has booted: ready, draining or about to be
// either.
func (f *chaosFaults) do(t *testing.T, kind faultKind) {
	t.Helper()
	fault := chaosFault{kind: kind}
	first := syscall.SIGSTOP
	if kind == faultKill {
		first = syscall.SIGKILL
	}
	seen := len(f.c.Log())
	testkit.Eventually(t, harness.Patience, "a process to hurt", func() bool {
		living := livingWorkers(t, f.ledger)
		if len(living) == 0 {
			return false
		}
		victim := living[f.random.IntN(len(living))]
		fault.worker, fault.pid, fault.at = victim.worker, victim.pid, time.Now()
		return syscall.Kill(victim.pid, first) == nil
	})
	if kind != faultKill {
		f.hold(t, &fault, seen)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, fault)
}

// hold keeps a process stopped until cabrank has seen it, and some more.
func (f *chaosFaults) hold(t *testing.T, fault *chaosFault, seen int) {
	t.Helper()
	who := fmt.Sprintf(`"worker":%q,"pid":%d,`, fault.worker, fault.pid)
	testkit.Eventually(t, harness.Patience, fmt.Sprintf("cabrank to see that process %d is stopped", fault.pid), func() bool {
		log := f.c.Log()
		if strings.Contains(log[seen:], `"worker takes no calls",`+who) {
			fault.detected = time.Now()
		}
		// One that is not ready yet, or drains, or has ended, gets no calls anyway.
		in := strings.Contains(log, `"worker ready",`+who) && !strings.Contains(log, `"worker draining",`+who)
		return !fault.detected.IsZero() || !in || !harness.Alive(fault.pid)
	})
	<-time.After(time.Duration(f.random.Int64N(int64(time.Second)))) // the length is part of the fault
	last := syscall.SIGCONT
	if fault.kind == faultStopKill {
		last = syscall.SIGKILL
	}
	fault.over = time.Now()
	_ = syscall.Kill(fault.pid, last) // it may have been ended meanwhile
}

// faults returns what was done so far, the earliest first.
func (f *chaosFaults) faults() []chaosFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(slices.Values(f.done), func(a, b chaosFault) int { return a.at.Compare(b.at) })
}

type livingWorker struct {
	worker string
	pid    int
}

// livingWorkers returns the processes that have booted and run, by name and
// then by age, so that equal seeds choose equal victims.
func livingWorkers(t testing.TB, path string) []livingWorker {
	t.Helper()
	boots := readLedger(t, path+harness.BootsSuffix).boots
	var living []livingWorker
	for pid, boot := range boots {
		if harness.Alive(pid) && harness.StateOf(pid) != 'T' && boot.ours() {
			living = append(living, livingWorker{boot.worker, pid})
		}
	}
	slices.SortFunc(living, func(a, b livingWorker) int {
		return cmp.Or(cmp.Compare(a.worker, b.worker), boots[a.pid].at.Compare(boots[b.pid].at))
	})
	return living
}
