package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Footprint is what cabrank holds of the system.
type Footprint struct {
	files, goroutines, Processes, Kibibytes int
}

// FootprintOf counts when nothing is under way. pid is c's process, or that of
// its successor.
func FootprintOf(c *Cabrank, pid int) Footprint {
	c.T.Helper()
	c.WaitMetric("cabrank_in_flight", 0)
	c.WaitMetric("cabrank_queue_length", 0)
	c.WaitMetric("cabrank_ghosts", 0)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	testkit.Must(c.T, err)
	return Footprint{
		files: len(files), goroutines: int(c.Metric("go_goroutines")),
		Processes: len(c.Family()), Kibibytes: RSSKiB(c.T, pid),
	}
}

// GrownBy returns an error if something was more afterwards.
func (before Footprint) GrownBy(after Footprint) error {
	// Each shard has its own connections, made when a call needs one, and health
	// questions have theirs: a few more or less for five endpoints. What leaks
	// with every worker that comes and goes is many more.
	const spare = 8
	var grown []error
	for _, item := range []struct {
		name          string
		before, after int
	}{
		{"descriptors", before.files, after.files},
		{"goroutines", before.goroutines, after.goroutines},
	} {
		if item.after > item.before+spare {
			grown = append(grown, fmt.Errorf("%s: %d, then %d", item.name, item.before, item.after))
		}
	}
	if after.Processes > before.Processes {
		grown = append(grown, fmt.Errorf("processes: %d, then %d", before.Processes, after.Processes))
	}
	return errors.Join(grown...)
}

// StateOf returns the state of a process, 0 if there is none.
// Source: proc(5), the field behind the name in parentheses.
func StateOf(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	behind := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	if err != nil || len(behind) == 0 {
		return 0
	}
	return behind[0]
}

// Alive reports whether a process has not ended; it may be stopped.
func Alive(pid int) bool {
	state := StateOf(pid)
	return state != 0 && state != 'Z' && state != 'X'
}

// RSSKiB returns the resident memory of a process.
func RSSKiB(t testing.TB, pid int) int {
	t.Helper()
	return kibibytes(t, pid, "VmRSS:")
}

// kibibytes reads a line of what the kernel tells of a process (proc(5), status).
func kibibytes(t testing.TB, pid int, name string) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	testkit.Must(t, err)
	_, err = fmt.Sscanf(LineWith(string(text), name), name+" %d kB", &kib)
	testkit.Need(t, err == nil, "no %s in %s: %v", name, text, err)
	return kib
}
