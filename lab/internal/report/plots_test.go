package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/scalesim"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/report"
)

// The pictures of docs/rank.md and docs/workers.md: calls go through the real rank, or workers
// follow a load, under a virtual clock (packages ranksim and scalesim). The random numbers are
// always the same ones, and so is every byte, on one kind of processor. They measure no time of
// this machine, and nothing of the network, bytes or processor time of a real call.

var (
	draw  = flag.Bool("draw", false, "simulate the pictures of docs/rank.md and docs/workers.md again, in 4 minutes")
	title = regexp.MustCompile(`<title id="title">(.+)</title>`)
)

// maxPicture is what a picture may weigh, in bytes.
const maxPicture = 30_000

// effort is how much is simulated: what is drawn is the same with less, but more of it is chance.
type effort struct {
	calls  int // of each point of a line over the load
	seeds  int // how often so many, where chance is strong
	rounds int // with random numbers of their own, behind each line over time
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

// A little of everything gives pictures that are well-formed, small, and the
// same again; those in docs/img say the same, so they were drawn since the words
// were changed, and a page of docs shows them.
func TestPictures(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	for _, p := range []struct {
		name string
		page string // of docs, that shows it
		draw func(effort) report.Chart
	}{
		{"rank-policies.svg", "rank.md", policies},
		{"rank-overload.svg", "rank.md", overload},
		{"rank-shares.svg", "rank.md", shares},
		{"rank-slow.svg", "rank.md", slowWorker},
		{"scaling-step.svg", "workers.md", step},
		{"scaling-day.svg", "workers.md", day},
	} {
		file := filepath.Join(docs, "img", p.name)
		if *draw {
			testkit.Must(t, os.WriteFile(file, p.draw(effort{calls: 1_000_000, seeds: 4, rounds: 200}).SVG(), 0o644))
		}
		little := effort{calls: 300, seeds: 1, rounds: 1}
		drawn, shown := p.draw(little).SVG(), load(t, file)
		check(t, p.name, drawn)
		check(t, p.name+" of docs/img", shown)
		testkit.Want(t, bytes.Equal(drawn, p.draw(little).SVG()), "%s is another one at the second time", p.name)
		if is, was := title.FindSubmatch(drawn), title.FindSubmatch(shown); is == nil || !slices.EqualFunc(is, was, bytes.Equal) {
			t.Errorf("%s of docs/img has another title than would be drawn: run make rank-plots", p.name)
		}
		testkit.Want(t, strings.Contains(string(load(t, filepath.Join(docs, p.page))), "](img/"+p.name+")"),
			"docs/%s does not show %s", p.page, p.name)
	}
}

func load(t *testing.T, path string) []byte {
	t.Helper()
	text := testkit.ReadFile(t, path)
	return text
}

// check holds a picture against what every one is.
func check(t *testing.T, name string, text []byte) {
	t.Helper()
	testkit.Want(t, len(text) <= maxPicture, "%s has %d bytes, more than %d", name, len(text), maxPicture)
	testkit.Want(t, !bytes.Contains(text, []byte("NaN")) && !bytes.Contains(text, []byte("Inf")), "%s has a place that is no number", name)
	lines := 0
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		testkit.Need(t, err == nil, "%s: %v", name, err)
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "path" && len(start.Attr) > 0 && strings.Contains(start.Attr[0].Value, " line") {
			lines++
		}
	}
	testkit.Want(t, lines >= 2, "%s has %d lines", name, lines)
}

const (
	// usual is the mean time of a handler in all pictures of the rank.
	usual = 20 * time.Millisecond
	// endless is the length of a queue that is never full.
	endless = 1 << 20
)

// curve is a line over the load, and what serves the calls of its points.
type curve struct {
	report.Line

	serve func(calls []ranksim.Call, seed uint64) *ranksim.Result
}

// perfect is the line of a perfect queue for so many slots.
func perfect(slots int, label string) curve {
	return curve{level(label), func(calls []ranksim.Call, _ uint64) *ranksim.Result {
		return ranksim.FirstCome(calls, slots, ranksim.Handlers{})
	}}
}

