package goal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
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

// rateText writes a rate with three digits or all before the point: 1,900/s, 0.25/s.
func rateText(rate float64) string {
	if rate < 100 {
		return strconv.FormatFloat(rate, 'g', 3, 64) + "/s"
	}
	return thousands(strconv.FormatFloat(rate, 'f', 0, 64)) + "/s"
}

// count writes a number of calls: 10,000.
func count(n int64) string { return thousands(strconv.FormatInt(n, 10)) }

// thousands puts commas into a whole number that is not below 0.
func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// percent writes a share with up to three digits: 5%.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + "%" }

// short writes a duration with up to four digits: 87.31ms.
func short(d time.Duration) string {
	unit := time.Duration(1)
	for unit*10_000 <= d {
		unit *= 10
	}
	return d.Round(unit).String()
}
