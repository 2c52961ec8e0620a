package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/cabrank/cabrank/lab/internal/result"
)

// quick is what changes with --quick.
type quick struct {
	rounds           int
	duration, warmup time.Duration
	arms, loads      []string // those that stay; all if there are none
	drafts           []draft  // the loads
}

// quick reads what changes with --quick.
func (t *table) quick(drafts []draft) (q quick) {
	q = quick{rounds: 2, drafts: drafts}
	node := t.take("quick")
	if node == nil {
		return q
	}
	inner := t.table(node, "quick")
	inner.whole("rounds", &q.rounds, 1, result.MostRounds)
	inner.duration("duration", &q.duration)
	inner.duration("warmup", &q.warmup)
	inner.texts("arms", &q.arms)
	inner.texts("loads", &q.loads)
	inner.close()
	return q
}

// Quick returns the short form: fewer rounds, arms and loads, and shorter ones, as the
// file says. Claims on what is not in it are left out.
func (s *Scenario) Quick() *Scenario {
	short := *s
	short.IsQuick = true
	short.Rounds = min(s.quick.rounds, s.Rounds)
	short.Arms, short.Loads, short.Secondary, short.Primary = nil, nil, nil, nil
	for _, a := range s.Arms {
		if kept(s.quick.arms, a.Name) {
			short.Arms = append(short.Arms, a)
		}
	}
	for i := range s.quick.drafts {
		for _, l := range s.quick.drafts[i].quickly(s.quick) {
			l.Arms = slices.DeleteFunc(slices.Clone(l.Arms), func(name string) bool { return short.Arm(name) == nil && s.Arm(name) != nil })
			short.Loads = append(short.Loads, l)
		}
	}
	for _, c := range s.Secondary {
		if short.has(c) {
			short.Secondary = append(short.Secondary, c)
		}
	}
	if s.Primary != nil && short.has(*s.Primary) {
		short.Primary = s.Primary
	}
	return &short
}

func kept(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }

// quickly makes the loads of an entry with --quick. It has been expanded before, so
// that there is no error that Parse has not told.
func (d *draft) quickly(q quick) (all []Load) {
	from := d
	if d.short != nil {
		from = d.short
	}
	loads, _ := from.expand()
	for _, l := range loads {
		if !kept(q.loads, l.Name) {
			continue
		}
		if d.short == nil || d.short.load.Rounds == d.load.Rounds {
			l.Rounds = min(l.Rounds, q.rounds)
		}
		if d.short == nil || d.short.load.Options.Duration == d.load.Options.Duration {
			l.shorten(q.duration, q.warmup)
		}
		all = append(all, l)
	}
	return all
}

// has reports whether all that a claim names is there.
func (s *Scenario) has(c Claim) bool {
	load := s.Load(c.Load)
	return load != nil && s.Arm(c.Base) != nil && s.Arm(c.Other) != nil && kept(load.Arms, c.Base) && kept(load.Arms, c.Other)
}

// checkQuick names what --quick keeps that is not there.
func (r *reader) checkQuick(s *Scenario) {
	for _, name := range s.quick.arms {
		if s.Arm(name) == nil {
			r.fault(0, "quick.arms", "there is no arm %q", name)
		}
	}
	var all []string
	for i := range s.quick.drafts {
		d := &s.quick.drafts[i]
		if d.short != nil {
			d = d.short
		}
		loads, err := d.expand()
		if err != nil {
			r.fault(0, "", "with --quick: loads[%d]: %v", i+1, err)
		}
		for _, l := range loads {
			all = append(all, l.Name)
		}
	}
	for _, name := range s.quick.loads {
		if !slices.Contains(all, name) {
			r.fault(0, "quick.loads", "there is no load %q; there are: %s", name, names(all, func(n string) string { return fmt.Sprint(n) }))
		}
	}
}
