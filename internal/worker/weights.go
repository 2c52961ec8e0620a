package worker

import (
	"os"
	"runtime"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
)

// weighEvery is how often the memory of workers is read while a limit needs it: one small
// file for each process of the machine, some 15 us each.
const weighEvery = 5 * time.Second

// weights are the memory of workers at the last look. Nil is unknown.
type weights struct {
	at          time.Time     // when the look began
	groups      map[int]int64 // bytes, by process group
	used, limit int64         // of the control group; 0 without a limit
}

// of returns the bytes of a group, 0 if they are not known.
func (w *weights) of(group int) int64 {
	if w == nil {
		return 0
	}
	return w.groups[group]
}

// crowd reports whether the control group is too full, by a look that began after the
// last replacement ended: the memory that it has freed must show first.
func (w *weights) crowd(r Recycle, replaced time.Time) bool {
	return w != nil && w.at.After(replaced) && r.crowded(w.used, w.limit)
}

// weigh is the body of the goroutine that reads the memory of the workers. It is separate
// because the kernel may make the reader wait for a process that is short of memory. It
// ends with Stop.
func (s *Supervisor) weigh() {
	tick := time.NewTicker(weighEvery)
	defer tick.Stop()
	told := false
	for {
		select {
		case <-tick.C:
		case <-s.stopping:
			return
		}
		r := s.settings().Recycle
		if !r.weighs() {
			s.weights.Store(nil)
			continue
		}
		now := s.readWeights()
		s.weights.Store(now)
		s.wake()
		if !told && runtime.GOOS != "linux" {
			s.options.Logger.Warn("memory of workers is known on Linux only: none is recycled for it")
		} else if !told && r.Memory.Percent > 0 && now.limit == 0 {
			s.options.Logger.Warn("the control group has no memory limit: no worker is recycled for its share")
		}
		told = true
	}
}

// readWeights reads the memory of all workers that have been ready.
func (s *Supervisor) readWeights() *weights {
	var groups []int
	for _, w := range s.allWorkers() {
		if o := w.odometer.Load(); o != nil {
			groups = append(groups, o.group)
		}
	}
	root := os.DirFS("/")
	found := &weights{at: time.Now(), groups: make(map[int]int64, len(groups))}
	for group, processes := range cgroup.ReadProcesses(root, groups) {
		if bytes, known := processes.Memory(root); known {
			found.groups[group] = bytes
		}
	}
	if memory, limited := cgroup.Find(root).Memory(); limited {
		found.used, found.limit = memory.Used, memory.Limit
	}
	return found
}
