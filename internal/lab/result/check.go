package result

import (
	"fmt"
	"math"
	"path/filepath"
)

// Check refuses a run that does not fit together.
//
// Errors: one line that says what and where.
func (r *Run) Check() error {
	if r.Schema != Schema {
		return fmt.Errorf("schema %.60q: want %s", r.Schema, Schema)
	}
	if r.Scenario == "" {
		return fmt.Errorf("the scenario has no name")
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
	for i := range r.Blocks {
		if err := r.Blocks[i].check(arms, loads); err != nil {
			return fmt.Errorf("block %d: %w", i+1, err)
		}
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
	if b.Round < 1 {
		return fmt.Errorf("round %d: they count from 1", b.Round)
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
