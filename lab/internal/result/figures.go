package result

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Unit is that of a figure.
type Unit string

// The units, as they stand in JSON.
const (
	Seconds    Unit = "seconds"
	CPUSeconds Unit = "CPU seconds per answered call"
	Share      Unit = "share of 1"
	PerSecond  Unit = "per second"
	Bytes      Unit = "bytes"
	Number     Unit = "number"
)

// Info describes a figure.
type Info struct {
	Name  string
	Title string // what it is called over a column; empty: Name
	Unit  Unit
	About string  // what it is, in a few words
	Share float64 // of a quantile: 0.99 of p99, 1 of max; else 0
	First bool    // it is of the times to the first message
}

// All returns the figures that a block may have, in the order in which people read them.
func All() []Info {
	return []Info{
		{Name: "p50", Unit: Seconds, Share: 0.5, About: "latency that half of the calls did not exceed"},
		{Name: "p90", Unit: Seconds, Share: 0.9, About: "latency that 90 % of the calls did not exceed"},
		{Name: "p95", Unit: Seconds, Share: 0.95, About: "latency that 95 % of the calls did not exceed"},
		{Name: "p99", Unit: Seconds, Share: 0.99, About: "latency that 99 % of the calls did not exceed"},
		{Name: "p99.9", Unit: Seconds, Share: 0.999, About: "latency that 99.9 % of the calls did not exceed"},
		{Name: "mean", Unit: Seconds, About: "mean latency"},
		{Name: "max", Unit: Seconds, Share: 1, About: "longest latency"},
		{Name: "first_p50", Title: "first message, p50", Unit: Seconds, Share: 0.5, First: true, About: "time to the first message that half of the streams did not exceed"},
		{Name: "first_p99", Title: "first message, p99", Unit: Seconds, Share: 0.99, First: true, About: "time to the first message that 99 % of the streams did not exceed"},
		{Name: "total", Unit: Seconds, About: "time that a given number of calls took together"},
		{Name: "lag", Unit: Seconds, About: "how late the callers sent 99 % of the calls of an open loop, at most"},
		{Name: "errors", Unit: Share, About: "calls that were due and not answered: failed, unsent or open"},
		{Name: "rate", Title: "answers", Unit: PerSecond, About: "answers that came"},
		{Name: "cpu_generator", Title: "CPU of callers", Unit: CPUSeconds, About: "CPU of the callers"},
		{Name: "cpu_workers", Title: "CPU of workers", Unit: CPUSeconds, About: "CPU of the workers"},
		{Name: "cpu_front", Title: "CPU of front", Unit: CPUSeconds, About: "CPU of what is in front of the workers"},
		{Name: "cpu_gateway", Title: "CPU of gateway", Unit: CPUSeconds, About: "CPU of the program that makes the calls, where callers speak HTTP to one"},
		{Name: "cpu_all", Title: "CPU per call", Unit: CPUSeconds, About: "CPU of callers, gateway, front and workers"},
		{Name: "rss_front", Title: "memory of front", Unit: Bytes, About: "most memory of what is in front of the workers"},
		{Name: "rss_front_grown", Unit: Bytes, About: "what is in front of the workers held more at the end than before the load"},
		{Name: "rss_connection", Unit: Bytes, About: "the same for each connection of the callers"},
		{Name: "rss_workers", Title: "memory of workers", Unit: Bytes, About: "most memory of all workers together"},
		{Name: "connections", Unit: Number, About: "connections that the callers opened, warm-up included"},
		{Name: "over_ideal", Title: "p99 over ideal", Unit: Number, About: "p99 over that of one queue without any cost, with the same arrivals and service times"},
		{Name: "over_ideal_mean", Title: "mean over ideal", Unit: Number, About: "mean latency over that of the same queue"},
		{Name: "spread", Unit: Number, About: "coefficient of variation of the calls per worker; 0 is an equal share for each"},
		{Name: "recovery", Unit: Seconds, About: "from the first event until every call is answered again, by whole intervals of the timeline"},
		{Name: "rebalance", Unit: Seconds, About: "from the first worker that was added until those that were get their part of the calls, by whole intervals of the timeline"},
	}
}

