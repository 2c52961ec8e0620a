package scale

import (
	"fmt"
	"time"
)

const (
	// reaction is the time until a load is known and a worker is asked for.
	reaction = time.Second
	// usualBoot is the assumed boot time before a worker has booted.
	usualBoot = 5 * time.Second
	// leastBoot keeps workers that boot very fast from making every wait a backlog.
	leastBoot = 500 * time.Millisecond
	// chances times the mean run time over the free slots is a wait that chance alone
	// does not cause within days.
	chances = 30
	// downEvery is the least time between one worker less and the next.
	downEvery = 10 * time.Second
	// maxChanges bounds the changes in a minute.
	maxChanges = 12
)

// Options bound the number that a Scaler may want.
type Options struct {
	// Min and Max are numbers of workers, 1 <= Min <= Max.
	Min, Max int
}

// Sample is the counters and states at one moment. Counters only grow; one that goes
// back makes the Scaler forget the past. As JSON it is a part of admin.Live.
type Sample struct {
	Now time.Duration `json:"now_ns"` // monotonic

	Arrivals uint64        `json:"arrivals"`     // calls that have asked for a slot, refused ones included
	Served   uint64        `json:"served"`       // calls that have had a slot and given it back
	SlotTime time.Duration `json:"slot_time_ns"` // sum of the times that calls have had slots, running ones until now
	Shed     uint64        `json:"shed"`         // calls refused because they would have been late, had waited too long, or too many waited
	Waiting  int           `json:"waiting"`      // waiting calls
	Oldest   time.Duration `json:"oldest_ns"`    // the longest wait of a waiting call
	Long     int           `json:"long"`         // running standing calls: streams, which last whatever the arrivals do

	Ready   int           `json:"ready"`   // workers that take calls
	Booting int           `json:"booting"` // workers that will take calls
	Failing int           `json:"failing"` // workers that end again and again
	Slots   int           `json:"slots"`   // of all ready workers
	Others  int           `json:"others"`  // slots of endpoints that cabrank does not run itself
	Boot    time.Duration `json:"boot_ns"` // how long a worker takes to become ready; 0 is not known

	CPU         time.Duration `json:"cpu_ns"`             // CPU time of the ready workers
	CPUs        float64       `json:"cpus"`               // CPU seconds per second that they can have; 0 is not known
	MemoryLimit int64         `json:"memory_limit_bytes"` // 0 is not known
	MemoryUsed  int64         `json:"memory_used_bytes"`
	MemoryEach  int64         `json:"memory_each_bytes"` // of one worker; 0 is not known
}

// Decision is how many workers are wanted.
type Decision struct {
	Wanted  int
	Changed bool    // Wanted has changed
	Reason  Reason  // for the number, or why it is not larger
	Words   string  // the reason for people; not empty if Changed, or if more are needed but not wanted
	Load    float64 // mean number of slots that the calls keep busy
}

// Scaler decides how many workers are wanted.
//
// Shape: New, then Decide for each sample, about four times a second.
// Concurrency: one goroutine at a time.
type Scaler struct {
	options Options
	demand  demand
	cost    cpuCost
	hold    hold
	recent  [maxChanges]time.Duration // when the number was changed last
	changes int
	last    Sample
	began   bool
	policy
	wanted  int
	each    float64 // slots of a worker
	long    time.Duration
	shedAt  time.Duration // when a refusal last asked for more
	decided Decision
}

// New returns a Scaler that first wants wanted workers, moved into the bounds.
func New(o Options, wanted, slotsEach int) *Scaler {
	s := &Scaler{options: o, policy: policy{headroom, roomToGo}, each: float64(max(slotsEach, 1))}
	s.wanted = min(max(wanted, o.Min), o.Max)
	s.decided = Decision{Wanted: s.wanted}
	s.hold.reset()
	return s
}

// Bound changes the bounds. The wanted number moves into them with the next
// Decision.
func (s *Scaler) Bound(o Options) { s.options = o }

// Set sets the wanted number by hand. The load seen so far stays known.
func (s *Scaler) Set(n int, now time.Duration) {
	s.wanted = n
	s.hold.raised(now)
}

