package traffic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// Loop is the kind of a load.
type Loop string

// The two kinds, as they stand in JSON.
const (
	OpenLoop   Loop = "open"
	ClosedLoop Loop = "closed"
)

// Record is what one run has measured of the calls that were due in its counted
// part. Each of them is in it once:
//
//	Due = Calls (answered and failed) + Unsent + Open
//
// In JSON durations are nanoseconds.
type Record struct {
	// Loop labels the record: those of a closed loop are not ranked against those of an
	// open one. It waits for answers: while a service is slow it asks less, so that its
	// latencies leave out what the callers of an open loop would have waited.
	Loop    Loop          `json:"loop"`
	Plan    string        `json:"plan"`           // describes the load
	Counted time.Duration `json:"counted_ns"`     // of the counted part, shorter than planned if Cut
	Cut     bool          `json:"cut_short"`      // somebody ended the run early
	Work    int64         `json:"work,omitempty"` // calls to make; 0 if not given

	Due int64 `json:"due"` // calls that were to start
	// Calls are those that ended, with their latency from the intended start (in
	// a closed loop: from the start).
	Calls    *latency.Calls     `json:"calls"`
	Unsent   Unsent             `json:"unsent"`
	Open     *latency.Histogram `json:"open"` // ages of those that had not ended when the grace was over
	Failures []Failure          `json:"failures"`
	First    *latency.Histogram `json:"first_message"` // how long that of a stream took, from the intended start
	// Lag is how late calls were sent by the generator itself, in an open loop; a
	// call that was too late to be sent counts with its age.
	Lag *latency.Histogram `json:"send_lag"`
	// Watched is the CPU with which the generator looked at the clock, warm-up included, to
	// send calls at their moments.
	Watched time.Duration `json:"watched_ns,omitempty"`

	// Came is how many answers came in the counted part, whenever their calls were
	// due: the throughput.
	Came     int64  `json:"came"`
	Sent     Volume `json:"sent"` // messages of Calls and Open
	Received Volume `json:"received"`
	Workers  Shares `json:"workers"`
	Opened   int64  `json:"connections_opened"` // by the client, warm-up included
	// Counts is what the client has counted from the start of the run to its end,
	// warm-up included, if it is a Counter.
	Counts []Count `json:"counts,omitempty"`
	// MostUnderWay is the highest number of calls that were under way at a time;
	// of merged records, the sum.
	MostUnderWay int64    `json:"most_under_way"`
	Warmup       Warmup   `json:"warmup"`
	Timeline     Timeline `json:"timeline"`
}

// Unsent counts calls of an open loop that could not be sent.
type Unsent struct {
	Full int64 `json:"full"` // found Plan.Most calls under way
	Late int64 `json:"late"` // had passed their deadline before they could be sent
	// Ages is how old they were at their deadline, or at the end of the run if
	// they had none: a caller would have waited at least so long.
	Ages *latency.Histogram `json:"ages"`
}

// Warmup counts the calls that are in no other figure.
type Warmup struct {
	Calls  int64 `json:"calls"`
	Failed int64 `json:"failed"`
}

func newRecord(p Plan) *Record {
	r := &Record{
		Loop: ClosedLoop, Plan: p.String(), Work: int64(p.Calls),
		Calls: latency.NewCalls(), Unsent: Unsent{Ages: latency.New()}, Open: latency.New(),
		First: latency.New(), Lag: latency.New(),
		Failures: []Failure{}, Workers: Shares{}, Timeline: newTimeline(p.Duration()),
	}
	if p.Open() {
		r.Loop = OpenLoop
	}
	return r
}

// Latency returns the latencies of all calls but the failed ones: those that were not
// sent or not answered are in it with the age that they had reached. It is what a
// quantile should be taken of, for without them a service that hangs looks fast.
func (r *Record) Latency() *latency.Histogram {
	all := latency.New()
	all.Merge(r.Calls.Answered)
	all.Merge(r.Unsent.Ages)
	all.Merge(r.Open)
	return all
}

// Whole reports whether the given number of calls was made and has ended, well or not.
// Counted is then how long that took.
func (r *Record) Whole() bool { return r.Work > 0 && r.Due == r.Work && r.Open.Count() == 0 }

