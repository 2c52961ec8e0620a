package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/stats"
)

// verdict is what may be said of one claim.
type verdict struct {
	claim      result.Claim
	comparison stats.Comparison
	withheld   string // why nothing is said, whatever the pairs say; else ""
	// base and other are the medians, for the reader.
	base, other spread
	// refused has the errors of both arms, if the figure leaves them out; else "".
	refused string
}

// verdicts judges all claims of a run, the primary one first.
//
// A block that is marked, or missing, makes its pair unknown, and counts against every
// statement: a verdict from the pairs that are left would be one on what suited.
func (r Run) verdicts() ([]verdict, error) {
	all := cellsOf(r.Result)
	pair := func(c result.Claim, round int) stats.Pair {
		return stats.Pair{
			Base:  judgedFigure(all.round(c.Base, c.Load, round), c.Figure),
			Other: judgedFigure(all.round(c.Other, c.Load, round), c.Figure),
		}
	}
	claims := primaryFirst(r.Result.Claims)
	judged, err := judge(claims, all.rounds(), pair)
	if err != nil {
		return nil, err
	}
	for i := range judged {
		judged[i].withheld = withheld(r.Result, judged[i].claim.Figure)
		judged[i].look(all, all)
	}
	return judged, nil
}

// look fills in what the blocks of both sides came to, and says no verdict if the errors
// forbid it: calls that were refused took no time, so a figure of the answered ones makes
// an arm look good that answers the easy ones only. That it is worse may be said all the
// same: it has answered fewer calls, and taken more for each of them.
func (v *verdict) look(base, other cells) {
	c := v.claim
	v.base, v.other = base.spread(c.Base, c.Load, c.Figure), other.spread(c.Other, c.Load, c.Figure)
	f, _ := result.Known(c.Figure)
	b, o := base.errors(c.Base, c.Load), other.errors(c.Other, c.Load)
	if !f.Answers() || !(b > 0 || o > 0) {
		return
	}
	v.refused = fmt.Sprintf(", with errors of %s and %s", percent(o), percent(b))
	worse := o > b && v.comparison.Verdict == stats.Higher || b > o && v.comparison.Verdict == stats.Lower
	if math.Abs(o-b) > f.Spare() && v.decided() && !worse {
		v.withheld = "errors differ"
	}
}

// judgedFigure is the figure of a block as it counts for a verdict.
func judgedFigure(b *result.Block, name string) float64 {
	if b == nil || !b.Judged() {
		return stats.Unknown()
	}
	return b.Figure(name)
}

func primaryFirst(claims []result.Claim) []result.Claim {
	var sorted []result.Claim
	for _, primary := range []bool{true, false} {
		for _, c := range claims {
			if c.Primary == primary {
				sorted = append(sorted, c)
			}
		}
	}
	return sorted
}

// judge has the pairs of claims, the primary one of which comes first if there is one,
// compared.
func judge(claims []result.Claim, rounds int, pair func(result.Claim, int) stats.Pair) ([]verdict, error) {
	var figures []stats.Figure
	for _, c := range claims {
		f := stats.Figure{Name: figureName(c.Figure), Margin: c.Margin}
		for round := 1; round <= rounds; round++ {
			f.Pairs = append(f.Pairs, pair(c, round))
		}
		figures = append(figures, f)
	}
	var primary stats.Figure // stays empty, and unused, without a primary claim
	if len(claims) > 0 && claims[0].Primary {
		primary, figures = figures[0], figures[1:]
	}
	judgement, err := stats.Judge(primary, figures...)
	if err != nil {
		return nil, err
	}
	comparisons := judgement.Secondary
	if len(figures) < len(claims) {
		comparisons = append([]stats.Comparison{judgement.Primary}, comparisons...)
	}
	var all []verdict
	for i, c := range claims {
		all = append(all, verdict{claim: c, comparison: comparisons[i]})
	}
	return all, nil
}

// withheld says why there is no verdict on a figure of a run, or "".
func withheld(r *result.Run, figure string) string {
	f, _ := result.Known(figure)
	switch {
	case r.Cut:
		return "the run was cut short"
	case r.Quick && f.Tail():
		return "a quick run has none on tails"
	}
	return ""
}

// shown reports whether a difference is shown.
func (v verdict) shown() bool {
	return v.withheld == "" && (v.comparison.Verdict == stats.Lower || v.comparison.Verdict == stats.Higher)
}

// decided reports whether there is a verdict at all.
func (v verdict) decided() bool { return v.withheld == "" && v.comparison.Verdict != stats.TooFewPairs }

// words says the verdict, without who and where: "p99 lower by 31–44 %".
func (v verdict) words() string {
	if v.withheld != "" {
		return v.comparison.Figure + ": no verdict, " + v.withheld + v.refused
	}
	return v.comparison.Words() + v.refused
}

// without says why there is no verdict: "too few pairs (2, needs 10)".
func (v verdict) without() string {
	if v.withheld != "" {
		return v.withheld
	}
	return strings.TrimPrefix(v.comparison.Words(), v.comparison.Figure+": ")
}

// sentence says the verdict with who, where and the medians, which come first where
// there is no verdict: they are then all that there is to read.
func (v verdict) sentence() string {
	return v.told(fmt.Sprintf("%s against %s at %s: ", v.claim.Other, v.claim.Base, v.claim.Load), v.claim.Base, v.claim.Other)
}

// told is a sentence that begins with who and where; base and other are what the two
// sides are called.
func (v verdict) told(text, base, other string) string {
	medians := figureText(v.claim.Figure, v.other.middle) + " and " + figureText(v.claim.Figure, v.base.middle)
	switch {
	case v.base.known == 0 || v.other.known == 0:
		text += v.words()
	case v.decided():
		text += fmt.Sprintf("%s (medians %s)", v.words(), medians)
	default:
		text += fmt.Sprintf("%s %s (medians)%s; no verdict, %s", v.comparison.Figure, medians, v.refused, v.without())
	}
	if silence := v.comparison.Silence(base, other); silence != "" {
		text += "; " + silence
	}
	return text + "."
}
