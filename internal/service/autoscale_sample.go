package service

import (
	"io/fs"
	"math"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/cabrank/cabrank/internal/cgroup"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/worker"
)

const (
	// cpuEvery is how often the CPU time of workers is read: a look at every
	// process of the machine.
	cpuEvery = time.Second
	// memoryEvery is how often their memory is: a walk over the page tables of
	// workers with several processes.
	memoryEvery = 10 * time.Second
	// bootsKept is how many of the last starts tell how long one takes.
	bootsKept = 4
)

// countEndpoints adds to a sample who takes calls or soon will, and the slots
// that they have.
func countEndpoints(s *scale.Sample, workers []worker.Status, endpoints []rank.EndpointState) {
	states := make(map[string]worker.State, len(workers))
	for _, w := range workers {
		states[w.Name] = w.State
		switch w.State {
		case worker.Ready, worker.Suspect:
			s.Ready++
		case worker.Starting:
			s.Booting++
		default: // nobody knows when they take calls again, if ever
		}
	}
	for _, e := range endpoints {
		switch state, ours := states[e.Name]; {
		case ours && (state == worker.Ready || state == worker.Suspect):
			s.Slots += e.Limit
		case !ours && e.Ready:
			s.Others += e.Limit
		}
	}
}

// boots is what is known of the starts of workers.
type boots struct {
	seen  map[string]time.Time // when the process was started that was ready last, by worker
	ended map[string]int       // restarts of a worker when it was ready last
	took  []time.Duration      // the last few
}

func newBoots() boots {
	return boots{seen: make(map[string]time.Time), ended: make(map[string]int)}
}

// look takes notice of workers that have become ready.
func (b *boots) look(workers []worker.Status) {
	for _, w := range workers {
		switch w.State {
		case worker.Ready:
			if !b.seen[w.Name].Equal(w.Started) {
				b.seen[w.Name] = w.Started
				b.took = append(b.took, w.Since.Sub(w.Started))
				b.took = b.took[max(0, len(b.took)-bootsKept):]
			}
			b.ended[w.Name] = restartsOf(w)
		case worker.Vacant:
			b.ended[w.Name] = restartsOf(w)
		default:
		}
	}
}

// usual is how long a worker takes to become ready; 0 as long as none has.
func (b *boots) usual() time.Duration {
	if len(b.took) == 0 {
		return 0
	}
	return slices.Max(b.took)
}

// failing counts the workers that have ended twice since they were ready last:
// one more would do the same.
func (b *boots) failing(workers []worker.Status) (failing int) {
	for _, w := range workers {
		if w.State == worker.CrashLoop || w.State != worker.Ready && restartsOf(w)-b.ended[w.Name] >= 2 {
			failing++
		}
	}
	return failing
}

func restartsOf(w worker.Status) (n int) {
	for _, times := range w.Restarts {
		n += times
	}
	return n
}

// machine is what workers use of CPU and memory, and what there is. Where /proc
// is missing nothing is known, and nothing limits the number of workers.
type machine struct {
	root   fs.FS
	groups *cgroup.Self
	cpus   float64 // CPU seconds per second that this process and its workers may use

	cpuAt   time.Time
	cpu     time.Duration         // used by workers since they were seen to be ready
	used    map[int]time.Duration // by process group, at the last look
	own     time.Duration         // used by this process, at the last look
	ownRate float64               // CPU seconds per second, smoothed

	memoryAt time.Time
	memory   cgroup.Memory
	each     int64
}

func newMachine(root fs.FS) machine {
	groups := cgroup.Find(root)
	return machine{root: root, groups: groups, cpus: groups.CPUs(runtime.NumCPU()), used: make(map[int]time.Duration)}
}

// tell writes what is known into a sample.
func (m *machine) tell(s *scale.Sample) {
	s.CPU = m.cpu
	s.CPUs = math.Max(m.cpus-m.ownRate, 0.1)
	s.MemoryLimit, s.MemoryUsed, s.MemoryEach = m.memory.Limit, m.memory.Used, m.each
}

// look reads again what is due.
func (m *machine) look(now time.Time, workers []worker.Status) {
	if now.Sub(m.cpuAt) < cpuEvery {
		return
	}
	var groups []int
	for _, w := range workers {
		if w.PID > 0 && w.State == worker.Ready { // starting costs CPU for no call
			groups = append(groups, w.PID) // a worker leads its group
		}
	}
	processes := cgroup.ReadProcesses(m.root, groups)
	m.lookAtCPU(now, processes)
	if m.each == 0 || now.Sub(m.memoryAt) >= memoryEvery {
		m.memoryAt = now
		m.lookAtMemory(processes, workers)
	}
}

// lookAtCPU adds up what the groups have used since the last look.
func (m *machine) lookAtCPU(now time.Time, processes map[int]cgroup.Processes) {
	for group, p := range processes {
		if before, known := m.used[group]; known {
			m.cpu += max(p.CPU-before, 0)
		}
		m.used[group] = p.CPU
	}
	for group := range m.used {
		if _, lives := processes[group]; !lives {
			delete(m.used, group)
		}
	}
	own := ownCPU()
	if passed := now.Sub(m.cpuAt).Seconds(); !m.cpuAt.IsZero() && passed > 0 {
		m.ownRate += (max(own-m.own, 0).Seconds()/passed - m.ownRate) / 5
	}
	m.own, m.cpuAt = own, now
}

// lookAtMemory reads the tightest limit, and the largest worker that is ready.
func (m *machine) lookAtMemory(processes map[int]cgroup.Processes, workers []worker.Status) {
	m.memory = cgroup.Memory{}
	if machine, known := cgroup.Machine(m.root); known {
		m.memory = machine
	}
	if group, limited := m.groups.Memory(); limited && (m.memory.Limit == 0 || group.Free() < m.memory.Free()) {
		m.memory = group
	}
	m.each = 0
	for _, w := range workers {
		if size, known := processes[w.PID].Memory(m.root); known {
			m.each = max(m.each, size)
		}
	}
}

// ownCPU is the CPU time that this process has used.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