// FailedShare is the share of the calls that were due and not answered: failed,
// unsent or open. 0 of nothing.
func (r *Record) FailedShare() float64 {
	if r.Due == 0 {
		return 0
	}
	return float64(r.Due-r.Calls.Answered.Count()) / float64(r.Due)
}

// PerSecond is the throughput: answers that came in each second of the counted part.
func (r *Record) PerSecond() float64 {
	if r.Counted <= 0 {
		return 0
	}
	return float64(r.Came) / r.Counted.Seconds()
}

// Merge adds the record of another part of the same plan that ran at the same time.
// Nothing is lost, but for texts and names above their bounds. other stays as it is.
//
// Errors: one line for records of different plans; r is then as it was.
func (r *Record) Merge(other *Record) error {
	if r.Loop != other.Loop || r.Plan != other.Plan {
		return fmt.Errorf("records of different plans do not merge: %q and %q", r.Plan, other.Plan)
	}
	if err := r.Timeline.merge(&other.Timeline); err != nil {
		return err
	}
	r.Counted = max(r.Counted, other.Counted)
	r.Cut = r.Cut || other.Cut
	r.Due += other.Due
	r.Calls.Merge(other.Calls)
	r.Unsent.Full += other.Unsent.Full
	r.Unsent.Late += other.Unsent.Late
	r.Unsent.Ages.Merge(other.Unsent.Ages)
	r.Open.Merge(other.Open)
	r.First.Merge(other.First)
	r.Lag.Merge(other.Lag)
	r.Came += other.Came
	r.Sent.add(other.Sent)
	r.Received.add(other.Received)
	r.Opened += other.Opened
	r.Counts = addCounts(r.Counts, other.Counts, 1)
	r.MostUnderWay += other.MostUnderWay
	r.Watched += other.Watched
	r.Warmup.Calls += other.Warmup.Calls
	r.Warmup.Failed += other.Warmup.Failed
	for worker, calls := range other.Workers {
		r.Workers.add(worker, calls, mostWorkers)
	}
	seen := collect(r.Failures)
	for _, f := range other.Failures {
		seen.add(f.Code, f.Message, f.Calls)
	}
	r.Failures = seen.list()
	return nil
}

// addCounts adds n times the others by their names.
func addCounts(to, others []Count, n int64) []Count {
	sum := slices.Clone(to)
	for _, other := range others {
		i := slices.IndexFunc(sum, func(c Count) bool { return c.Name == other.Name })
		if i < 0 {
			i = len(sum)
			sum = append(sum, Count{Name: other.Name})
		}
		sum[i].N += n * other.N
	}
	return sum
}

