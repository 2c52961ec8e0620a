package result

import (
	"fmt"
	"math"
	"path/filepath"
)

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
