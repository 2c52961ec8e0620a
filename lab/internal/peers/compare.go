package peers

import (
	"fmt"
	"math"
	"slices"
)

// bestL7 is the good run of the L7 peer that needed the least CPU per call in
// one round of a workload.
func (r *report) bestL7(workload string, repeat int) (bestRun run, ok bool) {
	for _, p := range r.Peers {
		if p.Layer != "L7" {
			continue
		}
		got, found := r.good(workload, p.Name, phaseMax, repeat)
		if found && (!ok || got.CPUPerCall < bestRun.CPUPerCall) {
			bestRun, ok = got, true
		}
	}
	return bestRun, ok
}

// good finds the run of one round, if it was a good one.
func (r *report) good(workload, peer string, in phase, repeat int) (run, bool) {
	for _, run := range r.runsOf(workload, peer, in) {
		if run.Repeat == repeat && run.good() {
			return run, true
		}
	}
	return run{}, false
}

// checksOf compares what is to be compared on a workload: cabrank by the bars,
// then what is told without one.
func (r *report) checksOf(w workload, o options) (all []check) {
	subject := "cabrank"
	switch w.Kind {
	case kindShards:
		subject = "cabrank-2shards"
	case kindQueue:
		subject = oneSlotPeer
	case kindRefuse:
		subject = workersPeer
	case kindRaw:
		subject = direct
	default:
	}
	if !slices.ContainsFunc(o.peersOf(w), func(p peer) bool { return p.Name == subject }) {
		return nil
	}
	for _, b := range w.Bars {
		if r.answerable(b, w, o) {
			all = append(all, r.check(w, subject, b))
		}
	}
	for _, b := range untold(w, o) {
		all = append(all, r.check(w, b.peer, b.bar))
	}
	return all
}

// answerable says whether the peers of a bar were asked for.
func (r *report) answerable(b bar, w workload, o options) bool {
	return b.Beside == "" || slices.ContainsFunc(o.peersOf(w), func(p peer) bool {
		return p.Name == b.Beside || b.Beside == best && p.Layer == "L7"
	})
}

// aside is a comparison without a bar.
type aside struct {
	peer string
	bar
}

// untold are the comparisons that no bar makes: cabrank with each other proxy,
// its variants with itself, what other proxies add to the latency.
func untold(w workload, o options) (all []aside) {
	if w.Kind == kindShards && len(w.Bars) == 0 {
		return []aside{{"cabrank-2shards", bar{What: whatCPU, Beside: "cabrank-1shard"}}}
	}
	for _, p := range o.peersOf(w) {
		with := func(b bar) bool {
			return slices.ContainsFunc(w.Bars, func(has bar) bool { return has.What == b.What && has.Beside == b.Beside })
		}
		var a aside
		switch {
		case p.Name == "cabrank" || p.Name == direct:
			continue
		case w.Kind == kindOpen:
			a = aside{p.Name, bar{What: whatAdded, Beside: direct}}
		case w.Kind == kindClosed && p.ours():
			a = aside{p.Name, bar{What: whatCPU, Beside: "cabrank"}}
		case w.Kind == kindClosed:
			a = aside{"cabrank", bar{What: whatCPU, Beside: p.Name}}
		default:
			continue
		}
		if a.peer != "cabrank" || !with(a.bar) {
			all = append(all, a)
		}
	}
	return all
}

// check forms the values of all rounds in which both sides are good.
func (r *report) check(w workload, subject string, b bar) check {
	c := check{Workload: w.Name, Peer: subject, What: b.What, Beside: b.Beside, Unit: unit(b.What), Most: b.Most, Least: b.Least}
	if b.What == whatRSS {
		c.Most, c.Because = r.memoryBar(b.Most, subject)
	}
	in := phaseFor(w, b.What)
	rounds := 0
	for _, ours := range r.runsOf(w.Name, subject, in) {
		rounds++
		beside, ok := b.Beside, true
		if beside == best {
			var bestRun run
			bestRun, ok = r.bestL7(w.Name, ours.Repeat)
			beside = bestRun.Peer
		}
		theirs := run{}
		if ok && beside != "" {
			theirs, ok = r.good(w.Name, beside, in, ours.Repeat)
		}
		got := value(b.What, ours, theirs)
		if !ok || !ours.good() || math.IsNaN(got) || math.IsInf(got, 0) {
			continue
		}
		c.Values = append(c.Values, got)
		if b.Beside == best {
			c.Best = append(c.Best, beside)
		}
	}
	c.judge(rounds)
	return c
}

const (
	// muchCode is how much of a program may be resident before its memory is
	// judged by what it takes beside its code, in MB.
	muchCode = 9
	// besideStart is how much more than at its start it may then have, in MB.
	besideStart = 6
)

// memoryBar is the most that a proxy may hold after load, in MB: most or, if
// the pages of its program alone are more than muchCode, besideStart more than
// at its start. That is known when the workload start was measured, too.
func (r *report) memoryBar(most float64, peer string) (bar float64, because string) {
	var code, all []float64
	for _, run := range r.Runs {
		if run.Peer == peer && run.Phase == phaseStart && run.good() {
			code, all = append(code, run.files()), append(all, run.rss())
		}
	}
	if median(code) <= muchCode {
		return most, ""
	}
	start := median(all)
	return start + besideStart, fmt.Sprintf("%.1f at the start + %d, as %.1f are the program", start, besideStart, median(code))
}

func unit(what string) string {
	switch what {
	case whatAdded:
		return "ms"
	case whatPerConn:
		return "KiB"
	case whatRSS:
		return "MB"
	case whatOverlap, whatLate:
		return "calls"
	case whatCalls, whatPaced:
		return "calls/s"
	case whatLag:
		return "us"
	default:
		return ""
	}
}

// phaseFor is the phase that a comparison is about.
func phaseFor(w workload, what string) phase {
	switch {
	case what == whatPerConn:
		return phaseIdle
	case w.Kind == kindClosed && (what == whatCPU || what == whatRSS), what == whatCalls:
		return phaseMax
	default:
		return phaseRate
	}
}

func value(what string, ours, theirs run) float64 {
	if ours.Queue != nil {
		return queueValue(what, *ours.Queue)
	}
	switch what {
	case whatCPU:
		return ours.CPUPerCall / theirs.CPUPerCall
	case whatP50:
		return ours.P50 / theirs.P50
	case whatP99:
		return ours.P99 / theirs.P99
	case whatAdded:
		return (ours.P50 - theirs.P50) / 1000
	case whatPerConn:
		return ours.perConnection()
	case whatCalls, whatPaced:
		return ours.PerSecond
	case whatLag:
		return ours.Lag
	default:
		return ours.rss()
	}
}
