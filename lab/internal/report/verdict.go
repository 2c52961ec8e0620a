package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/stats"
)

// verdict is what may be said of one claim.
type verdict struct {
	claim       result.Claim
	comparison  stats.Comparison
	withheld    string // why nothing is said, whatever the pairs say; else ""
	base, other spread // the medians, for the reader
	refused     string // the errors of both sides, if the figure leaves them out; else ""
}

func primaryFirst(claims []result.Claim) []result.Claim {
	return toFront(claims, func(c result.Claim) bool { return c.Primary })
}

// toFront puts the first that is so before all others.
func toFront[T any](all []T, so func(T) bool) []T {
	i := slices.IndexFunc(all, so)
	if i < 0 {
		return all
	}
	return slices.Concat(all[i:i+1], all[:i], all[i+1:])
}

// judge compares the blocks of b with those of a, round by round. Of the claims the primary
// one comes first, if there is one; why says what forbids a verdict on a figure, or "".
//
// A block that is marked, or missing, makes its pair unknown, and counts against every
// statement: a verdict from the pairs that are left would be one on what suited.
// So does send lag that may be the difference: a verdict is withheld if it would be another
// one without the lag of either side.
func judge(claims []result.Claim, a, b cells, why func(figure string) string) ([]verdict, error) {
	measured, without := reading((*result.Block).Figure), reading((*result.Block).WithoutLag)
	var read [3][]stats.Comparison
	for i, sides := range [][2]reading{{measured, measured}, {without, measured}, {measured, without}} {
		var err error
		if read[i], err = compare(claims, a, b, sides[0], sides[1]); err != nil {
			return nil, err
		}
	}
	var all []verdict
	for i, c := range claims {
		v := verdict{claim: c, comparison: read[0][i], withheld: why(c.Figure)}
		if of := v.comparison.Verdict; v.decided() && (of != read[1][i].Verdict || of != read[2][i].Verdict) {
			v.withheld = "send lag may be the difference"
		}
		v.look(a, b)
		all = append(all, v)
	}
	return all, nil
}

type reading func(b *result.Block, name string) float64

// compare judges all claims with the figures of both sides as they are read.
func compare(claims []result.Claim, a, b cells, base, other reading) ([]stats.Comparison, error) {
	var figures []stats.Figure
	for _, c := range claims {
		f := stats.Figure{Name: figureName(c.Figure), Margin: c.Margin}
		for round := 1; round <= max(a.rounds(), b.rounds()); round++ {
			f.Pairs = append(f.Pairs, stats.Pair{
				Base:  base.judged(a.round(c.Base, c.Load, round), c.Figure),
				Other: other.judged(b.round(c.Other, c.Load, round), c.Figure),
			})
		}
		figures = append(figures, f)
	}
	return stats.Judge(len(claims) > 0 && claims[0].Primary, figures...)
}

