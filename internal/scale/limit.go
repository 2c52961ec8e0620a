package scale

import "math"

const (
	// cpuFull is the part of the usable CPU that counts as all of it: more workers do
	// not help workers that wait for CPU.
	cpuFull = 0.9
	// cpuFor is how many samples, one minute, tell the cost of a busy slot.
	cpuFor = 240
	// cpuRecent is how many samples, two seconds, tell whether CPU is left.
	cpuRecent = 8
	// cpuSlotSeconds is how much work has to be seen before it tells anything, in at
	// least cpuBusy of the slots: idle workers use some CPU, too.
	cpuSlotSeconds = 2.0
	cpuBusy        = 0.1
	// 1/memoryMargin of the memory limit is left for buffers of calls, caches, and
	// workers that grow.
	memoryMargin = 10
)

// cpuCost is the CPU time of the workers per second of a busy slot. It is learned
// only while CPU is left: after that, calls take longer because they wait for CPU, and
// each slot seems to cost less.
type cpuCost struct {
	known bool
	cost  float64
	full  bool
}

// learn looks at the workers' CPU time.
func (c *cpuCost) learn(h *history, cpus, slots float64) {
	end := h.end()
	recent := h.between(max(end-cpuRecent, 0), end)
	c.full = recent.seconds > 0 && cpus > 0 && recent.cpu/recent.seconds >= cpuFull*cpus
	long := h.between(max(end-cpuFor, 0), end)
	if c.full || long.busy < math.Max(cpuSlotSeconds, cpuBusy*slots*long.seconds) || long.cpu <= 0 {
		return
	}
	c.known, c.cost = true, long.cpu/long.busy
}

// limit returns how many workers can be busy at a time with the usable CPU.
func (c *cpuCost) limit(cpus, slotsEach float64) int {
	if !c.known || cpus <= 0 {
		return math.MaxInt
	}
	return max(1, workers(cpus/c.cost, slotsEach))
}

// memoryLimit returns how many workers fit into the memory: the ready ones, and as many
// as fit into the rest. Booting workers count among the latter in full, for they do not
// use their memory yet.
func memoryLimit(now *Sample) int {
	if now.MemoryLimit <= 0 || now.MemoryEach <= 0 {
		return math.MaxInt
	}
	left := now.MemoryLimit - now.MemoryLimit/memoryMargin - now.MemoryUsed
	return now.Ready + int(max(left, 0)/now.MemoryEach)
}
