package result

import (
	"fmt"
	"math"
	"path/filepath"
	"time"
)

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
	if err := r.checkClaims(arms, loads); err != nil {
		return err
	}
	for i, b := range r.Bars {
		if _, known := Known(b.Figure); !known || !arms[b.Arm] || !loads[b.Load] {
			return fmt.Errorf("bar %d: %.60q of %.60q at %.60q: no such figure, arm or load", i+1, b.Figure, b.Arm, b.Load)
		}
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

func (r *Run) checkClaims(arms, loads map[string]bool) error {
	primary := 0
	for i, c := range r.Claims {
		if c.Primary {
			primary++
		}
		_, known := Known(c.Figure)
		switch {
		case !known:
			return fmt.Errorf("claim %d: no figure is called %.60q", i+1, c.Figure)
		case !arms[c.Base] || !arms[c.Other] || !loads[c.Load]:
			return fmt.Errorf("claim %d: %.60q against %.60q at %.60q: no such arm or load", i+1, c.Other, c.Base, c.Load)
		case !(c.Margin >= 0 && c.Margin < 1):
			return fmt.Errorf("claim %d: margin %v: want 0 to 1", i+1, c.Margin)
		}
	}
	if primary > 1 {
		return fmt.Errorf("%d primary claims: one decides", primary)
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