// judged is the figure of a block as it counts for a verdict.
func (read reading) judged(b *result.Block, name string) float64 {
	if b == nil || !b.Judged() {
		return stats.Unknown()
	}
	return read(b, name)
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

func (v verdict) shown() bool {
	return v.withheld == "" && (v.comparison.Verdict == stats.Lower || v.comparison.Verdict == stats.Higher)
}

func (v verdict) decided() bool { return v.withheld == "" && v.comparison.Verdict != stats.TooFewPairs }

// said is the verdict without the figure, or why there is none: "too few pairs (2, needs 10)".
func (v verdict) said() string {
	if v.withheld != "" {
		return v.withheld
	}
	return strings.TrimLeft(strings.TrimPrefix(v.comparison.Words(), v.comparison.Figure), ": ")
}

// sentence says the verdict with who, where and the medians, which come first where
// there is no verdict: they are then all that there is to read. Why there is none is left
// out if that is said of all at once.
func (v verdict) sentence(where, base, other string, once bool) string {
	text := where + ": "
	medians := figureText(v.claim.Figure, v.other.middle) + " and " + figureText(v.claim.Figure, v.base.middle)
	switch {
	case v.decided() && (v.base.known == 0 || v.other.known == 0):
		text += v.comparison.Words() + v.refused
	case v.decided():
		text += fmt.Sprintf("%s%s (medians %s)", v.comparison.Words(), v.refused, medians)
	case v.base.known == 0 && v.other.known == 0 && once:
		text += v.comparison.Figure + " is not known"
	default:
		text += fmt.Sprintf("%s %s (medians)%s", v.comparison.Figure, medians, v.refused)
		if !once {
			text += "; no verdict, " + v.said()
		}
	}
	if silence := v.comparison.Silence(base, other); silence != "" {
		text += "; " + silence
	}
	return text + "."
}

// sides says of a verdict where it is from and what is compared with what, base first.
type sides func(verdict) (where, base, other string)

const mostSentences = 5

// noneAtAll reports whether there is no verdict, and that can be said once for all.
func noneAtAll(all []verdict, quick bool) bool {
	none := !slices.ContainsFunc(all, verdict.decided)
	same := !slices.ContainsFunc(all, func(v verdict) bool { return v.said() != all[0].said() })
	return none && (quick || same && len(all) > 1)
}

// tell puts verdicts in sentences: the answer, and others. That there is none at all is said
// once.
func tell(all []verdict, quick bool, of sides) (answer, others []string) {
	once := noneAtAll(all, quick)
	sentence := func(v verdict) string {
		where, base, other := of(v)
		return v.sentence(where, base, other, once)
	}
	if once { // a figure, where it decides nothing
		all = toFront(all, func(v verdict) bool { return v.base.known+v.other.known > 0 })
	}
	answer = []string{sentence(all[0])}
	switch {
	case quick && once:
		answer = append(answer, "A quick run gives no verdict: these are figures to look at.")
	case quick:
		answer = append(answer, "A quick run: figures to look at, and no verdict on tails.")
	case once:
		answer = append(answer, "No verdict: "+all[0].said()+".")
	}
	rest, shown, decided := all[1:], 0, 0
	for _, v := range rest {
		if v.shown() {
			shown++
		}
		if v.decided() {
			decided++
		}
		if len(others) < mostSentences && (v.shown() || len(rest) <= mostSentences) {
			others = append(others, sentence(v))
		}
	}
	if len(rest) > mostSentences && !once {
		others = append(others, fmt.Sprintf("Of %d other comparisons %d have a verdict, and %d show a difference.", len(rest), decided, shown))
	}
	return answer, others
}

// judged begins a document with what is said of the claims, and has a table of them; nothing is
// what is said without any.
func (d *Document) judged(all []verdict, err error, quick bool, of sides, nothing, how string) {
	switch {
	case err != nil:
		d.Answer = []string{"Not judged: " + err.Error() + "."}
	case len(all) == 0:
		d.Answer = []string{nothing}
	default:
		d.Answer, d.Words = tell(all, quick, of)
	}
	d.add(Section{Heading: "What was compared", Text: []string{how}, Tables: []Table{verdictTable(all, quick, of)}})
}

func verdictTable(all []verdict, quick bool, of sides) Table {
	t := Table{Columns: columnsOf("figure", "load", "arm", "#median", "against", "#median", "verdict", "#pairs", "#p", "")}
	for _, v := range all {
		c := v.comparison
		pairs, p, said, decides := strconv.Itoa(c.Pairs), fmt.Sprintf("%.3f", c.P), v.said()+v.refused, ""
		if c.Known < c.Pairs {
			pairs = fmt.Sprintf("%d of %d known", c.Known, c.Pairs)
		}
		if c.P < 0.001 {
			p = "< 0.001"
		}
		if !v.decided() {
			said, p = "none: "+said, ""
		}
		if noneAtAll(all, quick) {
			said = "none"
		}
		if v.claim.Primary {
			decides = "decides"
		}
		_, base, _ := of(v)
		t.Add(c.Figure, v.claim.Load, v.claim.Other, figureText(v.claim.Figure, v.other.middle),
			base, figureText(v.claim.Figure, v.base.middle), said, pairs, p, decides)
	}
	return t
}
