// Package result is what a run of a scenario has measured, and its files: run.json with
// the figures of all blocks, and beside it a raw record for each block, which are read
// one at a time, for they are large.
//
//	DIR/run.json        Run
//	DIR/raw/0001.json   traffic.Record of the first block, and so on
//
// It computes the figures of a block from its record. What two arms say about each
// other is for package stats, and how it is shown for package report.
package result

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Schema names the keys of Run and what they mean.
const Schema = "cabrank.lab.run/1"

// Run is run.json. In JSON durations are nanoseconds; docs/schema/lab-run.schema.json
// describes every key.
//
// Shape: names of arms and of loads are unique, and blocks and claims use no others (Check).
type Run struct {
	Schema   string `json:"schema"` // Schema
	Scenario string `json:"scenario"`
	About    string `json:"about,omitempty"`    // what is measured, in a sentence
	Question string `json:"question,omitempty"` // what it shall answer
	Text     string `json:"text"`               // the file of the scenario as it ran, to repeat it
	Quick    bool   `json:"quick"`              // it was shortened
	Cut      bool   `json:"cut"`                // somebody ended it early
	Seed     uint64 `json:"seed"`               // draws the order of the arms and the seeds of the rounds
	Rounds   int    `json:"rounds"`
	Planned  int    `json:"planned,omitempty"` // how many blocks there were to be; 0 is not known
	// Limit asks for the highest rate at which an arm has a smaller share of errors; 0 does not.
	Limit   float64       `json:"limit,omitempty"`
	Began   time.Time     `json:"began"`
	Took    time.Duration `json:"took_ns"`
	Version string        `json:"version"`           // of cabrank, which measured
	Command string        `json:"command,omitempty"` // what was typed
	Machine []string      `json:"machine,omitempty"` // where: sentences, as the next two
	Notes   []string      `json:"notes,omitempty"`   // what else the reader should know
	LeftOut []string      `json:"left_out,omitempty"`

	Arms    []Arm    `json:"arms"`
	Loads   []Load   `json:"loads"`
	Claims  []Claim  `json:"claims"`
	Bars    []Bar    `json:"bars,omitempty"`
	Columns []string `json:"columns,omitempty"` // figures to show first; none: the usual ones
	Blocks  []Block  `json:"blocks"`
}

// Arm is one way to do it.
type Arm struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
}

// Load is one point of load.
type Load struct {
	Name string `json:"name"`
	Plan string `json:"plan"` // as traffic.Plan describes it
	// X is its place on an axis, such as a rate or a number of callers, and Unit
	// what is counted: "calls/s". Loads without a place have no unit.
	X    float64 `json:"x"`
	Unit string  `json:"unit,omitempty"`
	Open bool    `json:"open"` // calls start when they are due
}

// Claim is what was asked before measuring: how a figure of one arm compares with that
// of another at a load.
type Claim struct {
	Figure string `json:"figure" key:"figure,required"`
	Load   string `json:"load" key:"load,required"`
	// Base is the arm that is compared with, Other the one of which something is
	// said: what is told is Other over Base.
	Base  string `json:"base" key:"base,required"`
	Other string `json:"other" key:"other,required"`
	// Margin is the change that would not matter, as a share of 1; 0 asks for no
	// claim of equality.
	Margin  float64 `json:"margin" key:"margin" unit:"%" range:"0%..99%"`
	Primary bool    `json:"primary"` // it decides; the others carry a correction
}

// LoadNamed returns the load of this name; false if there is none.
func (r *Run) LoadNamed(name string) (Load, bool) {
	for _, l := range r.Loads {
		if l.Name == name {
			return l, true
		}
	}
	return Load{}, false
}

// What one run may have: a file that says more would keep who reads it busy for hours. The
// bounds of a scenario are not above them.
const (
	MostRounds = 1000
	MostArms   = 100
	MostLoads  = 200
	MostClaims = 1000
)

// Check refuses a run that does not fit together, or that is larger than any run is.
//
// Errors: one line that says what and where.
func (r *Run) Check() error {
	if r.Schema != Schema {
		return fmt.Errorf("schema %.60q: want %s", r.Schema, Schema)
	}
	if r.Scenario == "" {
		return fmt.Errorf("the scenario has no name")
	}
	for _, of := range []struct {
		what       string
		have, most int
	}{{"arms", len(r.Arms), MostArms}, {"loads", len(r.Loads), MostLoads}, {"claims", len(r.Claims), MostClaims}} {
		if of.have > of.most {
			return fmt.Errorf("%d %s: at most %d are read", of.have, of.what, of.most)
		}
	}
	arms, loads := map[string]bool{}, map[string]bool{}
	for _, a := range r.Arms {
		if a.Name == "" || arms[a.Name] {
			return fmt.Errorf("arm %.60q: names are unique and not empty", a.Name)
		}
		arms[a.Name] = true
	}
	for _, l := range r.Loads {
		if l.Name == "" || loads[l.Name] {
			return fmt.Errorf("load %.60q: names are unique and not empty", l.Name)
		}
		loads[l.Name] = true
	}
	return r.checkBlocks(arms, loads)
}

func (r *Run) checkBlocks(arms, loads map[string]bool) error {
	type place struct {
		arm, load string
		round     int
	}
	taken := map[place]bool{}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		if err := b.check(arms, loads); err != nil {
			return fmt.Errorf("block %d: %w", i+1, err)
		}
		at := place{b.Arm, b.Load, b.Round}
		if taken[at] {
			return fmt.Errorf("block %d: there are two of %.60q at %.60q in round %d", i+1, b.Arm, b.Load, b.Round)
		}
		taken[at] = true
	}
	return nil
}

