package report

import (
	"cmp"
	"slices"

	"github.com/cabrank/cabrank/lab/internal/result"
)

// cells are the blocks of a run by arm and load, each in the order of the rounds.
type cells map[cellKey][]*result.Block

type cellKey struct{ arm, load string }

func cellsOf(r *result.Run) cells {
	all := cells{}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		key := cellKey{b.Arm, b.Load}
		all[key] = append(all[key], b)
	}
	for _, blocks := range all {
		slices.SortStableFunc(blocks, func(a, b *result.Block) int { return cmp.Compare(a.Round, b.Round) })
	}
	return all
}

// of returns the blocks to look at: those that are judged, or all if none is.
func (c cells) of(arm, load string) (blocks []*result.Block, marked bool) {
	all := c[cellKey{arm, load}]
	for _, b := range all {
		if b.Judged() {
			blocks = append(blocks, b)
		}
	}
	if len(blocks) == 0 {
		return all, len(all) > 0
	}
	return blocks, false
}

// marked reports whether no block of an arm at a load is judged, or half of them have a figure
// of which more than a tenth may be send lag.
func (c cells) marked(arm, load, figure string) bool {
	blocks, marked := c.of(arm, load)
	late := 0
	for _, b := range blocks {
		if b.IsLate(figure) {
			late++
		}
	}
	return marked || 2*late > len(blocks)
}

func (c cells) spread(arm, load, figure string) spread {
	blocks, _ := c.of(arm, load)
	return spreadOf(blocks, figure)
}

// errors is the mean share of the calls without an answer in the blocks to look at: a
// median would not know of a few blocks in which many were refused. NaN without blocks.
func (c cells) errors(arm, load string) float64 {
	blocks, _ := c.of(arm, load)
	sum := 0.0
	for _, b := range blocks {
		if b.Silent {
			sum++
			continue
		}
		sum += b.Figures["errors"]
	}
	return sum / float64(len(blocks))
}

// besideErrors adds to what a figure of answered calls is told of how many had none, where
// that is more than the figure can spare: without it who refuses looks fast.
func besideErrors(text, figure string, errors float64) string {
	if f, _ := result.Known(figure); f.Answers() && errors > f.Spare() {
		return text + ", " + percent(errors) + " errors"
	}
	return text
}

func (c cells) round(arm, load string, round int) *result.Block {
	for _, b := range c[cellKey{arm, load}] {
		if b.Round == round {
			return b
		}
	}
	return nil
}

func (c cells) rounds() (most int) {
	for _, blocks := range c {
		for _, b := range blocks {
			most = max(most, b.Round)
		}
	}
	return most
}
