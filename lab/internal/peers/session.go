package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// session measures everything, round after round.
type session struct {
	*rig
	report *report
	began  time.Time
	done   int
	total  int // runs
	kept   *histograms
	lost   error // why histograms are missing
}

// newSession returns one that ends with close.
func newSession(r *rig) (*session, error) {
	s := &session{rig: r, report: newReport(r.options), began: time.Now()}
	var err error
	if s.kept, err = newHistograms(filepath.Join(r.dir, "histograms"), s.began); err != nil {
		return nil, err
	}
	for _, w := range r.workloads {
		s.total += r.repeats * len(r.peersOf(w)) * len(r.phases(w))
	}
	return s, nil
}

func (s *session) close() { s.kept.close() }

// peersOf are the proxies that are measured on a workload.
func (o options) peersOf(w workload) (some []peer) {
	all := append([]peer{directPeer()}, o.peers...)
	if w.Kind == kindShards {
		all = o.shards
	}
	for _, p := range all {
		if p.measuredOn(w.Kind) && o.openFiles(p, w) <= o.files {
			some = append(some, p)
		}
	}
	return some
}

// openFiles is how many a proxy needs for a workload, with some to spare.
func (o options) openFiles(p peer, w workload) uint64 {
	const spare = 100
	if p.pairs {
		return 2*uint64(w.Conns) + spare
	}
	return uint64(w.Conns) + spare
}

// leftOut says which proxies cannot be measured on what.
func (o options) leftOut() (lines []string) {
	for _, w := range o.workloads {
		for _, p := range o.peers {
			if need := o.openFiles(p, w); p.measuredOn(w.Kind) && need > o.files {
				lines = append(lines, fmt.Sprintf("%s on %s: it would need %d open files, %d are allowed", p.Name, w.Name, need, o.files))
			}
		}
	}
	return lines
}

// phases are the runs of each proxy in a round. Without an L7 peer there is no
// rate at which latency could be compared.
func (o options) phases(w workload) []phase {
	switch w.Kind {
	case kindClosed:
		for _, p := range o.peersOf(w) {
			if p.Layer == "L7" {
				return []phase{phaseMax, phaseRate}
			}
		}
		return []phase{phaseMax}
	case kindRaw:
		return []phase{phaseMax, phaseRate}
	case kindIdle:
		return []phase{phaseIdle}
	case kindStart:
		return []phase{phaseStart}
	default:
		return []phase{phaseRate}
	}
}

// run goes over all workloads and proxies, so often as there are repeats, or
// until it is told to stop.
func (s *session) run(ctx context.Context) {
	for _, line := range s.report.LeftOut {
		fmt.Fprintln(os.Stderr, "lab: left out:", line)
	}
	for repeat := range s.repeats {
		for _, w := range s.workloads {
			for _, in := range s.phases(w) {
				s.round(ctx, w, in, repeat)
			}
		}
	}
}

// round measures one phase of one workload: every proxy once, another one
// first each time.
func (s *session) round(ctx context.Context, w workload, in phase, repeat int) {
	rate := w.Rate
	if w.Kind == kindClosed && in == phaseRate {
		best, ok := s.report.bestL7(w.Name, repeat)
		if !ok {
			return // each L7 run has said why it failed
		}
		rate = best.PerSecond / 2
	}
	peers := s.peersOf(w)
	for i := range peers {
		if ctx.Err() != nil {
			return
		}
		s.measure(job{peer: peers[(i+repeat)%len(peers)], workload: w, phase: in, rate: rate, repeat: repeat})
	}
}

func (s *session) measure(j job) {
	run := s.rig.run(j)
	s.lost = errors.Join(s.lost, s.kept.take(&run))
	s.report.Runs = append(s.report.Runs, run)
	s.done++
	left := time.Since(s.began) / time.Duration(s.done) * time.Duration(s.total-s.done)
	fmt.Fprintf(os.Stderr, "[%d/%d, %v left] %s\n", s.done, s.total, left.Round(time.Second), run.line())
}