// Known returns the description of a figure; false if there is none of this name.
func Known(name string) (Info, bool) {
	for _, f := range All() {
		if f.Name == name {
			return f, true
		}
	}
	return Info{}, false
}

// Tail reports whether a figure is about the slowest few calls.
func (f Info) Tail() bool { return f.Share > 0.5 }

// Answers reports whether a figure is about answered calls and leaves failed ones out: it
// says nothing of an arm without its errors.
func (f Info) Answers() bool {
	switch f.Name {
	case "recovery", "rebalance", "lag":
		return false
	case "over_ideal", "over_ideal_mean":
		return true
	}
	return f.Unit == Seconds || f.Unit == CPUSeconds
}

// Spare is by how much the errors of two arms may differ before such a figure of one is
// not to be set beside that of the other: a tenth of the calls beyond a quantile, none for
// the longest call, and one call in a thousand for all others.
func (f Info) Spare() float64 {
	if f.Share > 0 {
		return (1 - f.Share) / 10
	}
	return 0.001
}

// Measure fills in what follows from the record of the block: Figures, Beyond, Late, Silent,
// Errors and Workers. Processes and Events are there already. workers is how many there
// are, so that those without any call count in "spread".
//
// CPU of a call is that of the block over its answered calls, those of the warm-up
// included, as it is in the CPU.
func (b *Block) Measure(r *traffic.Record, workers int) {
	b.Figures = map[string]float64{"errors": r.FailedShare(), "rate": r.PerSecond(), "connections": float64(r.Opened)}
	b.Beyond, b.Late, b.Errors, b.Workers = nil, map[string]float64{}, errorsOf(r), nil
	if len(r.Workers) > 0 {
		b.Workers = maps.Clone(r.Workers)
		if max(workers, len(r.Workers)) > 1 {
			b.Figures["spread"] = r.Workers.Variation(workers)
		}
	}
	b.Silent = r.Due > 0 && r.Calls.Answered.Count() == 0
	if !b.Silent {
		b.latencies(r)
	}
	if lag := r.Lag.Quantile(0.99); r.Loop == traffic.OpenLoop && !lag.TooFew {
		b.Figures["lag"] = lag.Value.Seconds()
	}
	b.total(r)
	b.costs(r)
	b.recovery(r)
	b.rebalance(r, workers)
}

// Against adds how far the latencies are from those of a perfect queue that was given the
// same calls, and serves them all: who refuses some can be better than it, so nothing is
// told if a call had no answer.
func (b *Block) Against(r *traffic.Record, ideal *latency.Histogram) {
	all := r.Calls.Answered
	if all.Count() == 0 || all.Count() < r.Due || ideal.Mean() == 0 {
		return
	}
	b.Figures["over_ideal_mean"] = float64(all.Mean()) / float64(ideal.Mean())
	if ours, best := all.Quantile(0.99), ideal.Quantile(0.99); !ours.TooFew && !best.TooFew && best.Value > 0 {
		b.Figures["over_ideal"] = float64(ours.Value) / float64(best.Value)
		if r.LateAt(0.99, ours.Value) {
			b.Late["over_ideal"] = float64(ours.Value-r.LagAt(0.99)) / float64(best.Value)
		}
	}
}

// total is told of a load with a given number of calls. If they were not all made in
// the time that there was for them, it is above every number.
func (b *Block) total(r *traffic.Record) {
	switch {
	case r.Whole():
		b.Figures["total"] = r.Counted.Seconds()
	case r.Work > 0 && !r.Cut:
		b.Beyond = append(b.Beyond, "total")
	}
}

func (b *Block) latencies(r *traffic.Record) {
	all := r.Latency()
	if all.Count() == 0 {
		return
	}
	b.Figures["mean"] = all.Mean().Seconds()
	for _, f := range All() {
		from := all
		if f.First {
			from = r.First
		}
		q := from.Quantile(f.Share)
		switch {
		case f.Share == 1:
			q.Value = from.Max()
		case f.Share == 0 || q.TooFew:
			continue
		}
		b.Figures[f.Name] = q.Value.Seconds()
		if r.LateAt(f.Share, q.Value) {
			b.Late[f.Name] = (q.Value - r.LagAt(f.Share)).Seconds()
		}
	}
}

