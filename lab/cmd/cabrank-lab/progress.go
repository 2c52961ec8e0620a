package main

import (
	"fmt"
	"io"
	"time"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// quietProgress is how often a load tells how it goes where lines cannot be replaced.
const quietProgress = 10 * time.Second

// loadProgress shows how a load goes: in place on a terminal, else in a line now and
// then.
type loadProgress struct {
	out    io.Writer
	screen cli.Screen
	last   time.Duration // when a line was written that stays
	shown  bool          // there is a line to replace
}

func newLoadProgress(out io.Writer) *loadProgress {
	return &loadProgress{out: out, screen: cli.ScreenOf(out)}
}

func (p *loadProgress) show(l traffic.Live) {
	line := progressLine(l)
	if p.replace(line) {
		return
	}
	if l.Elapsed-p.last >= quietProgress-time.Second/2 {
		p.last = l.Elapsed
		fmt.Fprintln(p.out, line)
	}
}

// replace shows a line in the place of the last one, where that is possible.
func (p *loadProgress) replace(line string) bool {
	if p.screen.InPlace {
		fmt.Fprintf(p.out, "\r\x1b[K%s", p.screen.Fit(line))
		p.shown = true
	}
	return p.screen.InPlace
}

func (p *loadProgress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

// progressLine is how a load goes, in about 80 columns.
func progressLine(l traffic.Live) string {
	left := max(l.Length-l.Elapsed, 0).Round(time.Second)
	line := fmt.Sprintf("%v left", left)
	if left == 0 {
		line = "waiting for answers"
	}
	if l.Warmup {
		line += ", warming up"
	}
	if l.PerSecond > 0 {
		line += fmt.Sprintf(", %.0f/s, p50 %v, p99 %v", l.PerSecond, short(l.P50), short(l.P99))
	}
	line += fmt.Sprintf(", %d answered", l.Answered)
	for _, more := range []struct {
		n    int64
		what string
	}{{l.Failed, "failed"}, {l.Unsent, "unsent"}, {l.UnderWay, "under way"}} {
		if more.n > 0 {
			line += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	return line
}

// short is a duration with about two digits.
func short(d time.Duration) time.Duration {
	for unit := time.Second; unit > time.Microsecond; unit /= 10 {
		if d >= 10*unit {
			return d.Round(unit)
		}
	}
	return d.Round(time.Microsecond)
}