// overLoad draws a quantile of the time in the system over the load, the mean of so many
// seeds; full is how many slots are busy at a load of 1. Calls are the same ones at every
// load, closer together or farther apart.
func overLoad(c report.Chart, quantile, full float64, n, seeds int, service ranksim.Service, curves ...curve) report.Chart {
	c.X.Label, c.X.Percent = "load, % of what the workers can do", true
	first, last := int(100*c.X.From), int(100*c.X.To)
	for percent := first; percent <= last; percent += 5 {
		load := float64(percent) / 100
		if (percent-first)%10 == 0 {
			c.X.Ticks = append(c.X.Ticks, load)
		}
		rate := load * full / usual.Seconds()
		found := make([]float64, len(curves))
		for seed := range uint64(seeds) {
			calls := ranksim.Workload{
				Seed: seed + 1, Until: time.Duration(float64(n) / rate * float64(time.Second)),
				Callers: []ranksim.Caller{{Rate: rate, Service: service}},
			}.Draw()
			for i := range curves {
				took := ranksim.Quantile(curves[i].serve(calls, seed).Sojourns(ranksim.Everyone), quantile)
				found[i] += float64(took) / float64(time.Millisecond)
			}
		}
		for i := range curves {
			curves[i].Add(load, found[i]/float64(seeds))
		}
	}
	for _, curve := range curves {
		c.Lines = append(c.Lines, curve.Line)
	}
	return c
}

// policies compares when and by what the worker of a call is chosen: nothing else is no
// default, but for a queue that is never full.
func policies(e effort) report.Chart {
	var curves []curve
	pens := []report.Pen{"gray", "wine", "green", "purple", "ocher"}
	for i, policy := range []ranksim.Policy{ranksim.Random, ranksim.RoundRobin, ranksim.P2C, ranksim.PeakEWMA, ranksim.LeastRequest} {
		curves = append(curves, curve{named(string(policy), pens[i]), func(calls []ranksim.Call, seed uint64) *ranksim.Result {
			return ranksim.Early(policy, calls, slots, 1, ranksim.Handlers{}, seed)
		}})
	}
	late := ranksim.System{Rank: rank.Options{QueueLength: endless}, Workers: ranksim.Alike(slots, ranksim.Worker{Slots: 1})}
	curves = append(curves, curve{named("late_binding", "accent"), func(calls []ranksim.Call, _ uint64) *ranksim.Result {
		return ranksim.Run(late, calls)
	}}, perfect(slots, "perfect queue")) // on top of the line that it meets
	return overLoad(report.Chart{
		Title: "Late binding is as quick as a perfect queue",
		Y:     report.Scale{Label: "p99 of the time in the system, ms (log scale)", From: 150, To: 12_000, Log: true, Ticks: []float64{200, 500, 1000, 2000, 5000, 10_000}},
		X:     report.Scale{From: 0.5, To: 0.95},
		Note:  "4 workers, one call at a time each. 95 % of the calls take 10 ms, 5 % take 210 ms (both exponential).",
	}, 0.99, slots, e.calls, e.seeds, ranksim.Mixed(), curves...)
}

// slowWorker compares the default with late binding that knows no pace, where
// one worker is much slower than the others.
func slowWorker(e effort) report.Chart {
	workers := ranksim.Alike(5, ranksim.Worker{Slots: 4})
	workers[2].Takes = func(c *ranksim.Call, _ time.Duration) time.Duration { return 10 * c.Service }
	const busy = 4.1 * 4 // slots of ordinary speed
	run := func(o rank.Options, calls []ranksim.Call) *ranksim.Result {
		o.QueueLength = endless
		return ranksim.Run(ranksim.System{Rank: o, Workers: workers}, calls)
	}
	better := func(calls []ranksim.Call, _ uint64) *ranksim.Result { return run(rank.Options{}, calls) }
	plain := func(calls []ranksim.Call, _ uint64) *ranksim.Result {
		calls = slices.Clone(calls)
		for i := range calls {
			calls[i].Method = -1 // of which the rank is told nothing, so that it knows no pace
		}
		return run(rank.Options{Choose: rank.LeastLoaded}, calls)
	}
	return overLoad(report.Chart{
		Title: "One worker that is ten times slower hardly shows",
		Y:     report.Scale{Label: "p99.9 of the time in the system, ms", To: 1050, Ticks: []float64{0, 250, 500, 750, 1000}},
		X:     report.Scale{From: 0.3, To: 0.9},
		Note:  "5 workers with 4 slots, one of them slow. Calls of 20 ms (exponential), 200 ms at the slow worker.",
	}, 0.999, busy, e.calls, 1, ranksim.Exponential(usual),
		curve{named("takes any free slot", "wine"), plain},
		curve{named("default", "accent"), better},
		perfect(4*4, "the four others alone, a perfect queue"))
}

