package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	// DefaultMost is how many calls may be under way: many more than a service
	// that works ever has, few enough for the memory of a small machine.
	DefaultMost  = 10_000
	usualGrace   = 5 * time.Second  // how long calls may take to end behind the end of the plan
	mostUnderWay = 1_000_000        // the most that may be asked for
	usualMost    = 10 * time.Minute // how long a number of calls may take where nobody says
)

// Options are a load as people ask for it. One of Rate, Callers and Stages is given.
type Options struct {
	Rate string // of an open loop: see ParseRate
	// Arrivals is how the calls of an open loop are spread: "constant" (the default, as in k6,
	// vegeta, ghz and wrk2) or "poisson", as from many callers who do not know each other.
	Arrivals string        `key:"arrivals" oneof:"constant|poisson"`
	Callers  int           // of a closed loop
	Stages   string        `key:"stages"`                // callers over time: see ParseStages
	Think    time.Duration `key:"think" range:"0s..24h"` // of a caller between two calls
	// RetryAtOnce leaves out the pause behind a call that failed: the caller calls
	// again at once, as a new call.
	RetryAtOnce bool `key:"retry_at_once"`
	// Calls ends a load of Callers after so many calls; 0 goes by Duration alone, which
	// otherwise is the longest that it may take. Of one Rate it says the length in place
	// of Duration: so many calls, in the mean if they come by chance.
	Calls int `key:"calls" range:"1..1000000000"`
	// Duration is the length of the counted part. It is left out if the pieces of
	// Rate or Stages have lengths.
	Duration time.Duration `key:"duration" range:"0s..24h"`
	// Warmup comes before it and is not counted: the first level of the plan, but
	// at least one caller, or one call per second.
	Warmup time.Duration `key:"warmup" range:"0s..24h"`
	// Timeout is how long after its intended start a call has its deadline; 0 for none.
	Timeout time.Duration `key:"timeout" range:"0s..24h"`
	Grace   time.Duration `key:"grace" range:"0s..24h"`            // see usualGrace, which 0 means
	Most    int           `key:"max_in_flight" range:"1..1000000"` // under way; 0 means DefaultMost
	Seed    uint64        // draws the arrivals: the same seed, the same arrivals
}

// Plan is a load that can run. It is made by Options.Plan and not changed, but for
// Part and Parts.
type Plan struct {
	Rate    Profile // calls per second over time; empty for a closed loop
	Poisson bool    // arrivals are drawn; otherwise they are evenly spread
	Callers Profile // over time; empty for an open loop

	Think, Warmup, Timeout, Grace time.Duration // these are those of Options
	RetryAtOnce                   bool
	Most                          int
	Seed                          uint64

	Calls int // that a closed loop makes in all; 0 is as many as there is time for
	// Part of Parts, from 0 on, is what this process does of a plan that several
	// share; Parts is 0 or 1 for the whole. The parts together make the calls
	// of the plan at its moments, each with its number.
	Part, Parts int
}

// Plan reads options.
//
// Errors: one line that begins with the option as the command line writes it.
func (o Options) Plan() (Plan, error) {
	p := Plan{Think: o.Think, RetryAtOnce: o.RetryAtOnce, Warmup: o.Warmup, Timeout: o.Timeout, Grace: cmp.Or(o.Grace, usualGrace), Calls: o.Calls, Most: cmp.Or(o.Most, DefaultMost), Seed: o.Seed}
	if err := o.checkTimes(); err != nil {
		return p, err
	}
	if p.Most < 1 || p.Most > mostUnderWay {
		return p, fmt.Errorf("--max-in-flight %d: want 1 to %d", p.Most, mostUnderWay)
	}
	if o.Calls < 0 || o.Calls > 0 && o.Rate == "" && (o.Callers == 0 || o.Warmup > 0) {
		return p, fmt.Errorf("--calls %d: want a number from 1 up, with --rate, or with --callers and without --warmup", o.Calls)
	}
	given := 0
	for _, is := range []bool{o.Rate != "", o.Callers != 0, o.Stages != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return p, errors.New("give one of --rate (an open loop), --callers and --stages (closed loops)")
	}
	fill := o.closed
	if o.Rate != "" {
		fill = o.open
	}
	err := fill(&p)
	return p, err
}