// costs are CPU and memory by kind of process.
func (b *Block) costs(r *traffic.Record) {
	cpu, held := map[string]time.Duration{}, map[string]int64{}
	for _, p := range b.Processes {
		cpu[p.Kind()] += p.CPU
		held[p.Kind()] += p.held()
	}
	if held["worker"] > 0 {
		b.Figures["rss_workers"] = float64(held["worker"])
	}
	for _, p := range b.Processes {
		if p.Kind() == "front" && held["front"] > 0 {
			b.Figures["rss_front"] = float64(held["front"])
			b.Figures["rss_front_grown"] = float64(max(0, p.Grown))
			b.Figures["rss_connection"] = float64(max(0, p.Grown)) / float64(max(1, r.Opened))
		}
	}
	answered := r.Calls.Answered.Count() + r.Warmup.Calls - r.Warmup.Failed
	if answered == 0 {
		return
	}
	var all time.Duration
	for kind, name := range map[string]string{"generator": "cpu_generator", "worker": "cpu_workers", "front": "cpu_front", "gateway": "cpu_gateway"} {
		used, seen := cpu[kind]
		if kind == "generator" {
			used = max(0, used-r.Watched) // which no caller would spend
		}
		if seen {
			b.Figures[name] = used.Seconds() / float64(answered)
		}
		all += used
	}
	if all > 0 {
		b.Figures["cpu_all"] = all.Seconds() / float64(answered)
	}
}

// recovery is told of a block with events: until the end of the last interval in which
// a call was due that was not answered. If that is the last one of all, nobody knows.
func (b *Block) recovery(r *traffic.Record) {
	if len(b.Events) == 0 || r.Timeline.Step <= 0 {
		return
	}
	first := b.Events[0].At
	for _, e := range b.Events {
		first = min(first, e.At)
	}
	line := &r.Timeline
	last := -1
	for i := int(max(first, 0) / line.Step); i < len(line.Intervals); i++ {
		if of := &line.Intervals[i]; of.Due > of.Answered {
			last = i
		}
	}
	switch {
	case last < 0:
		b.Figures["recovery"] = 0
	case last == len(line.Intervals)-1:
		b.Beyond = append(b.Beyond, "recovery")
	default:
		b.Figures["recovery"] = (time.Duration(last+1)*line.Step - first).Seconds()
	}
}

// errorsOf counts calls without an answer by what became of them.
func errorsOf(r *traffic.Record) map[string]int64 {
	all := map[string]int64{}
	for code, n := range r.Calls.Codes {
		if n > 0 {
			all[codes.Code(code).String()] = n
		}
	}
	if n := r.Unsent.Ages.Count(); n > 0 {
		all["unsent"] = n
	}
	if n := r.Open.Count(); n > 0 {
		all["open"] = n
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// mostNoise is how many cores others may use on average while a block is measured. A
// tenth of one is what a quiet machine has; from a fifth on p99 of short calls moves.
const mostNoise = 0.2

// Marks says why a block is not judged, or nothing: the generator was too busy, or late on
// average, or others used the machine. busy is the share, 0 to 1, of the busiest core of a
// generator, noise the cores that others used. Figures that it may be late for are in Block.Late.
func Marks(r *traffic.Record, busy, noise float64) (marks []string) {
	if limit := cmp.Or(traffic.TooBusy(busy), r.LateOnAverage()); limit != "" {
		marks = append(marks, limit)
	}
	if noise > mostNoise {
		marks = append(marks, fmt.Sprintf("others used %.2f cores meanwhile, %.2f are allowed", noise, mostNoise))
	}
	return marks
}

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
	first := map[string]bool{}
	for _, name := range calls.Busiest()[:min(n, len(calls))] {
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

// newShare is the share of the calls that workers have answered who were not there before.
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
