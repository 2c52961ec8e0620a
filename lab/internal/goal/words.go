package goal

import (
	"fmt"
	"strings"
)

// String says in a line what a search has found.
func (r Result) String() string {
	switch r.Outcome {
	case First:
		return fmt.Sprintf("fails even at the first rate, %s: %s; begin with a lower --rate", rateText(r.Fails), r.Why)
	case Highest:
		return "holds at " + rateText(r.Holds) + ", the highest rate that can be asked for"
	case Found:
		return r.known()
	case Generator:
		return r.known() + ": " + r.Why
	case Broken:
		return r.known() + "; the service did not recover: " + r.Why
	case Bounds:
		return r.known() + "; the search ended early: " + r.Why
	case Cancelled:
		return r.known() + "; the search was cancelled"
	}
	return r.known() + "; the search failed"
}

// known is the interval as far as it is known.
func (r Result) known() string {
	var parts []string
	if r.Holds > 0 {
		text := "holds at " + rateText(r.Holds)
		if !r.Sure {
			text += " (in one run, not confirmed)"
		}
		parts = append(parts, text)
	}
	if r.Fails > 0 {
		parts = append(parts, "fails at "+rateText(r.Fails))
	}
	if r.Limited > 0 {
		parts = append(parts, "the generator was the limit at "+rateText(r.Limited))
	}
	if len(parts) == 0 {
		return "no rate is known to hold or to fail"
	}
	return strings.Join(parts, ", ")
}

// String says in a line what a run came to.
func (s Step) String() string {
	text := rateText(s.Rate)
	if s.Try > 1 {
		text += fmt.Sprintf(", run %d", s.Try)
	}
	return text + ": " + s.Judgement.String()
}
