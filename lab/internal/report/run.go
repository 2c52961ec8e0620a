package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Run is what a run of a scenario has shown.
type Run struct {
	Result *result.Run
	// Record reads the raw record of a block; nil if there are none. One at a time is held.
	Record func(*result.Block) (*traffic.Record, error)
}

// Document returns the report. It reads the raw records one at a time.
func (r Run) Document() Document {
	all := cellsOf(r.Result)
	d := Document{Title: r.Result.Scenario, Lead: r.Result.Question}
	if r.Result.About != "" {
		d.Title += ": " + strings.TrimSuffix(r.Result.About, ".")
	}
	verdicts, err := judge(primaryFirst(r.Result.Claims), all, all, func(figure string) string { return withheld(r.Result, figure) })
	d.judged(verdicts, err, r.Result.Quick, armAgainst, "The scenario claims nothing: these are figures to look at, without a verdict.", verdictText)
	if len(verdicts) > 0 && !verdicts[0].claim.Primary {
		d.Words = append(d.Words, "The scenario has no claim that decides; all carry a correction for their number.")
	}
	d.Words = append(d.Words, r.limits()...)
	raw := r.raw(all)
	d.Picture = r.main(all, raw)
	d.add(Section{Heading: "Figures", Text: []string{figuresText}, Tables: figureTables(columns(r.Result.Columns), keysOf(r.Result, all, all), all, all)})
	d.add(Section{Heading: "Errors", Text: []string{errorsText}, Pictures: r.pictures(all, "errors"), Tables: []Table{r.errorTable(all)}})
	d.add(Section{Heading: "Latency", Text: []string{latencyText}, Pictures: append(r.pictures(all, "p50", tailFigure(all, ""), "total"), raw.tails...)})
	d.add(Section{Heading: "Over time", Text: []string{courseText}, Pictures: raw.courses})
	d.add(Section{Heading: "Share of each worker", Text: []string{sharesText}, Pictures: append(raw.shares, r.pictures(all, "spread")...)})
	costs := append(r.pictures(all, "cpu_all", "connections"), r.cost(all))
	d.add(Section{Heading: "Cost", Text: []string{costText}, Pictures: costs})
	d.add(Section{Heading: "Not judged", Text: []string{markedText}, Tables: []Table{r.markTable()}})
	if len(raw.missing) > 0 {
		d.Sections = append(d.Sections, Section{Heading: "Not shown", Text: raw.missing})
	}
	d.add(r.method())
	return d
}

const (
	verdictText = "The first line decides, if it is named so; the others carry a correction for their number (Holm). The unit is the pair: two blocks of one round, with the same arrivals and service times. The range is that of the ratio."
	figuresText = "Medians of the blocks of an arm at a load. With a star all of its blocks are marked and not judged, and points and bars are hollow, here and in all charts. A dash means not known: p99 takes 10,000 calls in a block, p99.9 100,000."
	latencyText = "Each point is the median of the blocks, and the bar beside it goes from the lowest to the highest. The charts of one call in so many have all calls of an arm at a load together: they are shown, and not tested."
	errorsText  = "Calls that were due and not answered: failed, unsent or still open at the end, as a share of all that were due."
	courseText  = "One block of each arm, by the moment at which calls were due: those of a pause stand where it was, not where it ended. The other blocks are in raw/."
	sharesText  = "Who answered the calls of one block, by the moment at which they were due."
	costText    = "CPU of the processes, in all of a block, over the calls that were answered. The controller is not in it."
	markedText  = "Blocks in which the generator may have been the limit, or in which others used the machine. They are kept, and a pair that one of them is in counts as unknown."
)

func armAgainst(v verdict) (where, base, other string) {
	c := v.claim
	return fmt.Sprintf("%s against %s at %s", c.Other, c.Base, c.Load), c.Base, c.Other
}

// limits are sentences on what else came out, and on what the figures do not say.
func (r Run) limits() (lines []string) {
	if text := r.highest(); text != "" {
		lines = append(lines, text)
	}
	if r.Result.Quick && len(r.Result.Claims) == 0 {
		lines = append(lines, "A quick run: figures to look at.")
	}
	blocks := plural(len(r.Result.Blocks), "block")
	if r.Result.Cut {
		planned := cmp.Or(r.Result.Planned, r.Result.Rounds*len(r.Result.Arms)*len(r.Result.Loads))
		lines = append(lines, fmt.Sprintf("Cut short after %s, with %s of the %s that were planned: no verdict, for who ends a run when its figures please decides what comes of it.",
			took(r.Result.Took), blocks, plural(planned, "block")))
	}
	if n := len(r.markTable().Rows); n > 0 {
		lines = append(lines, fmt.Sprintf("Marked and not judged, for reasons that are listed: %d of %s.", n, blocks))
	}
	if closed := r.closed(); closed != "" {
		lines = append(lines, closed)
	}
	if len(r.Result.LeftOut) > 0 {
		lines = append(lines, "Not measured: "+strings.Join(r.Result.LeftOut, " "))
	}
	return lines
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

func (r Run) closed() string {
	var names []string
	for _, l := range r.Result.Loads {
		if !l.Open {
			names = append(names, l.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Closed loops (callers wait for answers, so a slow arm is asked less often): %s. Do not set their latencies beside those of an open loop.", strings.Join(names, ", "))
}

// primary is the claim that decides, or the last load alone.
func (r Run) primary() result.Claim {
	for _, c := range r.Result.Claims {
		if c.Primary {
			return c
		}
	}
	if n := len(r.Result.Loads); n > 0 {
		return result.Claim{Load: r.Result.Loads[n-1].Name}
	}
	return result.Claim{}
}

// drawOrder is the arms, those of the primary claim first.
func (r Run) drawOrder() []string {
	names := []string{r.primary().Other, r.primary().Base}
	for _, a := range r.Result.Arms {
		names = append(names, a.Name)
	}
	var once []string
	for _, name := range names {
		if name != "" && !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

// pen is how an arm is drawn in all pictures: the arm of the primary claim stands out.
func (r Run) pen(arm string) (Pen, bool) { return penOf(max(slices.Index(r.drawOrder(), arm), 0)) }