// low and high are the load of these pictures, in workers that are always busy.
const low, high = 1.2, 8.0

// follow draws how many workers of 5 slots are wanted for a load over time, with a corner
// at each change. It is the mixture of the other pictures, at a fifth of its pace. A minute
// for each round is simulated at most.
func follow(e effort, unit time.Duration, offered report.Line, load func(x float64) float64, x report.Scale, title string) report.Chart {
	const slots, perWorker = 5, 5 / 0.1
	r := scalesim.Plant{
		Rate: func(at time.Duration) float64 { return load(float64(at)/float64(unit)) * perWorker }, Most: high * perWorker,
		Service: ranksim.Mixture{Often: ranksim.Exponential(50 * time.Millisecond), Rare: ranksim.Exponential(1050 * time.Millisecond), Share: 0.05},
		Slots:   slots, Boot: 5 * time.Second, Scaler: scale.New(scale.Options{Min: 1, Max: 20}, 2, slots),
	}.Run(1, 2, min(time.Duration(x.To)*unit, time.Duration(e.rounds)*time.Minute))
	wanted := named("wanted", "accent")
	last := r.Moments[0].Wanted
	for i, m := range r.Moments {
		if x := float64(m.At) / float64(unit); i == 0 || m.Wanted != last || i == len(r.Moments)-1 {
			if i > 0 {
				wanted.Add(x, float64(last))
			}
			if i == 0 || m.Wanted != last {
				wanted.Add(x, float64(m.Wanted))
			}
			last = m.Wanted
		}
	}
	return report.Chart{
		Title: title, X: x,
		Y:    report.Scale{Label: "workers", To: 14, Ticks: []float64{0, 2, 4, 6, 8, 10, 12}},
		Note: "Workers of 5 slots that start in 5 s; calls of 100 ms, mixed. 10 workers are the best fixed number.",
		Lines: []report.Line{
			level("the best fixed number", [2]float64{0, 10}, [2]float64{x.To, 10}),
			offered, wanted,
		},
	}
}

// step is a load that rises within an instant, and falls again.
func step(e effort) report.Chart {
	const from, to, until = 5.0, 10.0, 30.0
	load := func(minutes float64) float64 {
		if minutes >= from && minutes < to {
			return high
		}
		return low
	}
	offered := named("busy with what arrives", "wine")
	for _, at := range [][2]float64{{0, low}, {from, low}, {from, high}, {to, high}, {to, low}, {until, low}} {
		offered.Add(at[0], at[1])
	}
	axis := report.Scale{Label: "time, minutes", To: until, Ticks: []float64{0, 5, 10, 15, 20, 25, 30}}
	return follow(e, time.Minute, offered, load, axis, "A step of the load gets its workers within two seconds")
}

// day is a load that rises and falls as in a day, eight times as fast.
func day(e effort) report.Chart {
	const until = 3.0
	load := func(hours float64) float64 { return (high+low)/2 - (high-low)/2*math.Cos(2*math.Pi*hours/until) }
	offered := named("busy with what arrives", "wine")
	for x := 0.0; x <= until; x += 0.05 {
		offered.Add(x, load(x))
	}
	axis := report.Scale{Label: "time, hours", To: until, Ticks: []float64{0, 1, 2, 3}}
	return follow(e, time.Hour, offered, load, axis, "A day's curve is followed, not chased")
}

const (
	// slots is how many calls can run at once in the pictures over time, and
	// capacity how many can each second.
	slots    = 4
	capacity = float64(slots) * float64(time.Second) / float64(usual)

	// warmUp comes before what is shown: the rank learns how long calls run.
	warmUp = 20 * time.Second
	shown  = 50 * time.Second
)

// defaults is a rank without any setting, before workers of one thread whose
// handlers run on after a cancel, as in Ruby.
func defaults() ranksim.System {
	return ranksim.System{
		Rank:         rank.Options{QueueLength: 1000},
		QueueTimeout: 30 * time.Second,
		Workers:      ranksim.Alike(slots, ranksim.Worker{Slots: 1, RunsOn: true, OnCancel: rank.Hold}),
	}
}

// tally counts calls by the second in which they came.
type tally [shown / time.Second]float64

// add counts the picked calls of the first caller.
func (t *tally) add(calls []ranksim.Call, pick func(i int) bool) {
	for i := range calls {
		if since := calls[i].Arrives - warmUp; since >= 0 && since < shown && calls[i].Caller == 0 && pick(i) {
			t[since/time.Second]++
		}
	}
}

