package rank

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// enough is how many runs must have been seen before they decide anything (R16).
	enough = 20
	// memory is how many runs a method remembers at most: at this number each begins to
	// count half.
	memory = 1 << 14
	// halfLife is the time after which each run counts half, so that nothing that was
	// learned locks a method out for ever (R16).
	halfLife = 10 * time.Second
	// halfLifeRuns and halfLifeMost make halfLife longer for long calls: a run of an
	// hour is not forgotten a minute after it has ended (R8).
	halfLifeRuns = 4
	halfLifeMost = 10 * time.Minute
	// refreshEvery is how many runs may be missing in an Estimate.
	refreshEvery = 32
)

// Method is what the rank has learned of the calls of one method: how long they
// occupy a slot.
//
// Life: Rank.Method makes it, for ever; its caller bounds their number.
// Concurrency: Estimate may be called from anywhere; the rest belongs to the rank's lock.
type Method struct {
	name string

	// See streams.go.
	uniform bool // its calls are of one kind, so that one tells about the others
	brief   bool // the median of the last runs is below longAfter
	goesOn  bool // an answer was a stream
	running int  // calls that have a slot

	runs         runTimes
	unpublished  int           // runs since the estimates were made
	decayed      time.Duration // when the runs last faded
	refusedSince int           // calls to be refused since the last one that was let through
	cut          int           // runs that deadlines have cut since one ended

	// The values of Estimate, in nanoseconds; written under the rank's lock.
	samples, mean, median, p95, longest atomic.Int64
}

// Estimate is what has been learned of a method's run times: the time from the
// grant to the end of the worker's answer. Older runs count less.
type Estimate struct {
	// Samples is the number of runs behind the other values; faded runs count in part.
	Samples int
	// Mean, Median and P95 are 0 if nothing has been learned. The quantiles are
	// usually a tenth too high or too low at most.
	Mean, Median, P95 time.Duration
	// Longest is at least as long as any run that is not forgotten.
	Longest time.Duration
}

// Estimate returns what has been learned. It takes no lock; the values may be
// of different moments.
func (m *Method) Estimate() Estimate {
	return Estimate{
		Samples: int(m.samples.Load()),
		Mean:    time.Duration(m.mean.Load()),
		Median:  time.Duration(m.median.Load()),
		P95:     time.Duration(m.p95.Load()),
		Longest: time.Duration(m.longest.Load()),
	}
}

// known reports whether enough runs were seen to decide by them. Calls of unknown
// methods have too little in common.
func (m *Method) known() bool { return m.name != "" && m.samples.Load() >= enough }

// usual is the median run time; 0 if that is not known.
func (m *Method) usual() time.Duration {
	if !m.known() {
		return 0
	}
	return time.Duration(m.median.Load())
}

// expectedRun is the mean time that a call has its slot.
func (m *Method) expectedRun() time.Duration { return time.Duration(m.mean.Load()) }

// observe learns one run.
func (m *Method) observe(run, now time.Duration) {
	m.fade(now)
	m.cut = 0
	m.runs.add(run)
	if m.unpublished++; m.unpublished >= refreshEvery || m.runs.samples() < 2*refreshEvery {
		m.estimate()
	}
}

// observeAtLeast learns from a call that was cancelled while it ran: its run would have
// been longer. That tells something only if most runs are shorter and longer ones have
// been seen to end: otherwise the call may have been lost in a worker that hangs, and
// its run tells only how patient its caller was.
func (m *Method) observeAtLeast(run, now time.Duration) {
	if run > time.Duration(m.p95.Load()) && run < time.Duration(m.longest.Load()) {
		m.observe(run, now)
	}
}

// halves returns the time after which a run counts half.
func (m *Method) halves() time.Duration {
	return max(halfLife, min(halfLifeRuns*m.expectedRun(), halfLifeMost))
}

