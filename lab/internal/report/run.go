package report

import (
	"fmt"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Run is what a run of a scenario has shown.
type Run struct {
	Result *result.Run
	// Record reads the raw record of a block; nil if there are none. Page holds one at
	// a time.
	Record func(*result.Block) (*traffic.Record, error)
}

// mostSentences bounds the verdicts that the summary tells; the table has all.
const mostSentences = 5

// Summary says in words what came out, what decided first.
func (r Run) Summary() []string {
	var lines []string
	verdicts, err := r.verdicts()
	switch {
	case err != nil:
		lines = append(lines, "Not judged: "+err.Error()+".")
	case len(verdicts) == 0:
		lines = append(lines, "The scenario claims nothing: these are figures to look at, without a verdict.")
	default:
		lines = append(lines, verdictLines(verdicts)...)
	}
	if text := r.highest(); text != "" {
		lines = append(lines, text)
	}
	if r.Result.Quick {
		lines = append(lines, "A quick run: figures to look at, and no verdict on tails.")
	}
	if r.Result.Cut {
		lines = append(lines, fmt.Sprintf("Cut short after %s, with %s of the %s that were planned: no verdict, for who ends a run when its figures please decides what comes of it.", took(r.Result.Took),
			plural(len(r.Result.Blocks), "block"), plural(r.planned(), "block")))
	}
	if n := r.marked(); n > 0 {
		lines = append(lines, fmt.Sprintf("Marked and not judged, for reasons that are listed: %d of %s.", n, plural(len(r.Result.Blocks), "block")))
	}
	if closed := r.closed(); closed != "" {
		lines = append(lines, closed)
	}
	if n := len(r.Result.LeftOut); n > 0 {
		lines = append(lines, "Not measured: "+strings.Join(r.Result.LeftOut, " "))
	}
	return lines
}

// planned is how many blocks there were to be.
func (r Run) planned() int {
	if r.Result.Planned > 0 {
		return r.Result.Planned
	}
	return r.Result.Rounds * len(r.Result.Arms) * len(r.Result.Loads)
}

// highest tells up to which rate each arm has few errors, if the scenario asks for it.
func (r Run) highest() string {
	var parts []string
	for _, h := range r.Result.HighestRates() {
		switch rate := plainNumber(h.Rate) + "/s"; {
		case h.Unjudged:
			parts = append(parts, h.Arm+" not judged")
		case h.Rate == 0:
			parts = append(parts, h.Arm+" at none")
		case h.Top:
			parts = append(parts, h.Arm+" up to "+rate+", the highest that was judged")
		default:
			parts = append(parts, h.Arm+" up to "+rate)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("Fewer than %v %% errors: %s.", 100*r.Result.Limit, strings.Join(parts, "; "))
}

// verdictLines tells the primary verdict, and of the others at most some.
func verdictLines(all []verdict) []string {
	var lines []string
	if all[0].claim.Primary {
		lines, all = append(lines, all[0].sentence()), all[1:]
	} else {
		lines = append(lines, "The scenario has no claim that decides; the others carry a correction for their number.")
	}
	if len(all) <= mostSentences {
		for _, v := range all {
			lines = append(lines, v.sentence())
		}
		return lines
	}
	told, shown, decided := 0, 0, 0
	for _, v := range all {
		if v.decided() {
			decided++
		}
		if !v.shown() {
			continue
		}
		if shown++; told < mostSentences {
			lines = append(lines, v.sentence())
			told++
		}
	}
	return append(lines, fmt.Sprintf("Of %d other comparisons %d have a verdict, and %d show a difference.", len(all), decided, shown))
}

// closed says that some loads are closed loops.
func (r Run) closed() string {
	var names []string
	for _, l := range r.Result.Loads {
		if !l.Open {
			names = append(names, l.Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case len(r.Result.Loads):
		return "Closed loops: callers wait for answers, so a slow arm is asked less often. Do not set these latencies beside those of an open loop."
	}
	return fmt.Sprintf("Closed loops (callers wait for answers, so a slow arm is asked less often): %s. Do not set their latencies beside those of an open loop.", strings.Join(names, ", "))
}

// marked is how many blocks are not judged.
func (r Run) marked() (n int) {
	for i := range r.Result.Blocks {
		if !r.Result.Blocks[i].Judged() {
			n++
		}
	}
	return n
}

// Page returns the report. It reads the raw records one at a time.
func (r Run) Page() Page {
	all := cellsOf(r.Result)
	p := Page{Title: r.title(), Summary: r.Summary()}
	if q := r.Result.Question; q != "" {
		p.Lead = q
	}
	p.add(Part{Heading: "What was compared", Text: []string{verdictText}, Tables: tables(r.Verdicts())})
	p.add(Part{Heading: "Figures", Text: []string{figuresText}, Tables: tables(r.figureTable(all))})
	raw := r.raw(all)
	p.add(Part{Heading: "Latency", Text: []string{latencyText}, Charts: append(raw.tails, r.latencyByLoad(all)...), Bars: r.latencyBars(all)})
	p.add(Part{Heading: "Errors", Text: []string{errorsText}, Charts: r.errorsByLoad(all), Bars: r.errorBars(all), Tables: tables(r.errorTable(all))})
	p.add(Part{Heading: "Over time", Text: raw.courseText, Strips: raw.strips, Charts: raw.courses})
	p.add(Part{Heading: "Share of each worker", Text: raw.sharesText, Charts: append(raw.shares, r.spreadByLoad(all)...)})
	p.add(Part{Heading: "Cost", Text: []string{costText}, Charts: r.costByLoad(all), Bars: r.costBars(all), Folded: tables(r.processTable(all))})
	p.add(Part{Heading: "Not judged", Text: []string{markedText}, Tables: tables(r.markTable())})
	if len(raw.missing) > 0 {
		p.Parts = append(p.Parts, Part{Heading: "Not shown", Text: raw.missing})
	}
	p.Parts = append(p.Parts, r.method())
	return p
}

const (
	verdictText = "The first line decides, if it is named so; the others carry a correction for their number (Holm). The unit is the pair: two blocks of one round, with the same arrivals and service times. The range is that of the ratio."
	figuresText = "Medians of the blocks of an arm at a load. With a star all of its blocks are marked and not judged, and points and bars are hollow, here and in all charts. A dash means not known: p99 takes 10,000 calls in a block, p99.9 100,000."
	latencyText = "The first charts have all calls of an arm at a load together: they are shown, and not tested. Behind them, each point is the median of the blocks, and the bar beside it goes from the lowest to the highest."
	errorsText  = "Calls that were due and not answered: failed, unsent or still open at the end, as a share of all that were due."
	costText    = "CPU of the processes, in all of a block, over the calls that were answered. The controller is not in it."
	markedText  = "Blocks in which the generator may have been the limit, or in which others used the machine. They are kept, and a pair that one of them is in counts as unknown."
)

// title is what the page is called.
func (r Run) title() string {
	if r.Result.About == "" {
		return r.Result.Scenario
	}
	return r.Result.Scenario + ": " + strings.TrimSuffix(r.Result.About, ".")
}
