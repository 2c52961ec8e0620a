package result

import "time"

// Schema names the keys of Run and what they mean.
const Schema = "cabrank.lab.run/1"

// Run is run.json. In JSON durations are nanoseconds; docs/schema/lab-run.schema.json
// describes every key.
//
// Shape: names of arms and of loads are unique, and blocks and claims use no others
// (Check).
type Run struct {
	Schema   string `json:"schema"` // Schema
	Scenario string `json:"scenario"`
	// About says in a sentence what is measured, Question what it shall answer.
	About    string `json:"about,omitempty"`
	Question string `json:"question,omitempty"`
	// Text is the file of the scenario as it ran, to repeat it.
	Text string `json:"text"`
	// Quick says that it was shortened, Cut that somebody ended it early.
	Quick bool `json:"quick"`
	Cut   bool `json:"cut"`
	// Seed draws the order of the arms and the seeds of the rounds.
	Seed   uint64 `json:"seed"`
	Rounds int    `json:"rounds"`
	// Planned is how many blocks there were to be; 0 is not known.
	Planned int `json:"planned,omitempty"`
	// Limit asks for the highest rate at which an arm has a smaller share of errors; 0
	// does not.
	Limit float64       `json:"limit,omitempty"`
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"took_ns"`
	// Version is that of cabrank, which measured; Command is what was typed.
	Version string `json:"version"`
	Command string `json:"command,omitempty"`
	// Machine is where, Notes what else the reader should know, LeftOut the arms
	// and loads that were not measured, and why: a sentence each.
	Machine []string `json:"machine,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	LeftOut []string `json:"left_out,omitempty"`

	Arms   []Arm   `json:"arms"`
	Loads  []Load  `json:"loads"`
	Claims []Claim `json:"claims"`
	// Bars have to be held. Columns are the figures to show first; none: the usual ones.
	Bars    []Bar    `json:"bars,omitempty"`
	Columns []string `json:"columns,omitempty"`
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
	// Plan describes it, as traffic.Plan does.
	Plan string `json:"plan"`
	// X is its place on an axis, such as a rate or a number of callers, and Unit
	// what is counted: "calls/s". Loads without a place have no unit.
	X    float64 `json:"x"`
	Unit string  `json:"unit,omitempty"`
	// Open is a loop in which calls start when they are due.
	Open bool `json:"open"`
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
	Margin float64 `json:"margin" key:"margin" unit:"%" range:"0%..99%"`
	// Primary is the one that decides. The others carry a correction.
	Primary bool `json:"primary"`
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