// UnmarshalJSON reads what encoding/json has written of a Record.
//
// Errors: one line, for parts that are missing and figures that do not add up.
func (r *Record) UnmarshalJSON(data []byte) error {
	type plain Record // without this method
	var read plain
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	whole := Record(read)
	if err := whole.check(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	*r = whole
	return nil
}

func (r *Record) check() error {
	if r.Loop != OpenLoop && r.Loop != ClosedLoop {
		return fmt.Errorf("loop %.40q: want open or closed", string(r.Loop))
	}
	if r.Calls == nil || r.Calls.Answered == nil || r.Calls.Failed == nil || r.Unsent.Ages == nil || r.Open == nil || r.First == nil || r.Lag == nil || r.Workers == nil {
		return fmt.Errorf("calls, ages, open calls, first messages, lag or workers are missing")
	}
	unsent := r.Unsent.Full + r.Unsent.Late
	if r.Unsent.Full < 0 || r.Unsent.Late < 0 || unsent != r.Unsent.Ages.Count() {
		return fmt.Errorf("%d calls are unsent, with the ages of %d", unsent, r.Unsent.Ages.Count())
	}
	if sum := r.Calls.Count() + unsent + r.Open.Count(); sum != r.Due {
		return fmt.Errorf("%d calls were due, and %d are in it", r.Due, sum)
	}
	if n := len(r.Timeline.Intervals); n > mostIntervals {
		return fmt.Errorf("a timeline of %d intervals, at most %d are read", n, mostIntervals)
	}
	return nil
}

const (
	mostTexts  = 20  // of failures are told apart: they may hold addresses and numbers
	mostText   = 200 // bytes of a text are kept
	otherTexts = "(other messages)"
)

// Failure is one way to fail. The sum of all is the number of failed calls.
type Failure struct {
	Code    uint32 `json:"code"`
	Message string `json:"message"`
	Calls   int64  `json:"calls"`
}

// failures counts by code and text.
type failures map[Failure]int64 // keys without Calls

func (f failures) add(code uint32, message string, calls int64) {
	if len(message) > mostText {
		message = message[:mostText]
	}
	key := Failure{Code: code, Message: message}
	if _, known := f[key]; !known && len(f) >= mostTexts {
		key.Message = otherTexts
	}
	f[key] += calls
}

// list is sorted: the most frequent first.
func (f failures) list() []Failure {
	all := []Failure{}
	for key, calls := range f {
		key.Calls = calls
		all = append(all, key)
	}
	slices.SortFunc(all, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return all
}

// collect is the reverse of list.
func collect(all []Failure) failures {
	f := failures{}
	for _, one := range all {
		f.add(one.Code, one.Message, one.Calls)
	}
	return f
}

const (
	mostWorkers       = 1000 // are told apart: their names come from answers, anything may be in them
	mostWorkersByTime = 100  // the same for each interval of a timeline, of which there are many
	mostName          = 200  // bytes of a name are kept
	others            = "(others)"
)

// Shares is how many calls each worker has answered, by name. Calls whose worker is
// not known are not in it.
type Shares map[string]int64

// add counts calls of a worker, with at most so many workers told apart.
func (s Shares) add(worker string, calls int64, most int) {
	if len(worker) > mostName {
		worker = worker[:mostName]
	}
	if _, known := s[worker]; !known && len(s) >= most {
		worker = others
	}
	s[worker] += calls
}

// Busiest are the workers by how many calls they had.
func (s Shares) Busiest() []string {
	return slices.SortedFunc(maps.Keys(s), func(a, b string) int { return cmp.Or(cmp.Compare(s[b], s[a]), cmp.Compare(a, b)) })
}

// Variation is the coefficient of variation of the shares: their standard deviation
// over their mean, 0 when all are equal. workers is how many there are, so that those
// without any call count; it is ignored if fewer than those seen. 0 of nothing.
func (s Shares) Variation(workers int) float64 {
	n := float64(max(workers, len(s)))
	var sum, squares float64
	for _, calls := range s {
		sum += float64(calls)
	}
	if sum == 0 {
		return 0
	}
	mean := sum / n
	for _, calls := range s {
		squares += (float64(calls) - mean) * (float64(calls) - mean)
	}
	squares += (n - float64(len(s))) * mean * mean
	return math.Sqrt(squares/n) / mean
}

// mostIntervals bounds a timeline: ten minutes by second, longer plans in longer intervals.
const mostIntervals = 600

// Timeline tells what became of the calls by the moment at which they were due. The
// calls of a pause stand in it where the pause was, not where it ended.
type Timeline struct {
	// Step is the length of an interval: a second, or more whole seconds where
	// there would be more than 600 intervals.
	Step      time.Duration `json:"step_ns"`
	Intervals []Interval    `json:"intervals"` // from the counted part on
}

// Interval is a stretch of a timeline.
type Interval struct {
	Due      int64 `json:"due"` // calls: the sum of the four below
	Answered int64 `json:"answered"`
	Failed   int64 `json:"failed"`
	Unsent   int64 `json:"unsent"`
	Open     int64 `json:"open"`
	// Came is how many answers came in it, whenever their calls were due, those
	// of the warm-up, too: the throughput.
	Came int64 `json:"came"`
	// Workers is who has answered the calls that were due in it, well or not: at
	// most 100 by name.
	Workers Shares `json:"workers,omitempty"`
}

func newTimeline(counted time.Duration) Timeline {
	step := time.Second
	if counted > mostIntervals*time.Second {
		step = ((counted+mostIntervals-1)/mostIntervals + time.Second - 1).Truncate(time.Second)
	}
	return Timeline{Step: step, Intervals: make([]Interval, (counted+step-1)/step)}
}

// at returns the interval of a moment since the start of the counted part; the
// grid may bring a call to its very end, which belongs to the last interval.
func (t *Timeline) at(since time.Duration) *Interval {
	return &t.Intervals[min(max(int(since/t.Step), 0), len(t.Intervals)-1)]
}

func (t *Timeline) merge(other *Timeline) error {
	if t.Step != other.Step || len(t.Intervals) != len(other.Intervals) {
		return fmt.Errorf("timelines of %d intervals of %v and %d of %v: only parts of one plan merge", len(t.Intervals), t.Step, len(other.Intervals), other.Step)
	}
	for i := range t.Intervals {
		t.Intervals[i].merge(&other.Intervals[i])
	}
	return nil
}

func (i *Interval) merge(other *Interval) {
	i.Due += other.Due
	i.Answered += other.Answered
	i.Failed += other.Failed
	i.Unsent += other.Unsent
	i.Open += other.Open
	i.Came += other.Came
	for worker, calls := range other.Workers {
		i.worked(worker, calls)
	}
}

func (i *Interval) worked(worker string, calls int64) {
	if i.Workers == nil {
		i.Workers = Shares{}
	}
	i.Workers.add(worker, calls, mostWorkersByTime)
}

const (
	mostLagShare = 0.10 // of a latency
	mostBusy     = 0.85 // of a core
	// lateBeyond is the share of the calls beyond a quantile that may have been sent
	// late: each of them may have held up others.
	lateBeyond = 0.10

	lagDigits = time.Microsecond // in words
)

// GeneratorLimits says in a line why the generator, not the service, may have set the
// figures of a record, or "". Such a record is kept and marked, and not judged.
//
// The rule: the core of the generator was busy for 85 % of the time or more, or the send lag is
// above a tenth of the latency that it is in: of the mean, or of a quantile that there are calls
// enough for. busy is that share, 0 to 1, of the busiest core of the generator; 0 if not known.
func (r *Record) GeneratorLimits(busy float64) string {
	if why := TooBusy(busy); why != "" {
		return why
	}
	latencies := r.Latency()
	for _, share := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		q, lag := latencies.Quantile(share), r.LagAt(share)
		if most := mostLag(q.Value); !q.TooFew && lag > most {
			return fmt.Sprintf("%s: it is %v for the slowest calls, %v is allowed (a tenth of p%g)", SentLate, lag.Round(lagDigits), most.Round(lagDigits), 100*share)
		}
	}
	return r.LateOnAverage()
}

// mostLag is how much of a latency may be send lag.
func mostLag(latency time.Duration) time.Duration {
	return time.Duration(mostLagShare * float64(latency))
}

// LateOnAverage says in a line that the mean latency has more send lag in it than a tenth,
// or "". Then no figure of the record is judged, those without a latency included.
func (r *Record) LateOnAverage() string {
	lag, most := r.Lag.Mean(), mostLag(r.Latency().Mean())
	if lag <= most {
		return ""
	}
	return fmt.Sprintf("%s: it is %v on average, %v is allowed (a tenth of the mean)", SentLate, lag.Round(lagDigits), most.Round(lagDigits))
}

// LateAt reports whether a quantile of the latencies has more send lag in it than a tenth.
func (r *Record) LateAt(share float64, latency time.Duration) bool {
	return r.LagAt(share) > mostLag(latency)
}

// SentLate is how GeneratorLimits begins where it speaks of send lag.
const SentLate = "calls were sent late by the generator"

// TooBusy says in a line that the generator had too little CPU, or "".
func TooBusy(busy float64) string {
	if busy < mostBusy {
		return ""
	}
	return fmt.Sprintf("the generator's core was %.0f %% busy, %.0f %% are allowed", 100*busy, 100*mostBusy)
}

// LagAt is how much of a quantile of the latencies may be send lag: a tenth of the calls
// beyond the quantile were sent later than that. 1 is the longest.
func (r *Record) LagAt(share float64) time.Duration { return r.Lag.At(1 - lateBeyond*(1-share)) }
