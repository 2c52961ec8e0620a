package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Load is one point of load.
type Load struct {
	Name  string `key:"name"`  // tells it from the others: "500/s" if the file does not say
	About string `key:"about"` // what it is for, in a line
	// Method, Data and Messages are as those of the scenario; empty: they are those.
	Method   string          `key:"method"`
	Data     string          `key:"data"`
	Messages int             `key:"messages" range:"0..100000"`
	Options  traffic.Options `key:",inline"` // the load; their Rate is empty with AtOnce
	// AtOnce is how many calls are due at the same moment, again after each Every; 0
	// is for other loads.
	AtOnce int
	Every  time.Duration `key:"every" range:"0s..24h"`
	// Takes is about how long a load with a given number of calls takes: its Duration
	// is the longest that it may take.
	Takes     time.Duration
	Rounds    int      `key:"rounds" range:"1..1000"`  // blocks of each arm; 0: as many as the scenario says
	Workers   int      `key:"workers" range:"1..100"`  // in place of those of each arm; 0 leaves it
	Processes int      `key:"processes" range:"1..64"` // generators, at least; 0 leaves it to the arms
	Arms      []string `key:"arms"`                    // those that run at this load; none: all
	Events    []Event  `key:"events"`                  // what happens meanwhile, in the order of time
}

// Do is what happens.
type Do string

// The events.
const (
	DoStop   Do = "stop"   // a worker stands still (SIGSTOP) for a while
	DoKill   Do = "kill"   // a worker is killed (SIGKILL)
	DoSlow   Do = "slow"   // workers are slower for a while
	DoAdd    Do = "add"    // one more worker
	DoRemove Do = "remove" // a worker is asked to leave (SIGTERM)
	DoRoll   Do = "roll"   // all workers are replaced, one after the other
	DoBurst  Do = "burst"  // more load for a while
)

// Event is a disturbance.
type Event struct {
	At     time.Duration `key:"at" range:"0s..24h"` // since the counted part began
	Do     Do            `key:"do,required" oneof:"stop|kill|slow|add|remove|roll|burst"`
	Worker int           `key:"worker" range:"1..100" word:"all=0"` // whom it meets, 1 for the first; 0 is all
	For    time.Duration `key:"for" range:"0s..24h"`                // for stop, slow and burst
	// By and Times are how much slower workers of the program "worker" are: a call takes
	// its time, By longer, Times as long. 0 and 1 leave it as it was.
	By    time.Duration `key:"by" range:"0s..24h"`
	Times float64       `key:"times" range:"1..10000"`
	More  float64       `key:"more" range:"0..1000000"` // what a burst adds: calls per second, or callers
}

// String says what it does: "worker-2 stopped for 1.5s".
func (e Event) String() string {
	who := "all workers"
	if e.Worker > 0 {
		who = fmt.Sprintf("worker-%d", e.Worker)
	}
	text := map[Do]string{
		DoRoll: "all workers replaced", DoStop: who + " stopped", DoSlow: who + " slow", DoKill: who + " killed",
		DoAdd: "a worker added", DoRemove: who + " removed", DoBurst: fmt.Sprintf("burst of %v more", e.More),
	}[e.Do]
	switch {
	case e.Do == DoKill && e.For > 0:
		text += fmt.Sprintf(", started again after %v", e.For)
	case e.Do == DoStop, (e.Do == DoSlow || e.Do == DoBurst) && e.For > 0:
		text += fmt.Sprintf(" for %v", e.For)
	}
	return text
}

// mostVolleys bounds how often calls are due together: each time is a piece of the plan.
const mostVolleys = 100_000

// Plan is the load as it runs with a seed.
//
// Errors: one line that begins with the key of the file.
func (l *Load) Plan(seed uint64) (traffic.Plan, error) {
	o := l.Options
	o.Seed = seed
	if l.AtOnce > 0 {
		if l.Every < time.Millisecond || o.Duration < l.Every {
			return traffic.Plan{}, fmt.Errorf("every %v: want a time from 1ms to the duration, %v", l.Every, o.Duration)
		}
		if n := o.Duration / l.Every; n > mostVolleys {
			return traffic.Plan{}, fmt.Errorf("every %v: these are %d times in %v, at most %d are possible", l.Every, n, o.Duration, mostVolleys)
		}
		o.Rate = "1" // replaced below
		o.Most = max(o.Most, l.AtOnce, traffic.DefaultMost)
	}
	p, err := o.Plan()
	if err != nil {
		return p, errors.New(strings.ReplaceAll(err.Error(), "--", ""))
	}
	if l.AtOnce > 0 {
		p.Rate = l.volleys()
	}
	for _, e := range l.Events {
		if e.Do != DoBurst {
			continue
		}
		p.Rate, p.Callers = raise(p.Rate, e), raise(p.Callers, e)
	}
	return p, nil
}