// Decide takes in a sample and returns the decision. Samples that come less than 200 ms
// after the last one change nothing.
func (s *Scaler) Decide(now Sample) Decision {
	if !s.observe(&now) {
		s.decided.Wanted, s.decided.Changed = s.wanted, false
		return s.decided
	}
	l := s.demand.measure(boot(&now))
	need := s.need(&now, l)
	calm := s.workersFor(l.atMost(), &l, s.roomToGo, &now)
	s.hold.note(min(max(need.workers, calm), s.cost.limit(now.CPUs, s.each)), now.Now)
	s.decided = s.move(&now, need)
	s.decided.Load = l.slots()
	s.last = now
	return s.decided
}

// observe takes in a sample. It reports false if the sample came too soon.
func (s *Scaler) observe(now *Sample) bool {
	long := s.long
	if s.began {
		long += time.Duration(max(s.last.Long, 0)) * max(now.Now-s.last.Now, 0)
	}
	if now.Ready > 0 && now.Slots > 0 {
		s.each = float64(now.Slots) / float64(now.Ready)
	}
	kept := s.demand.add(mark{
		at: now.Now, arrivals: now.Arrivals, served: now.Served,
		slotTime: now.SlotTime, standing: long, cpu: now.CPU,
	})
	if !kept {
		return false
	}
	s.long = long
	if !s.began {
		s.began, s.last = true, *now
	}
	if s.demand.history.end() == 0 { // the history was emptied
		s.hold.restart(now.Now)
	}
	s.cost.learn(&s.demand.history, now.CPUs, float64(now.Slots))
	return true
}

// need is how many workers the load needs, and why.
type need struct {
	workers int
	reason  Reason
	words   string
}

// need computes the numbers of workers for all reasons; the largest counts.
func (s *Scaler) need(now *Sample, l estimate) need {
	n := need{workers: s.workersFor(l.surely(), &l, s.headroom, now), reason: Load}
	switch ahead := s.workersFor(l.slotsAhead(), &l, s.headroom, now); {
	case ahead > n.workers:
		n.workers, n.reason = ahead, Trend
	case now.Now-l.since <= riseFor && l.since > 0:
		n.reason = Rise
	}
	if by := s.forBacklog(now, l); by > n.workers {
		n.workers, n.reason = by, Backlog
	}
	if by := s.forShed(now, l); by > n.workers {
		n.workers, n.reason = by, Shed
	}
	if n.workers > s.wanted {
		n.words = s.explain(n.reason, now, l)
	}
	return n
}

// riseFor is how long after a sudden rise it is the reason of changes.
const riseFor = 5 * time.Second

// forBacklog is how many workers are needed if new calls would wait for longer than a
// worker takes to start, and for longer than chance can explain: for the load, and to
// serve the waiting calls within that time.
func (s *Scaler) forBacklog(now *Sample, l estimate) int {
	slots := float64(now.Slots + now.Others)
	if now.Waiting == 0 || slots == 0 {
		return 0
	}
	wait := max(now.Oldest.Seconds(), float64(now.Waiting)*l.service/slots)
	limit := boot(now).Seconds()
	if free := slots - l.slots(); free > 0 {
		limit = max(limit, chances*l.service*min((1+l.dispersion)/2, mostPeaked)/free)
	}
	switch {
	case wait <= limit || now.Booting > 0:
		return 0 // the booting workers come first
	case l.service == 0:
		return now.Ready + 1 // calls that never end give no number
	}
	backlog := float64(now.Waiting) * l.service / boot(now).Seconds()
	return min(workers(l.slots()+backlog-float64(now.Others), s.each), 2*now.Ready)
}

// forShed is how many workers are needed if calls have just been refused for lack of
// time: one more than wanted, as long as chance may be the cause.
func (s *Scaler) forShed(now *Sample, l estimate) int {
	if now.Shed <= s.last.Shed || now.Ready < s.wanted || s.shedAt > 0 && now.Now-s.shedAt < boot(now)+reaction {
		return 0
	}
	return min(s.wanted+1, s.workersFor(l.slots(), &l, roomToShed, now))
}