// fade lets runs count less as time goes by.
func (m *Method) fade(now time.Duration) {
	half := m.halves()
	if now < m.decayed+half && m.runs.samples() < memory {
		return
	}
	for m.decayed+half <= now && m.runs.total > 0 {
		m.runs.halve()
		m.decayed += half
	}
	m.decayed = max(m.decayed, now-half+1)
	if m.runs.samples() >= memory {
		m.runs.halve()
	}
	m.estimate()
}

// estimate publishes what is known.
func (m *Method) estimate() {
	m.unpublished = 0
	r := &m.runs
	m.samples.Store(int64(r.samples()))
	if r.total == 0 {
		for _, v := range []*atomic.Int64{&m.mean, &m.median, &m.p95, &m.longest} {
			v.Store(0)
		}
		return
	}
	m.mean.Store(int64(r.sum / float64(r.total)))
	median, p95, longest := r.quantiles()
	m.median.Store(int64(median))
	m.brief = median < longAfter
	m.p95.Store(int64(p95))
	m.longest.Store(int64(longest))
}

// letThrough reports whether a call that should be refused is let through all the same: one
// in a hundred is, or nothing would be learned of a method whose calls are all refused
// (R16).
func (m *Method) letThrough() bool {
	m.refusedSince++
	if m.refusedSince < 100 {
		return false
	}
	m.refusedSince = 0
	return true
}

// runTimes counts durations in buckets of a quarter of an octave: from 1 µs to an hour.
// The first and the last bucket also count what is outside.
type runTimes struct {
	counts [octaves * 4]uint32 // each run counts shares at first
	total  int                 // sum of counts
	sum    float64             // nanoseconds times counts
}

const (
	// perRun is the count of one new run. It bounds how far a rare run can fade before
	// it is forgotten while common ones are not.
	perRun  = 64
	octaves = 32
	// firstOctave is the exponent of the first bucket: 1,024 ns.
	firstOctave = 10
)

// bucketOf returns the bucket of d: four for each doubling. The difference
// between the buckets of two durations is four times the logarithm (base 2) of
// their ratio.
func bucketOf(d time.Duration) int {
	n := uint64(max(d, 1<<firstOctave))
	octave := bits.Len64(n) - 1
	quarter := int(n>>(octave-2)) & 3
	return min((octave-firstOctave)*4+quarter, octaves*4-1)
}

// lowest returns the lower end of a bucket.
func lowest(bucket int) time.Duration {
	octave, quarter := bucket/4+firstOctave, time.Duration(bucket%4)
	return (4 + quarter) << (octave - 2)
}

// samples returns the number of runs behind the counts.
func (r *runTimes) samples() int { return r.total / perRun }

func (r *runTimes) add(d time.Duration) {
	r.counts[bucketOf(d)] += perRun
	r.total += perRun
	r.sum += perRun * float64(d)
}

// halve halves the count of every run; a run that has faded to nothing is forgotten.
func (r *runTimes) halve() {
	before := r.total
	r.total = 0
	for i, n := range r.counts {
		r.counts[i] = n / 2
		r.total += int(n / 2)
	}
	r.sum *= float64(r.total) / float64(max(before, 1))
}

// quantiles returns the median and the 95 % quantile, with the runs of a bucket spread
// evenly over it, and the upper end of the last bucket that is not empty.
func (r *runTimes) quantiles() (median, p95, longest time.Duration) {
	half, most := float64(r.total)/2, float64(r.total)*0.95
	seen := 0.0
	for i, n := range r.counts {
		if n == 0 {
			continue
		}
		low, high, count := lowest(i), lowest(i+1), float64(n)
		within := func(rank float64) time.Duration {
			return low + time.Duration((rank-seen)/count*float64(high-low))
		}
		if seen < half && half <= seen+count {
			median = within(half)
		}
		if seen < most && most <= seen+count {
			p95 = within(most)
		}
		seen += count
		longest = high
	}
	return median, p95, longest
}
