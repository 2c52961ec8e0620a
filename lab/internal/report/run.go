package report

import (
	"cmp"
	"fmt"
	"math"
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
	names := slices.DeleteFunc([]string{r.primary().Other, r.primary().Base}, func(name string) bool { return name == "" })
	for _, a := range r.Result.Arms {
		if !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// pen is how an arm is drawn in all pictures: the arm of the primary claim stands out.
func (r Run) pen(arm string) (Pen, bool) { return penOf(max(slices.Index(r.drawOrder(), arm), 0)) }

const mostAlone = 6

// main is the picture of the answer: what happened in the load that decides, if something
// was done in it, or else the figure that decides, with all arms.
func (r Run) main(all cells, raw rawParts) *Picture {
	load, figure := r.primary().Load, r.primary().Figure
	if figure == "" {
		figure = tailFigure(all, load)
	}
	if p := raw.strips[load]; p != nil && r.disturbed(load) {
		return p
	}
	for _, name := range []string{figure, "total", "p50", "errors"} {
		if p := bars(load, name, nil, r.arms(all)); p != nil {
			return p
		}
	}
	return raw.strips[load]
}

// disturbed reports whether something is done to an arm in a load.
func (r Run) disturbed(load string) bool {
	return slices.ContainsFunc(r.Result.Blocks, func(b result.Block) bool { return b.Load == load && len(b.Events) > 0 })
}

// series are loads of one kind that have places of their own on one axis, and those that
// are in none, at most some. Disturbed ones are a kind of their own.
func (r Run) series() (series [][]result.Load, alone []string) {
	var groups [][]result.Load
	for _, l := range r.Result.Loads {
		at := slices.IndexFunc(groups, func(g []result.Load) bool {
			return g[0].Unit == l.Unit && g[0].Open == l.Open && r.disturbed(g[0].Name) == r.disturbed(l.Name)
		})
		switch {
		case l.Unit == "" || l.X <= 0 || at >= 0 && slices.ContainsFunc(groups[at], func(o result.Load) bool { return o.X == l.X }):
			alone = append(alone, l.Name)
		case at < 0:
			groups = append(groups, []result.Load{l})
		default:
			groups[at] = append(groups[at], l)
		}
	}
	for _, loads := range groups {
		if len(loads) == 1 {
			alone = append(alone, loads[0].Name)
			continue
		}
		slices.SortFunc(loads, func(a, b result.Load) int { return cmp.Compare(a.X, b.X) })
		series = append(series, loads)
	}
	return series, alone[:min(len(alone), mostAlone)]
}

// pictures draw figures of all arms: a chart over each series of loads, and bars at those
// that are in none.
func (r Run) pictures(all cells, names ...string) (pictures []*Picture) {
	series, alone := r.series()
	for _, name := range names {
		for _, loads := range series {
			last := loads[len(loads)-1].Name
			title := fmt.Sprintf("%s at %s: %s", figureName(name), last, lowToHigh(last, name, r.arms(all)))
			pictures = append(pictures, byLoad(title, loads, name, r.arms(all)))
		}
		for _, load := range alone {
			pictures = append(pictures, bars(load, name, nil, r.arms(all)))
		}
	}
	return pictures
}

// armOf is an arm of a run on its way to a picture, by the name that it has there.
type armOf struct {
	Key

	arm   string
	cells cells
}

// arms are all of them, that of the primary claim first.
func (r Run) arms(all cells) (arms []armOf) {
	for _, arm := range r.drawOrder() {
		pen, dashed := r.pen(arm)
		arms = append(arms, armOf{Key{arm, pen, dashed}, arm, all})
	}
	return arms
}

func (a armOf) spread(load, name string) spread { return a.cells.spread(a.arm, load, name) }

func (a armOf) marked(load, name string) bool { return a.cells.marked(a.arm, load, name) }

// beside is a text on a figure, with a star or errors beside it where that matters.
func (a armOf) beside(text, load, name string) string {
	return besideErrors(starred(text, a.marked(load, name)), name, a.cells.errors(a.arm, load))
}

// byLoad is one figure over loads: lines through medians, the first one on top; nil if no line
// has two points.
func byLoad(title string, loads []result.Load, name string, of []armOf) *Picture {
	least, most, several := math.Inf(1), 0.0, false
	var all []line
	for _, o := range slices.Backward(of) {
		l, known := line{Key: o.Key, dots: true}, 0
		for _, load := range loads {
			s := o.spread(load.Name, name)
			p := point{x: load.X, y: math.NaN()}
			if s.number() {
				known++
				p.y, p.marked, most = s.middle, o.marked(load.Name, name), max(most, s.middle)
				if finite(s.high) {
					p.low, p.high, most = s.low, s.high, max(most, s.high)
				}
				if s.low > 0 {
					least = min(least, s.low)
				}
			}
			l.points = append(l.points, p)
		}
		several = several || known > 1
		all = append(all, l)
	}
	if !several {
		return nil
	}
	unit := loads[0].Unit
	x := linear(unit, loads[len(loads)-1].X, plainNumber)
	if loads[len(loads)-1].X/loads[0].X > 20 {
		x = logarithmic(unit, loads[0].X, loads[len(loads)-1].X, plainNumber)
	}
	return Picture{Title: title}.lines(x, figureAxis(name, aboutFigure(name), least, most), all)
}

// extremes are the ones with the lowest and the highest value.
func extremes[T any, V cmp.Ordered](all []T, value func(T) V) (low, high T) {
	by := func(a, b T) int { return cmp.Compare(value(a), value(b)) }
	return slices.MinFunc(all, by), slices.MaxFunc(all, by)
}

// lowToHigh says what a figure came to at a load: lowest and highest arm.
func lowToHigh(load, name string, of []armOf) string {
	of = slices.DeleteFunc(slices.Clone(of), func(a armOf) bool { return !a.spread(load, name).number() })
	if len(of) == 0 {
		return "not known"
	}
	low, high := extremes(of, func(a armOf) float64 { return a.spread(load, name).middle })
	lowest, highest := figureText(name, low.spread(load, name).middle), figureText(name, high.spread(load, name).middle)
	if lowest == highest {
		return lowest
	}
	return fmt.Sprintf("%s (%s) to %s (%s)", lowest, low.beside(low.Label, load, name), highest, high.beside(high.Label, load, name))
}

// tailFigure is the highest quantile, at most p99, that some arm knows at a load, or at two
// of all loads if that is "".
func tailFigure(all cells, load string) string {
	for _, name := range []string{"p99", "p95"} {
		loads, known := map[string]bool{}, map[string]bool{}
		for key, blocks := range all {
			if load == "" || key.load == load {
				loads[key.load] = true
				if spreadOf(blocks, name).known > 0 {
					known[key.load] = true
				}
			}
		}
		if len(known) > 0 && len(known) >= min(2, len(loads)) {
			return name
		}
	}
	return "p90"
}

// part is a figure that is a part of a bar.
type part struct {
	figure string
	Key
}

// bars is a figure of all arms at a load, in parts that add up to it, or whole without any;
// nil if it is 0 or not known.
func bars(load, name string, parts []part, of []armOf) *Picture {
	if parts == nil {
		parts = []part{{name, Key{Label: figureName(name), Pen: accent}}}
	}
	var keys []Key
	for _, p := range parts {
		keys = append(keys, p.Key)
	}
	var rows []bar
	most := 0.0
	for _, a := range of {
		if len(a.cells[cellKey{a.arm, load}]) == 0 {
			continue
		}
		b, sum := bar{label: a.Label, text: "not known", marked: a.marked(load, name)}, 0.0
		if s := a.spread(load, name); s.known > 0 {
			b.text = a.beside(figureText(name, s.middle), load, name)
		}
		for _, p := range parts {
			s := a.spread(load, p.figure)
			if !s.number() {
				s.middle = 0
			}
			b.values = append(b.values, s.middle)
			sum += s.middle
		}
		most = max(most, sum)
		rows = append(rows, b)
	}
	if most == 0 {
		return nil
	}
	title := fmt.Sprintf("%s: %s %s", load, figureName(name), lowToHigh(load, name, of))
	return Picture{Title: title}.bars(linear(aboutFigure(name), most, axisName(name)), keys, rows)
}

// cost is the CPU of a call at the load that decides, by who has used it.
func (r Run) cost(all cells) *Picture {
	load, arms := r.primary().Load, r.arms(all)
	parts := []part{
		{"cpu_workers", Key{Label: "workers", Pen: gray}}, {"cpu_front", Key{Label: "front", Pen: accent}},
		{"cpu_gateway", Key{Label: "gateway", Pen: green}}, {"cpu_generator", Key{Label: "callers", Pen: ocher}},
	}
	parts = slices.DeleteFunc(parts, func(p part) bool {
		return !slices.ContainsFunc(arms, func(a armOf) bool { return a.spread(load, p.figure).number() })
	})
	return bars(load, "cpu_all", parts, arms)
}
