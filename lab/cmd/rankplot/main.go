// Command rankplot draws the pictures of docs/rank.md and docs/scaling.md: it
// sends calls through the real rank, or has workers follow a load, under a virtual
// clock (packages ranksim and scalesim) and writes one SVG file for each picture.
//
//	rankplot -out docs/img
//
// The random numbers are always the same ones, and so is every byte, on one kind
// of processor. It measures no time of this machine, and nothing of the network,
// bytes or processor time of a real call.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cabrank/cabrank/lab/internal/report"
)

func main() {
	out := flag.String("out", filepath.Join("docs", "img"), "`folder` of the pictures")
	flag.Parse()
	if err := run(*out, effort{calls: 1_000_000, seeds: 4, rounds: 200}); err != nil {
		fmt.Fprintln(os.Stderr, "rankplot:", err)
		os.Exit(1)
	}
}

// effort is how much is simulated: what is drawn is the same with less, but
// more of it is chance.
type effort struct {
	calls  int // of each point of a line over the load
	seeds  int // how often so many, where chance is strong
	rounds int // with random numbers of their own, behind each line over time
}

// picture is one file.
type picture struct {
	name string
	page string // of docs, that shows it
	draw func(effort) report.Chart
}

func pictures() []picture {
	return []picture{
		{"rank-policies.svg", "rank.md", policies},
		{"rank-overload.svg", "rank.md", overload},
		{"rank-shares.svg", "rank.md", shares},
		{"rank-slow.svg", "rank.md", slowWorker},
		{"scaling-step.svg", "scaling.md", step},
		{"scaling-day.svg", "scaling.md", day},
	}
}

// named is a line without points.
func named(label string, pen report.Pen) report.Line {
	return report.Line{Key: report.Key{Label: label, Pen: pen}}
}

// level is one that others are held against.
func level(label string, points ...[2]float64) report.Line {
	l := report.Line{Key: report.Key{Label: label, Pen: "gray", Dashed: true}}
	for _, at := range points {
		l.Add(at[0], at[1])
	}
	return l
}

// run writes all pictures to a folder, which it makes.
func run(out string, e effort) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, p := range pictures() {
		if err := os.WriteFile(filepath.Join(out, p.name), p.draw(e).SVG(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
