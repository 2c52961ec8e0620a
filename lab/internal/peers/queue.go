package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/oneslot"
	"github.com/cabrank/cabrank/lab/internal/measure"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// queue is what a workload of kindQueue or kindRefuse asks for: calls of an open loop on
// four workers that run one at a time, 95 % of them 10 ms long on average and
// 5 % 210 ms. Each round has calls of its own, the same for every proxy.
type queue struct {
	Load    float64          `json:"load"`  // share of the workers' time that the calls need
	Calls   int              `json:"calls"` // in a round
	Timeout time.Duration    `json:"timeout_ns,omitempty"`
	Busy    oneslot.WhenBusy `json:"busy"`
	Lag     time.Duration    `json:"lag_ns,omitempty"` // for which a worker is not free after its answer
}

const (
	// queueCalls have enough beyond the 99th percentile, in half a minute.
	queueCalls   = 4000
	queueTimeout = 500 * time.Millisecond
	// queueLag is what was seen of Ruby's server.
	queueLag = 500 * time.Microsecond
	// quickCalls make a round that shows no more than that all of it works.
	quickCalls = 300
)

// queueWorkload makes a workload with its bars. Where workers refuse, a call
// that comes during the lag overlaps, and nobody can know.
func queueWorkload(name string, q queue) workload {
	w := workload{Name: name, Kind: kindQueue, Cores: 1, Conns: 4, Answers: 1, Queue: &q, Bars: []bar{{What: whatIdeal, Most: 1.05}}}
	w.Text = fmt.Sprintf("%d calls on %d workers of one slot, at %.0f %% of what they can do, 95 %% of 10 ms and 5 %% of 210 ms", q.Calls, backends, 100*q.Load)
	if q.Timeout > 0 {
		w.Text += fmt.Sprintf(", deadline %v", q.Timeout)
		w.Bars = []bar{{What: whatNotDone, Most: 0.4}, {What: whatLate, Most: none}}
	}
	switch q.Busy {
	case oneslot.Refuse:
		w.Kind = kindRefuse
		if q.Timeout == 0 {
			w.Bars = []bar{{What: whatIdeal, Most: 1.1}}
		}
		w.Text += "; a busy worker refuses (Ruby)"
	case oneslot.Skip:
		w.Text += "; a busy worker drops what was cancelled before it began (Python)"
	case oneslot.Run:
		w.Text += "; workers run what they get, cancelled or not"
		if q.Timeout == 0 {
			w.Bars = append(w.Bars, bar{What: whatOverlap, Most: none})
		}
	}
	return w
}

// failing says whether a call that was not answered is a fault, and not what
// the workload is about.
func (q queue) failing() bool { return q.Timeout == 0 && q.Busy != oneslot.Refuse }

// withWorkers starts workers and a proxy afresh, has all calls made and judges
// what callers and workers tell.
func (r *rig) withWorkers(j job, res *run) error {
	at, err := addressesFor(j.peer, r.dir)
	if err != nil {
		return err
	}
	records := filepath.Join(r.dir, "records")
	if err := os.Mkdir(records, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(records) //nolint:errcheck // below a temporary folder
	at.worker = []string{"taskset", "-c", strconv.Itoa(r.otherCore), r.oneslot, "work", "-records", records, "-busy", string(j.workload.Queue.Busy), "-lag", j.workload.Queue.Lag.String()}
	t, outcomes, err := r.untilEnded(j, at, res)
	if err != nil {
		return err
	}
	all, err := oneslot.ReadFolder(records)
	if err == nil {
		res.addFinding(*j.workload.Queue, oneslot.Judge(t, outcomes, backends, all))
	}
	return err
}

// untilEnded returns when the workers have ended, too, and with them the calls
// for which nobody has waited.
func (r *rig) untilEnded(j job, at addresses, res *run) (t oneslot.Trial, outcomes []oneslot.Outcome, err error) {
	var workers []*testbed.Child
	defer func() {
		for _, w := range workers {
			w.Stop()
		}
	}()
	if !j.peer.starts {
		for i, addr := range at.backends {
			w, err := testbed.Start(r.dir, strconv.Itoa(r.otherCore), nil, append(at.worker[3:], "-listen", addr, "-name", strconv.Itoa(i+1)))
			if err != nil {
				return t, nil, err
			}
			workers = append(workers, w)
		}
	}
	proxy, err := r.startProxy(j, at, res)
	if err != nil {
		return t, nil, err
	}
	defer proxy.Stop()
	if t, outcomes, err = r.callQueue(j, at, proxy, res); err != nil {
		err = fmt.Errorf("%w\n%s", err, proxy.Said())
	}
	return t, outcomes, err
}

// callQueue has the calls made and counts the CPU of the proxy meanwhile, the
// opening of connections included.
func (r *rig) callQueue(j job, at addresses, proxy *testbed.Child, res *run) (t oneslot.Trial, outcomes []oneslot.Outcome, err error) {
	q := *j.workload.Queue
	if r.quick {
		q.Calls = quickCalls
	}
	demand := oneslot.Demand{Seed: uint64(j.repeat) + 1, Calls: q.Calls, Workers: backends, Load: q.Load}
	t = oneslot.Trial{Addr: at.listen, Conns: j.workload.Conns, Timeout: q.Timeout, Calls: demand.Draw()}
	args := []string{
		"call", "-conns", strconv.Itoa(t.Conns), "-calls", strconv.Itoa(q.Calls), "-workers", strconv.Itoa(backends),
		"-load", strconv.FormatFloat(q.Load, 'f', -1, 64), "-timeout", q.Timeout.String(), "-seed", strconv.FormatUint(demand.Seed, 10),
	}
	res.LoadArgs = strings.Join(args, " ")
	from, err := measure.Take(0, measure.Traffic{}, proxy.PID())
	if err != nil {
		return t, nil, err
	}
	c := exec.Command(r.oneslot, append(args, "-addr", at.listen)...) // inherits the runner's core
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return t, nil, fmt.Errorf("callers: %w", err)
	}
	to, err := measure.Take(uint64(q.Calls), measure.Traffic{}, proxy.PID())
	if err != nil {
		return t, nil, err
	}
	res.Between(from, to)
	res.Conns, res.Rate = t.Conns, float64(q.Calls)/t.Calls[len(t.Calls)-1].At.Seconds()
	res.Foreign = foreign(res.Result, r.proxyCore)
	err = json.Unmarshal(out, &outcomes)
	return t, outcomes, err
}