func (o Options) checkTimes() error {
	for _, given := range []struct {
		name string
		d    time.Duration
	}{{"think", o.Think}, {"duration", o.Duration}, {"warmup", o.Warmup}, {"timeout", o.Timeout}, {"grace", o.Grace}} {
		if given.d < 0 || given.d > longest {
			return fmt.Errorf("--%s %v: want 0s to %v", given.name, given.d, longest)
		}
	}
	return nil
}

func (o Options) open(p *Plan) (err error) {
	if o.Think != 0 || o.RetryAtOnce {
		return errors.New("--think is for --callers and --stages: in an open loop nobody waits for answers")
	}
	switch o.Arrivals {
	case "", "constant":
	case "poisson":
		p.Poisson = true
	default:
		return fmt.Errorf("--arrivals %.40q: want constant or poisson", o.Arrivals)
	}
	if o.Calls > 0 {
		return o.openCalls(p)
	}
	if p.Rate, err = ParseRate(o.Rate, o.Duration); err != nil {
		return fmt.Errorf("--rate %.80q: %w", o.Rate, err)
	}
	return nil
}

// openCalls has one rate go on for as long as a number of calls takes.
func (o Options) openCalls(p *Plan) error {
	if o.Duration > 0 {
		return errors.New("--calls and --duration: how long a --rate goes on is said by one of them")
	}
	from, err := ParseRate(o.Rate, time.Second)
	if err != nil || len(from) != 1 || from[0].From != from[0].To {
		return fmt.Errorf("--calls %d: want one --rate beside it, such as 500", o.Calls)
	}
	from[0].Length = time.Duration(math.Round(float64(o.Calls) / from[0].From * float64(time.Second)))
	if from[0].Length > longest {
		return fmt.Errorf("--calls %d at --rate %s: they take more than %v", o.Calls, o.Rate, longest)
	}
	p.Rate, p.Calls = from, 0 // the length says how many
	return nil
}

func (o Options) closed(p *Plan) (err error) {
	if o.Arrivals != "" {
		return errors.New("--arrivals is for --rate: in a closed loop answers decide when calls start")
	}
	if o.Stages != "" {
		if o.Duration != 0 {
			return errors.New("--stages has its own lengths: leave --duration out")
		}
		if p.Callers, err = ParseStages(o.Stages); err != nil {
			return fmt.Errorf("--stages %.80q: %w", o.Stages, err)
		}
		return nil
	}
	if o.Callers < 1 || o.Callers > mostCallers {
		return fmt.Errorf("--callers %d: want 1 to %d", o.Callers, mostCallers)
	}
	if o.Duration == 0 && o.Calls > 0 {
		o.Duration = usualMost
	}
	if o.Duration == 0 {
		return errors.New("how long? give --duration, or a number of calls with --calls")
	}
	p.Callers = Profile{{Length: o.Duration, From: float64(o.Callers), To: float64(o.Callers)}}
	return nil
}

// Open reports whether calls start at given moments, whoever has answered.
func (p Plan) Open() bool { return len(p.Rate) > 0 }

// Duration is the length of the counted part.
func (p Plan) Duration() time.Duration { return p.Rate.Length() + p.Callers.Length() }

// Length is the time for which calls start: warm-up and counted part.
func (p Plan) Length() time.Duration { return p.Warmup + p.Duration() }

// parts is Parts, at least 1.
func (p Plan) parts() int { return max(p.Parts, 1) }

// callers is how many callers a closed loop ever has, in all parts.
func (p Plan) callers() int {
	return int(math.Floor(p.Callers.after(p.Warmup).Most() + 0.5))
}

// String describes the plan in a line, without its part.
func (p Plan) String() string {
	text := "closed loop, callers " + p.Callers.String()
	if p.Open() {
		kind := "constant"
		if p.Poisson {
			kind = "poisson"
		}
		text = fmt.Sprintf("open loop, rate %v %s, seed %d, at most %d under way", p.Rate, kind, p.Seed, p.Most)
	}
	for _, extra := range []struct {
		name string
		d    time.Duration
	}{{"think", p.Think}, {"warm-up", p.Warmup}, {"timeout", p.Timeout}} {
		if extra.d > 0 {
			text += fmt.Sprintf(", %s %v", extra.name, extra.d)
		}
	}
	if p.Calls > 0 {
		text += fmt.Sprintf(", %d calls in all", p.Calls)
	}
	if p.RetryAtOnce {
		text += ", failed calls are made again at once"
	}
	return text
}