func (b *Block) check(arms, loads map[string]bool) error {
	if !arms[b.Arm] || !loads[b.Load] {
		return fmt.Errorf("%.60q at %.60q: no such arm or load", b.Arm, b.Load)
	}
	if b.Round < 1 || b.Round > MostRounds {
		return fmt.Errorf("round %d: they count from 1 to %d at most", b.Round, MostRounds)
	}
	if b.Raw != "" && !filepath.IsLocal(b.Raw) {
		return fmt.Errorf("raw record %.80q: want a file beside run.json", b.Raw)
	}
	for name, v := range b.Figures {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("%.60s is %v: want a number from 0 up, or none", name, v)
		}
	}
	return nil
}

// Block is one run of one arm at one load.
type Block struct {
	Arm   string        `json:"arm"`
	Load  string        `json:"load"`
	Round int           `json:"round"` // the pair that it belongs to, from 1 on
	Order int           `json:"order"` // its place among the arms of that round, from 1 on
	Seed  uint64        `json:"seed"`  // of arrivals and service times: the same for all of a round and load
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"took_ns"`       // of the whole block, starting and stopping included
	Raw   string        `json:"raw,omitempty"` // the file of the record, relative to run.json
	// Figures has those that are known, by name (All), Beyond those that are above every
	// number: nobody recovered. Silent says that no call was answered: latencies and costs
	// of a call are then above every number.
	Figures map[string]float64 `json:"figures"`
	Beyond  []string           `json:"beyond,omitempty"`
	Silent  bool               `json:"silent,omitempty"`
	// Errors counts calls without an answer by the name of the status, such as
	// "Unavailable", and as "unsent" and "open".
	Errors    map[string]int64 `json:"errors,omitempty"`
	Workers   map[string]int64 `json:"workers,omitempty"` // answers by worker, well or not
	Processes []Process        `json:"processes,omitempty"`
	Noise     float64          `json:"noise"`           // cores that others used, on average
	Marks     []string         `json:"marks,omitempty"` // why the block is not judged; it is kept
	// Late has the figures of which more than a tenth may be send lag, as they would be without
	// it. A verdict has to hold for them, too.
	Late   map[string]float64 `json:"late,omitempty"`
	Events []Event            `json:"events,omitempty"`
}

// Process is what one process, with its children, has used while the load ran, its
// warm-up included.
type Process struct {
	Role    string        `json:"role"` // "generator 1", "worker 2", "front", "gateway" or "controller"
	PID     int           `json:"pid"`
	CPU     time.Duration `json:"cpu_ns"`                   // user and system time
	RSS     int64         `json:"rss_bytes"`                // held at the end; 0 if not known
	PeakRSS int64         `json:"peak_rss_bytes,omitempty"` // the most; the same
	Grown   int64         `json:"grown_bytes,omitempty"`    // more at the end than when the load began, or less
	Quota   float64       `json:"quota_cores,omitempty"`    // cores that it may use; 0 for all
	// Throttled is how often its quota held it up, ThrottledFor for how long.
	Throttled    int64         `json:"throttled,omitempty"`
	ThrottledFor time.Duration `json:"throttled_ns,omitempty"`
}

// Kind is the role without its number: "worker" of "worker 2".
func (p Process) Kind() string {
	kind, _, _ := strings.Cut(p.Role, " ")
	return kind
}

// held is the memory to tell: the most, if it is known.
func (p Process) held() int64 {
	if p.PeakRSS > 0 {
		return p.PeakRSS
	}
	return p.RSS
}

// Event is something that was done to an arm while the load ran.
type Event struct {
	Did  string        `json:"did"`   // "worker 2 stopped for 1.5 s"
	At   time.Duration `json:"at_ns"` // since the counted part began
	Took time.Duration `json:"took_ns,omitempty"`
	Err  string        `json:"error,omitempty"`
}

// Judged reports whether the block counts for verdicts.
func (b *Block) Judged() bool { return len(b.Marks) == 0 }

// IsLate reports whether more than a tenth of a figure may be send lag.
func (b *Block) IsLate(figure string) bool {
	_, late := b.Late[figure]
	return late
}

// WithoutLag is a figure without the send lag that may be in it, where that is more than a
// tenth; NaN if it may be all of it.
func (b *Block) WithoutLag(name string) float64 {
	switch v, late := b.Late[name]; {
	case !late:
		return b.Figure(name)
	case v <= 0:
		return math.NaN()
	default:
		return v
	}
}

// Figure returns a figure as package stats takes it: infinity if it is above every
// number, NaN if it is not known. It does not look at marks.
func (b *Block) Figure(name string) float64 {
	if v, known := b.Figures[name]; known {
		return v
	}
	if slices.Contains(b.Beyond, name) || b.Silent && endless(name) {
		return math.Inf(1)
	}
	return math.NaN()
}

// endless reports whether a figure is above every number if no call is answered. Those of
// which Beyond tells need more than that: an event, or a number of calls.
func endless(name string) bool {
	f, known := Known(name)
	return known && (f.Unit == Seconds || f.Unit == CPUSeconds) && name != "total" && name != "recovery" && name != "rebalance"
}
