//go:build real || soak

package real_test

import (
	"errors"
	"fmt"
	"os"
)

// footprint is what cabrank holds of the system.
type footprint struct {
	files, goroutines, processes, kibibytes int
}

// footprintOf counts when nothing is under way. pid is c's process, or that of
// its successor.
func footprintOf(c *Cabrank, pid int) footprint {
	c.t.Helper()
	c.waitMetric("cabrank_in_flight", 0)
	c.waitMetric("cabrank_queue_length", 0)
	c.waitMetric("cabrank_ghosts", 0)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		c.t.Fatal(err)
	}
	return footprint{
		files: len(files), goroutines: int(c.metric("go_goroutines")),
		processes: len(c.Family()), kibibytes: rssKiB(c.t, pid),
	}
}

// grownBy returns an error if something was more afterwards.
func (before footprint) grownBy(after footprint) error {
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
	if after.processes > before.processes {
		grown = append(grown, fmt.Errorf("processes: %d, then %d", before.processes, after.processes))
	}
	return errors.Join(grown...)
}