// workersFor is how many workers a load needs with the headroom beta, beside the slots of
// other endpoints.
func (s *Scaler) workersFor(slots float64, l *estimate, beta float64, now *Sample) int {
	return workers(staff(slots, l.dispersion, beta)-float64(now.Others), s.each)
}

// move changes the wanted number towards the need, as far as it may.
func (s *Scaler) move(now *Sample, n need) Decision {
	before := s.wanted
	want, reason, words := s.aim(now, n)
	if want != before && s.tooOften(now.Now) {
		return Decision{Wanted: before, Reason: Often}
	}
	s.wanted = want
	switch {
	case want > before:
		s.hold.raised(now.Now)
	case want < before:
		s.hold.lowered(now.Now)
	default:
		return Decision{Wanted: want, Reason: reason, Words: words}
	}
	if reason == Shed {
		s.shedAt = now.Now
	}
	s.recent[s.changes%maxChanges] = now.Now
	s.changes++
	return Decision{Wanted: want, Changed: true, Reason: reason, Words: words}
}

// aim is the number that would be wanted if changes were free.
func (s *Scaler) aim(now *Sample, n need) (want int, reason Reason, words string) {
	switch {
	case s.wanted < s.options.Min:
		return s.options.Min, Minimum, fmt.Sprintf("at least %d are to run", s.options.Min)
	case s.wanted > s.options.Max:
		return s.options.Max, Maximum, fmt.Sprintf("at most %d may run", s.options.Max)
	case n.workers > s.wanted:
		limit, by := s.limit(now)
		if limit < n.workers {
			return max(limit, s.wanted), by, n.words + ", as far as " + by.allows()
		}
		return n.workers, n.reason, n.words
	case s.wanted > s.options.Min && s.hold.fewer(s.wanted, now.Now):
		return s.wanted - 1, LessLoad, fmt.Sprintf("the load has fitted into %d for %v", s.hold.most(now.Now), s.hold.length)
	}
	return s.wanted, Enough, ""
}

// limit is how many workers may be wanted now, and what limits them.
func (s *Scaler) limit(now *Sample) (limit int, by Reason) {
	limit, by = s.options.Max, Maximum
	if cpu := s.cost.limit(now.CPUs, s.each); cpu < limit {
		limit, by = cpu, CPU
	}
	if memory := memoryLimit(now); memory < limit {
		limit, by = memory, Memory
	}
	if s.cost.full && s.wanted < limit {
		limit, by = s.wanted, CPU
	}
	if now.Ready == 0 || now.Failing*4 > s.wanted {
		limit, by = s.wanted, NotReady
	}
	return limit, by
}

// tooOften reports whether a change now would be one too many in a minute.
func (s *Scaler) tooOften(now time.Duration) bool {
	return s.changes >= maxChanges && now-s.recent[s.changes%maxChanges] < time.Minute
}

// explain returns in words why more are needed.
func (s *Scaler) explain(reason Reason, now *Sample, l estimate) string {
	switch reason {
	case Rise:
		return fmt.Sprintf("calls rose from %.3g to %.3g per second, which keep %.3g slots busy", s.demand.before, l.rate, l.slots())
	case Trend:
		return fmt.Sprintf("calls rise from %.3g to %.3g per second until a worker is ready, which will keep %.3g slots busy", l.rate, l.ahead, l.slotsAhead())
	case Backlog:
		return fmt.Sprintf("%d calls wait, the oldest for %v, longer than a worker takes to start", now.Waiting, now.Oldest.Round(time.Millisecond))
	case Shed:
		return fmt.Sprintf("%d calls were refused for want of time", now.Shed-s.last.Shed)
	default:
		return fmt.Sprintf("%.3g calls per second of %.3g s keep %.3g slots busy", l.rate, l.service, l.slots())
	}
}

// boot is how long a worker takes to start, as far as is known.
func boot(now *Sample) time.Duration {
	if now.Boot <= 0 {
		return usualBoot
	}
	return max(now.Boot, leastBoot)
}