// line has what is counted in each second, times a factor.
func (t *tally) line(factor func(second int) float64, l report.Line) report.Line {
	for second, n := range t {
		l.Add(float64(second)+0.5, factor(second)*n)
	}
	return l
}

// count gives the calls of each round to the systems: how many come, and how many each of
// them answers in time.
func count(rounds int, draw func(seed uint64) []ranksim.Call, one, other ranksim.System) (all, byOne, byOther tally) {
	for round := range rounds {
		calls := draw(uint64(round + 1))
		all.add(calls, func(int) bool { return true })
		for i, by := range []*tally{&byOne, &byOther} {
			records := ranksim.Run([]ranksim.System{one, other}[i], calls).Records
			by.add(calls, func(i int) bool { return records[i].Ending == ranksim.Answered })
		}
	}
	return all, byOne, byOther
}

func timeAxis() report.Scale {
	return report.Scale{Label: "time, s", To: shown.Seconds(), Ticks: []float64{0, 10, 20, 30, 40, 50}}
}

// overload compares the default with a plain queue in a burst.
func overload(e effort) report.Chart {
	const begin, end, ordinary, factor = 5 * time.Second, 35 * time.Second, 0.7, 1.4
	plain := defaults()
	plain.Rank.Admit, plain.Rank.Order = rank.BoundedLength, rank.FIFO
	all, kept, late := count(e.rounds, func(seed uint64) []ranksim.Call {
		return ranksim.Workload{
			Seed: seed, Until: warmUp + shown,
			Callers: []ranksim.Caller{{Rate: ordinary * capacity, Service: ranksim.Mixed(), Timeout: 500 * time.Millisecond}},
			Bursts:  []ranksim.Burst{{From: warmUp + begin, To: warmUp + end, Factor: factor / ordinary}},
		}.Draw()
	}, defaults(), plain)
	mean := func(int) float64 { return 1 / float64(e.rounds) }
	return report.Chart{
		Title: "An overloaded service goes on answering in time",
		Note:  "Handlers run on when their caller has gone, as in Ruby. Lines go by the moment at which calls came.",
		X:     timeAxis(),
		Y:     report.Scale{Label: "calls per second that are answered within 500 ms", To: 340, Ticks: []float64{0, 100, 200, 300}},
		Band:  report.Event{From: begin.Seconds(), To: end.Seconds(), Label: "1.4 times the capacity for 30 s"},
		Lines: []report.Line{
			all.line(mean, named("calls that come", "gray")),
			level("capacity", [2]float64{0, capacity}, [2]float64{shown.Seconds(), capacity}),
			late.line(mean, named("first come, first served, nothing shed", "wine")),
			kept.line(mean, named("default", "accent")),
		},
	}
}

// shares lets a heavy caller begin and end beside a light one.
func shares(e effort) report.Chart {
	const begin, end = 10 * time.Second, 40 * time.Second
	apart := defaults()
	apart.Accounts = make([]rank.Terms, 2)
	all, fair, common := count(e.rounds, func(seed uint64) []ranksim.Call {
		calls := ranksim.Workload{
			Seed: seed, Until: warmUp + shown,
			Callers: []ranksim.Caller{
				{Rate: 0.3 * capacity, Service: ranksim.Mixed(), Timeout: time.Second}, {Rate: 3 * capacity, Service: ranksim.Mixed(), Timeout: time.Second},
			},
		}.Draw()
		return slices.DeleteFunc(calls, func(c ranksim.Call) bool {
			return c.Caller == 1 && (c.Arrives < warmUp+begin || c.Arrives >= warmUp+end)
		})
	}, apart, defaults())
	percent := func(second int) float64 { return 100 / max(all[second], 1) }
	return report.Chart{
		Title: "A caller who asks for too much does not crowd out the others",
		Note:  "4 workers, one call at a time each. The light caller asks for 30 % of what they can do.",
		X:     timeAxis(),
		Y:     report.Scale{Label: "calls of the light caller that are answered within 1 s, %", To: 115, Ticks: []float64{0, 25, 50, 75, 100}},
		Band:  report.Event{From: begin.Seconds(), To: end.Seconds(), Label: "the heavy caller asks for 3 times the capacity"},
		Lines: []report.Line{
			common.line(percent, named("one account for both (fair.key: none)", "wine")),
			fair.line(percent, named("a share for each caller (default)", "accent")),
		},
	}
}