func (r *run) addFinding(q queue, f oneslot.Finding) {
	r.Queue = &f
	r.P50, r.P99 = float64(f.P50)/float64(time.Microsecond), float64(f.P99)/float64(time.Microsecond)
	if lost := f.Calls - f.InTime; q.failing() && lost > 0 {
		r.Failed, r.Failure = uint64(lost), fmt.Sprint(f.Statuses)
	}
}

// queueValue is what a bar of kindQueue is held against.
func queueValue(what string, f oneslot.Finding) float64 {
	switch what {
	case whatIdeal:
		return f.OverIdeal()
	case whatNotDone:
		return 1 - f.InTimeShare()
	case whatOverlap:
		return float64(f.Overlaps)
	default:
		return float64(f.Late)
	}
}

// queueLine tells about a run while the others are still to come.
func queueLine(f oneslot.Finding) string {
	return fmt.Sprintf("p99 %v, ideal %v (%.3fx), %.1f %% in time, %d overlaps, %d late", f.P99.Round(time.Millisecond),
		f.IdealP99.Round(time.Millisecond), f.OverIdeal(), 100*f.InTimeShare(), f.Overlaps, f.Late)
}

func (s *row) addQueue(runs []run) {
	each := func(value func(oneslot.Finding) float64) spread {
		var values []float64
		for _, r := range runs {
			if r.Queue != nil {
				values = append(values, value(*r.Queue))
			}
		}
		return spreadOf(values)
	}
	s.OverIdeal = each(oneslot.Finding.OverIdeal)
	s.IdealP99 = each(func(f oneslot.Finding) float64 { return f.IdealP99.Seconds() * 1000 })
	s.InTime = each(oneslot.Finding.InTimeShare)
	s.Useful = each(func(f oneslot.Finding) float64 { return f.UsefulRun })
	s.Overlaps = each(func(f oneslot.Finding) float64 { return float64(f.Overlaps) })
	s.Refused = each(func(f oneslot.Finding) float64 { return float64(f.Refused) })
	s.Late = each(func(f oneslot.Finding) float64 { return float64(f.Late) })
}

func queueColumns() []column {
	percent := func(s spread) string {
		return fmt.Sprintf("%.1f %% (%.1f..%.1f)", 100*s.Median, 100*s.Min, 100*s.Max)
	}
	return []column{
		{"p99/ideal", func(s row) string { return s.OverIdeal.String() }},
		number("p50 ms", "%.1f", func(s row) float64 { return s.P50.Median / 1000 }),
		number("p99 ms", "%.0f", func(s row) float64 { return s.P99.Median / 1000 }),
		number("ideal p99 ms", "%.0f", func(s row) float64 { return s.IdealP99.Median }),
		{"in time", func(s row) string { return percent(s.InTime) }},
		{"useful work", func(s row) string { return percent(s.Useful) }},
		{"overlaps", func(s row) string { return s.Overlaps.text(0) }},
		number("of it refused", "%.0f", func(s row) float64 { return s.Refused.Median }),
		{"late starts", func(s row) string { return s.Late.text(0) }},
	}
}
