package peers

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// column is one number of a table, with its unit in the title.
type column struct {
	title string
	value func(row) string
}

// number makes a column of one number.
func number(title, format string, value func(row) float64) column {
	return column{title, func(s row) string { return fmt.Sprintf(format, value(s)) }}
}

// columns are what a kind of workload is told by.
func columns(k kind) []column {
	failed := column{"failed", func(s row) string {
		if !s.Valid {
			return fmt.Sprintf("%d NOT VALID", s.Failed)
		}
		return fmt.Sprint(s.Failed)
	}}
	cpu := column{"CPU us/call", func(s row) string { return s.CPU.String() }}
	p50 := number("p50 us", "%.0f", func(s row) float64 { return s.P50.Median })
	p99 := number("p99 us", "%.0f", func(s row) float64 { return s.P99.Median })
	lag := number("lag p99 us", "%.0f", func(s row) float64 { return s.Lag })
	client := number("client busy", "%.0f %%", func(s row) float64 { return 100 * s.Rig })
	unsent := column{"unsent", func(s row) string { return fmt.Sprint(s.Unsent) }}
	memory := []column{
		number("RSS MB", "%.1f", func(s row) float64 { return s.RSS }),
		number("PSS MB", "%.1f", func(s row) float64 { return s.PSS }),
	}
	traffic := []column{
		{"bytes down", func(s row) string { return fmt.Sprintf("%.0f+%.0f", s.Request, s.Answer) }},
		{"bytes up", func(s row) string { return fmt.Sprintf("%.0f+%.0f", s.UpRequest, s.UpAnswer) }},
	}
	var all []column
	switch k {
	case kindRefuse: // what cabrank has started counts as its CPU
		all = queueColumns()
	case kindQueue:
		all = append(queueColumns(), cpu)
		all = append(all, number("foreign", "%.0f %%", func(s row) float64 { return 100 * s.ForeignMax }))
	case kindIdle:
		all = append(all,
			column{"RSS KiB/conn", func(s row) string { return s.PerConn.String() }},
			column{"PSS KiB/conn", func(s row) string { return s.PerConnPSS.String() }})
		all = append(all, memory...)
	case kindStart:
		all = append(all, column{"start ms", func(s row) string { return s.Start.String() }})
		all = append(all, memory...)
		all = append(all,
			number("of it program MB", "%.1f", func(s row) float64 { return s.File }),
			number("binary MB", "%.1f", func(s row) float64 { return megabytes(uint64(s.Disk.Binary)) }),
			column{"libraries MB", func(s row) string {
				return fmt.Sprintf("%.1f in %d", megabytes(uint64(s.Disk.Libraries)), s.Disk.Count)
			}})
	case kindRaw:
		all = append(rawColumns(), p50, p99, lag, unsent, number("both busy", "%.0f %% of 200", func(s row) float64 { return 100 * s.Rig }))
	case kindClosed:
		all = append(all, cpu,
			number("user", "%.0f %%", func(s row) float64 { return 100 * s.User }),
			number("calls/s", "%.0f", func(s row) float64 { return s.PerSecond }),
			number("packets/call", "%.2f", func(s row) float64 { return s.Packets }))
		all = append(append(all, traffic...), memory...)
		all = append(all, number("foreign", "%.0f %%", func(s row) float64 { return 100 * s.ForeignMax }),
			number("| at calls/s", "%.0f", func(s row) float64 { return s.Rate }), p50, p99, lag, unsent, client)
	default:
		all = append(all, p50, p99, lag, unsent, client, cpu)
		all = append(append(all, traffic...), memory...)
		all = append(all, number("foreign", "%.0f %%", func(s row) float64 { return 100 * s.ForeignMax }))
	}
	return append(all, failed)
}

// rawColumns are of the closed loop, the last one of the open loop beside it.
func rawColumns() []column {
	return []column{
		number("calls/s", "%.0f", func(s row) float64 { return s.PerSecond }),
		number("packets/call", "%.2f", func(s row) float64 { return s.Packets }),
		number("foreign", "%.0f %%", func(s row) float64 { return 100 * s.ForeignMax }),
		number("| at calls/s", "%.0f", func(s row) float64 { return s.Rate }),
	}
}

// table renders the summary for people.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, commit %s, %s, %d cores, Linux %s, network %s, priority %s, load average at start %s\n",
		r.Date, r.Commit, r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, r.Machine.Network, r.Machine.Priority, r.Machine.Load)
	for _, w := range r.Workloads {
		fmt.Fprintf(&b, "\n%s: %s\n", w.Name, w.Text)
		r.rowsTable(&b, w)
		for _, c := range r.Checks {
			if c.Workload == w.Name {
				fmt.Fprintf(&b, "  %v\n", c)
			}
		}
	}
	fmt.Fprintf(&b, "\n%d bars missed, %d without a valid result\n", r.Missed, r.NotValid)
	if r.Quick {
		fmt.Fprintln(&b, "A quick run shows that everything works; its numbers are not to be quoted.")
	}
	return b.String()
}

func (r *report) rowsTable(b *strings.Builder, w workload) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	list := columns(w.Kind)
	line := []string{"proxy"}
	for _, c := range list {
		line = append(line, c.title)
	}
	fmt.Fprintln(t, strings.Join(line, "\t")+"\t")
	for _, s := range r.Rows {
		if s.Workload != w.Name {
			continue
		}
		line = []string{s.Peer}
		for _, c := range list {
			line = append(line, c.value(s))
		}
		fmt.Fprintln(t, strings.Join(line, "\t")+"\t")
	}
	t.Flush() //nolint:errcheck // into memory
}
