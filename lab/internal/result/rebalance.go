package result

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

const (
	// enoughOfPart is the share of its part that a new worker has to get: less is not
	// a part any more, all of it comes and goes with chance.
	enoughOfPart = 0.75
	// partWindow is how many intervals have to show it: a single connection may be
	// there in one second and elsewhere in the next.
	partWindow = 4
)

// rebalance is told of a block in which workers were added: until the beginning of the
// first stretch of four intervals in which they have at least three quarters of an equal
// part of the calls, and half of that in the first of them. If there is none, nobody knows how long it takes.
func (b *Block) rebalance(r *traffic.Record, workers int) {
	at, added := b.added()
	if added == 0 || workers <= added || r.Timeline.Step <= 0 {
		return
	}
	line := &r.Timeline
	from := min(int(at/line.Step), len(line.Intervals))
	before := foremost(line.Intervals[:from], workers-added)
	part := enoughOfPart * float64(added) / float64(workers)
	for i := from; i+partWindow <= len(line.Intervals); i++ {
		window := line.Intervals[i : i+partWindow]
		if newShare(window, before) >= part && newShare(window[:1], before) >= part/2 {
			b.Figures["rebalance"] = max(0, time.Duration(i)*line.Step-at).Seconds()
			return
		}
	}
	b.Beyond = append(b.Beyond, "rebalance")
}

// foremost are the n workers who have answered the most calls. Where calls take long, one
// that was due before a worker was added may be answered by that worker.
func foremost(intervals []traffic.Interval, n int) map[string]bool {
	calls := traffic.Shares{}
	for i := range intervals {
		for name, c := range intervals[i].Workers {
			calls[name] += c
		}
	}
	names := slices.SortedFunc(maps.Keys(calls), func(a, b string) int { return cmp.Or(cmp.Compare(calls[b], calls[a]), cmp.Compare(a, b)) })
	first := map[string]bool{}
	for _, name := range names[:min(n, len(names))] {
		first[name] = true
	}
	return first
}

func (b *Block) added() (first time.Duration, n int) {
	for _, e := range b.Events {
		if !strings.HasSuffix(e.Did, "added") || e.Err != "" {
			continue
		}
		if n++; n == 1 || e.At < first {
			first = e.At
		}
	}
	return first, n
}

// newShare is the share of the calls that workers have answered who were not there
// before.
func newShare(intervals []traffic.Interval, before map[string]bool) float64 {
	var all, fresh int64
	for i := range intervals {
		for name, calls := range intervals[i].Workers {
			all += calls
			if !before[name] {
				fresh += calls
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(fresh) / float64(all)
}
