//go:build real || soak

package chaos_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// ledger is what the workers have written down themselves.
type ledger struct {
	boots    map[int]boot         // by pid
	attempts map[string][]attempt // of each call by its id, in order
}

type boot struct {
	worker string
	at     time.Time
}

// ours reports whether it is a worker that cabrank started, and no upstream.
func (b boot) ours() bool { return strings.HasPrefix(b.worker, "worker-") }

// attempt is one execution of a call by a worker.
type attempt struct {
	pid          int
	began, ended time.Time // ended is zero if the process ended first
}

// readLedger reads what has been written so far.
func readLedger(t testing.TB, path string) *ledger {
	t.Helper()
	text, err := os.ReadFile(path)
	testkit.Need(t, err == nil || os.IsNotExist(err), "%v", err)
	l := &ledger{boots: map[int]boot{}, attempts: map[string][]attempt{}}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		fields := strings.Fields(line)
		testkit.Need(t, len(fields) == 4, "the ledger has a line %q", line)
		pid, badPID := strconv.Atoi(fields[1])
		nanos, badTime := strconv.ParseInt(fields[2], 10, 64)
		testkit.Need(t, badPID == nil && badTime == nil, "the ledger has a line %q", line)
		l.add(t, fields[0], pid, time.Unix(0, nanos), fields[3])
	}
	return l
}

func (l *ledger) add(t testing.TB, kind string, pid int, at time.Time, what string) {
	t.Helper()
	switch kind {
	case harness.EntryBoot:
		l.boots[pid] = boot{what, at}
	case harness.EntryStart:
		l.attempts[what] = append(l.attempts[what], attempt{pid: pid, began: at})
	case harness.EntryEnd:
		of := l.attempts[what]
		last := slices.IndexFunc(of, func(a attempt) bool { return a.pid == pid && a.ended.IsZero() })
		testkit.Need(t, last >= 0, "the ledger has the end of %s in process %d, and no start", what, pid)
		of[last].ended = at
	default:
		t.Fatalf("the ledger has an entry of kind %q", kind)
	}
}

// most returns the greatest number of calls that one of these processes ran at a
// time.
func (l *ledger) most(processes map[int]boot) int {
	type moment struct {
		at   time.Time
		step int
	}
	byPID := map[int][]moment{}
	for _, attempts := range l.attempts {
		for _, a := range attempts {
			if _, among := processes[a.pid]; !among {
				continue
			}
			byPID[a.pid] = append(byPID[a.pid], moment{a.began, 1})
			if !a.ended.IsZero() {
				byPID[a.pid] = append(byPID[a.pid], moment{a.ended, -1})
			}
		}
	}
	most := 0
	for _, moments := range byPID {
		slices.SortFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
		running := 0
		for _, m := range moments {
			running += m.step
			most = max(most, running)
		}
	}
	return most
}
