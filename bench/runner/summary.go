package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// row sums up the runs of one proxy on one workload. It is valid only when no
// call of any of its runs failed.
type row struct {
	Workload  string  `json:"workload"`
	Peer      string  `json:"peer"`
	Runs      int     `json:"runs"`
	Valid     bool    `json:"valid"`
	CPU       spread  `json:"cpu_us_per_call"`
	User      float64 `json:"user_share"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	PerSecond float64 `json:"calls_per_second"`
	Packets   float64 `json:"loopback_packets_per_call"`
	Bytes     float64 `json:"loopback_bytes_per_call"`
	Switches  float64 `json:"switches_per_call"`
	RSSMiB    float64 `json:"rss_mib"`
	Foreign   float64 `json:"foreign_share_max"`
	Failed    uint64  `json:"failed"`
}

// spread is the median of the repeats and how far they lie apart.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f..%.2f)", s.Median, s.Min, s.Max) }

// ratio is cabrank's CPU per call over another proxy's, formed within each
// repeat; Most is the bar, 0 without one.
type ratio struct {
	Workload string `json:"workload"`
	Beside   string `json:"beside"`
	spread
	Most float64 `json:"most,omitempty"`
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{median(values), slices.Min(values), slices.Max(values)}
}

// median of an even number of values is the mean of the middle two; of none 0.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

// of collects one value of every run of a row that completed calls at all, in
// the order of the repeats.
func of(runs []run, value func(run) float64) (values []float64) {
	for _, r := range runs {
		if r.Calls > 0 {
			values = append(values, value(r))
		}
	}
	return values
}

// summarize fills in Rows and Ratios from Runs.
func (r *report) summarize(o options) {
	for _, w := range o.workloads {
		for _, p := range o.peers {
			r.Rows = append(r.Rows, summarizeRow(w.Name, p.Name, r.runsOf(w.Name, p.Name)))
		}
		for _, p := range o.peers {
			if q, ok := r.ratio(w, p.Name); ok {
				r.Ratios = append(r.Ratios, q)
			}
		}
	}
}

func (r *report) runsOf(workload, peer string) (runs []run) {
	for _, run := range r.Runs {
		if run.Workload == workload && run.Peer == peer {
			runs = append(runs, run)
		}
	}
	return runs
}

func summarizeRow(workload, peer string, runs []run) row {
	s := row{Workload: workload, Peer: peer, Runs: len(runs), Valid: len(runs) > 0}
	for _, r := range runs {
		s.Failed += r.Failed
		s.Valid = s.Valid && r.Error == ""
		s.Foreign = max(s.Foreign, r.Foreign)
	}
	s.CPU = spreadOf(of(runs, func(r run) float64 { return r.CPUPerCall }))
	s.User = median(of(runs, func(r run) float64 { return r.UserShare }))
	s.P50 = median(of(runs, func(r run) float64 { return r.P50 }))
	s.P99 = median(of(runs, func(r run) float64 { return r.P99 }))
	s.PerSecond = median(of(runs, func(r run) float64 { return r.PerSecond }))
	s.Packets = median(of(runs, func(r run) float64 { return r.LoopPackets }))
	s.Bytes = median(of(runs, func(r run) float64 { return r.LoopBytes }))
	s.Switches = median(of(runs, func(r run) float64 { return r.Switches }))
	s.RSSMiB = median(of(runs, func(r run) float64 { return float64(r.RSSKiB) / 1024 }))
	return s
}

// ratio compares cabrank with another proxy if both have a valid row.
func (r *report) ratio(w workload, beside string) (ratio, bool) {
	ours, theirs := r.runsOf(w.Name, "cabrank"), r.runsOf(w.Name, beside)
	if beside == "cabrank" || !summarizeRow("", "", ours).Valid || !summarizeRow("", "", theirs).Valid {
		return ratio{}, false
	}
	var pairs []float64
	for i := range min(len(ours), len(theirs)) {
		pairs = append(pairs, ours[i].CPUPerCall/theirs[i].CPUPerCall)
	}
	q := ratio{Workload: w.Name, Beside: beside, spread: spreadOf(pairs)}
	for _, b := range w.Bars {
		if b.Beside == beside {
			q.Most = b.Most
		}
	}
	return q, true
}

// table renders the summary for people.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, commit %s, %s, %d cores, Linux %s, network %s, load average at start %s\n",
		r.Date, r.Commit, r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, r.Machine.Network, r.Machine.LoadAtAll)
	for _, w := range r.Workloads {
		fmt.Fprintf(&b, "\n%s: %s\n", w.Name, w.Text)
		r.rowsTable(&b, w.Name)
		for _, q := range r.Ratios {
			if q.Workload == w.Name {
				fmt.Fprintf(&b, "  cabrank / %s: %v%s\n", q.Beside, q.spread, q.barText())
			}
		}
	}
	return b.String()
}

func (r *report) rowsTable(b *strings.Builder, workload string) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "proxy\tCPU us/call\tuser\tp50 us\tp99 us\tcalls/s\tpackets/call\tbytes/call\tswitches/call\tRSS MiB\tforeign\tfailed\t")
	for _, s := range r.Rows {
		if s.Workload != workload {
			continue
		}
		note := ""
		if !s.Valid {
			note = " NOT VALID"
		}
		fmt.Fprintf(t, "%s\t%v\t%.0f %%\t%.0f\t%.0f\t%.0f\t%.2f\t%.0f\t%.3f\t%.1f\t%.0f %%\t%d%s\t\n",
			s.Peer, s.CPU, 100*s.User, s.P50, s.P99, s.PerSecond, s.Packets, s.Bytes, s.Switches, s.RSSMiB, 100*s.Foreign, s.Failed, note)
	}
	t.Flush() //nolint:errcheck // into memory
}

func (q ratio) barText() string {
	switch {
	case q.Most == 0:
		return ""
	case q.Median <= q.Most:
		return fmt.Sprintf(", bar %.2f: held", q.Most)
	default:
		return fmt.Sprintf(", bar %.2f: MISSED", q.Most)
	}
}
