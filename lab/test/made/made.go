// Package made makes up runs of a scenario, for tests of what reads them: the same
// options give the same run.
package made

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Options say what was measured.
type Options struct {
	// Arms are their names. The primary claim is that the Tail of the last one at
	// the last load is another than that of the first.
	Arms  []string
	Tail  string // the figure of the primary claim; p99 if it is empty
	Rates []int  // the loads, in calls per second
	// Rounds is how often each arm ran at each load, for so many Seconds.
	Rounds, Seconds int
	// Seed draws the calls, Machine what else makes blocks differ.
	Seed, Machine uint64
	Effect        float64 // the latency of each arm over that of the one before it
	Workers       int     // how many there are
	// Pause stops a worker for 1.5 s in the middle.
	Pause bool
	// Quick and Closed label the run, and its loads.
	Quick, Closed bool
	// Silent arms answer nothing at the last load; Noisy marks so many blocks.
	Silent string
	Noisy  int
	// NoClaims leaves the claims out.
	NoClaims bool
}

// Began is when made-up runs began.
func Began() time.Time { return time.Date(2026, 11, 23, 4, 5, 6, 0, time.UTC) }

// Save makes a run up and writes it into a folder.
func Save(folder string, o Options) (*result.Run, error) {
	r := head(o)
	began := Began()
	for round := 1; round <= o.Rounds; round++ {
		for place, load := range r.Loads {
			seed := o.Seed<<20 + uint64(round<<8+place)
			order := rand.New(rand.NewPCG(seed, 1)).Perm(len(o.Arms))
			for at, arm := range order {
				b := result.Block{Arm: o.Arms[arm], Load: load.Name, Round: round, Order: at + 1, Seed: seed, Began: began, Took: time.Duration(o.Seconds+2) * time.Second}
				began = began.Add(b.Took)
				record := block(o, &b, arm, place, round)
				name, err := result.SaveRecord(folder, len(r.Blocks)+1, record)
				if err != nil {
					return nil, err
				}
				b.Raw = name
				if len(r.Blocks) < o.Noisy {
					b.Marks = result.Marks(record, 0, 0.5)
				}
				r.Blocks = append(r.Blocks, b)
			}
		}
	}
	r.Took = began.Sub(r.Began)
	return r, result.Save(folder, r)
}

// head is a run without its blocks.
func head(o Options) *result.Run {
	r := &result.Run{
		Schema: result.Schema, Scenario: "made-up", About: "Figures that nobody measured.",
		Question: "Does the page show them?", Text: "name: made-up\nabout: figures that nobody measured\n",
		Quick: o.Quick, Seed: o.Seed, Rounds: o.Rounds, Began: Began(), Version: "v1.2.3",
		Machine: []string{"2 cores (Imaginary CPU, Linux 6.1, go1.26)."},
		Notes:   []string{"One core is kept for the load."},
		LeftOut: []string{"envoy: not installed; install it with scripts/install-deps.sh peers."},
	}
	for _, name := range o.Arms {
		r.Arms = append(r.Arms, result.Arm{Name: name, About: "calls go by way of " + name})
	}
	for _, rate := range o.Rates {
		l := result.Load{Name: fmt.Sprintf("%d/s", rate), Plan: fmt.Sprintf("open loop, rate %d poisson", rate), X: float64(rate), Unit: "calls/s", Open: true}
		if o.Closed {
			l.Name, l.Plan, l.Unit, l.Open = fmt.Sprintf("%d callers", rate), fmt.Sprintf("closed loop, callers %d", rate), "callers", false
		}
		r.Loads = append(r.Loads, l)
	}
	if o.NoClaims {
		return r
	}
	first, last := o.Arms[0], o.Arms[len(o.Arms)-1]
	for i, figure := range []string{cmp.Or(o.Tail, "p99"), "p50", "errors", "cpu_all"} {
		r.Claims = append(r.Claims, result.Claim{
			Figure: figure, Load: r.Loads[len(r.Loads)-1].Name, Base: first, Other: last, Margin: 0.05, Primary: i == 0,
		})
	}
	return r
}

// block makes up what one block has measured.
func block(o Options, b *result.Block, arm, place, round int) *traffic.Record {
	random := rand.New(rand.NewPCG(b.Seed, uint64(arm)+2+o.Machine<<8))
	rate := o.Rates[place]
	m := maker{Options: o, random: random, arm: arm, round: round, record: empty(o, b, rate)}
	// Latency rises with the load, and from arm to arm, and varies from block to block.
	m.scale = 0.02 * math.Pow(o.Effect, float64(arm)) * (1 + 2*float64(place)/float64(len(o.Rates))) * math.Exp(0.08*random.NormFloat64())
	m.failing = 0.02 * float64(place*place) * (1 + float64(arm)) / float64(len(o.Rates)*len(o.Rates))
	if o.Silent == b.Arm && place == len(o.Rates)-1 {
		m.failing = 1
	}
	for second := range o.Seconds {
		m.second(second, rate)
	}
	calls := float64(rate * o.Seconds)
	for i := range o.Workers {
		b.Processes = append(b.Processes, result.Process{
			Role: fmt.Sprintf("worker %d", i+1), PID: 100 + i, Quota: 0.5, RSS: 20 << 20, PeakRSS: int64(24+i) << 20,
			CPU: time.Duration(calls * 3e5 / float64(o.Workers)), Throttled: int64(place * 3), ThrottledFor: time.Duration(place) * 20 * time.Millisecond,
		})
	}
	b.Processes = append(b.Processes,
		result.Process{Role: "generator 1", PID: 90, CPU: time.Duration(calls * 6e4), RSS: 30 << 20},
		result.Process{Role: "front", PID: 91, CPU: time.Duration(calls * 2e4 * float64(arm)), RSS: 12 << 20},
		result.Process{Role: "controller", PID: 80, CPU: time.Second, RSS: 16 << 20})
	if o.Pause {
		b.Events = []result.Event{{Did: "worker 1 stopped", At: time.Duration(o.Seconds/2) * time.Second, Took: 1500 * time.Millisecond}}
	}
	b.Noise = 0.02
	b.Measure(m.record, o.Workers)
	return m.record
}

func empty(o Options, b *result.Block, rate int) *traffic.Record {
	r := Record(time.Duration(o.Seconds) * time.Second)
	if r.Plan = b.Load; o.Closed {
		r.Loop = traffic.ClosedLoop
	}
	r.Opened, r.MostUnderWay, r.Warmup.Calls = int64(1+rate/10), int64(rate/5), int64(rate)
	return r
}

// maker makes up the calls of one block.
type maker struct {
	Options

	random         *rand.Rand
	arm, round     int
	scale, failing float64
	record         *traffic.Record
}

func (m *maker) second(at, rate int) {
	i := &m.record.Timeline.Intervals[at]
	i.Workers = traffic.Shares{}
	paused := m.Pause && at >= m.Seconds/2 && at < m.Seconds/2+2
	for range rate {
		m.record.Due++
		i.Due++
		worker := fmt.Sprintf("worker-%d", 1+min(m.random.IntN(m.Workers*(m.arm+1)), m.Workers-1))
		if m.random.Float64() < m.failing || paused && worker == "worker-1" {
			m.record.Calls.Fail(14, time.Millisecond)
			i.Failed++
			continue
		}
		d := time.Duration(m.scale * math.Exp(0.6*m.random.NormFloat64()) * float64(time.Second))
		m.record.Calls.Answer(d)
		m.record.Workers[worker]++
		i.Workers[worker]++
		i.Answered++
		i.Came++
		m.record.Came++
	}
}
