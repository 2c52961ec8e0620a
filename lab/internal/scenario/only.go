package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/result"
)

// Only returns the scenario with some of its arms. Loads at which none of them runs, and
// claims on others, are left out.
//
// Errors: an arm that there is not; no load is left.
func (s *Scenario) Only(arms []string) (*Scenario, error) {
	less := *s
	less.Arms, less.Loads = nil, nil
	for _, name := range arms {
		if s.Arm(name) == nil {
			return nil, noSuch("arm", name, armNames(s))
		}
	}
	for _, a := range s.Arms {
		if slices.Contains(arms, a.Name) {
			less.Arms = append(less.Arms, a)
		}
	}
	for _, l := range s.Loads {
		all := len(l.Arms) == 0
		l.Arms = slices.DeleteFunc(slices.Clone(l.Arms), func(name string) bool { return less.Arm(name) == nil })
		if all || len(l.Arms) > 0 {
			less.Loads = append(less.Loads, l)
		}
	}
	if len(less.Loads) == 0 {
		return nil, fmt.Errorf("%s: there is no load for it", strings.Join(arms, ", "))
	}
	less.Secondary = slices.DeleteFunc(slices.Clone(s.Secondary), func(c result.Claim) bool { return !less.has(c) })
	if s.Primary != nil && !less.has(*s.Primary) {
		less.Primary = nil
	}
	less.keepBars()
	return &less, nil
}