// tick is the finest time of a plan.
const tick = 100 * time.Microsecond

// volleys is the profile of calls that are due together: all of a volley within a tick,
// and nothing up to the next. A tick of silence comes first, so that a warm-up has one
// call per second. Half a call is due in each silence, so that what is lost in
// floating point never moves a call into another volley.
func (l *Load) volleys() (p traffic.Profile) {
	p = append(p, traffic.Piece{Length: tick})
	high := (float64(l.AtOnce) - 0.5) / tick.Seconds()
	low := 0.5 / (l.Every - tick).Seconds()
	for left := l.Options.Duration - tick; left >= tick; left -= l.Every {
		p = append(p, traffic.Piece{Length: tick, From: high, To: high})
		if rest := min(left, l.Every) - tick; rest > 0 {
			p = append(p, traffic.Piece{Length: rest, From: low, To: low})
		}
	}
	return p
}

// raise lifts a profile for the time of a burst. An empty profile stays empty.
func raise(p traffic.Profile, e Event) (raised traffic.Profile) {
	var begin time.Duration
	for _, piece := range p {
		for _, part := range cut(piece, e.At-begin, e.At+e.For-begin) {
			if begin >= e.At && begin < e.At+e.For {
				part.From += e.More
				part.To += e.More
			}
			raised = append(raised, part)
			begin += part.Length
		}
	}
	return raised
}

// cut divides a piece at moments since its beginning, which are in order.
func cut(piece traffic.Piece, at ...time.Duration) (parts []traffic.Piece) {
	var from time.Duration
	for _, t := range append(at, piece.Length) {
		if t > from && t <= piece.Length {
			parts = append(parts, traffic.Piece{Length: t - from, From: piece.At(from), To: piece.At(t)})
			from = t
		}
	}
	if piece.Length == 0 {
		parts = append(parts, piece)
	}
	return parts
}

// takesLonger is how many times longer than expected a given number of calls may take.
const takesLonger = 20

// Expected is how long the load will take, as far as that is known before.
func (l *Load) Expected() time.Duration {
	if l.Options.Calls > 0 && l.Takes > 0 {
		return l.Takes
	}
	return l.Length()
}

// Length is how long calls start for, warm-up included.
func (l *Load) Length() time.Duration {
	p, err := l.Plan(0)
	if err != nil {
		return 0
	}
	return p.Length()
}

// Open reports whether calls start at given moments, whoever has answered.
func (l *Load) Open() bool { return l.Options.Callers == 0 && l.Options.Stages == "" }

// Place is where the load stands on an axis: its highest rate, number of callers, or
// calls at once.
func (l *Load) Place() (x float64, unit string) {
	switch {
	case l.AtOnce > 0:
		return float64(l.AtOnce), "calls at once"
	case l.Options.Calls > 0: // its time is what counts: it has no place beside others
		return 0, ""
	}
	p, err := l.Plan(0)
	switch {
	case err != nil:
		return 0, ""
	case p.Open():
		return p.Rate.Most(), "calls/s"
	default:
		return p.Callers.Most(), "callers"
	}
}

// String describes the load in a line.
func (l *Load) String() string {
	p, err := l.Plan(0)
	if err != nil {
		return err.Error()
	}
	text := p.String()
	if l.AtOnce > 0 {
		text = fmt.Sprintf("open loop, %d calls at once every %v for %v", l.AtOnce, l.Every, l.Options.Duration)
		if l.Options.Timeout > 0 {
			text += fmt.Sprintf(", timeout %v", l.Options.Timeout)
		}
	} else if p.Open() {
		text = strings.Replace(text, ", seed 0", "", 1)
	}
	if l.Workers > 0 {
		text += fmt.Sprintf(", %d workers", l.Workers)
	}
	return text
}

// named is the name of a load that was given none.
func (l *Load) named() string {
	switch {
	case l.AtOnce > 0:
		return strconv.Itoa(l.AtOnce) + " at once"
	case l.Options.Callers > 0:
		return strconv.Itoa(l.Options.Callers) + " callers"
	case l.Options.Stages != "":
		return "stages " + l.Options.Stages
	case strings.ContainsAny(l.Options.Rate, "/:"):
		return l.Options.Rate
	default:
		return l.Options.Rate + "/s"
	}
}
