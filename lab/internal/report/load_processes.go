package report

import (
	"fmt"
	"time"
)

// Process is what a process that answers, on this machine, has used for a load, with all
// that it has started.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name,omitempty"`
	// CPU is user and system time since the counted part began, up to the last answer.
	CPU time.Duration `json:"cpu_ns"`
	// RSS is what it held at the end, PeakRSS the most since it was started, in bytes.
	RSS     int64 `json:"rss_bytes"`
	PeakRSS int64 `json:"peak_rss_bytes"`
	// Ended says that it was gone at the end: nothing else is known.
	Ended bool `json:"ended,omitempty"`
}

// Service is the table of what the processes that answer have used.
func (l Load) Service() Table {
	t := Table{
		Title: "Of each process with all that it has started: CPU since the counted part began, memory at the end and at most.",
		Columns: []Column{
			{Name: "process"}, {Name: "CPU per answered call", Number: true}, {Name: "cores busy", Number: true},
			{Name: "memory", Number: true}, {Name: "most memory", Number: true},
		},
	}
	answered := l.Record.Calls.Answered.Count()
	for _, p := range l.Processes {
		name := fmt.Sprintf("%d %s", p.PID, p.Name)
		if p.Ended {
			t.Add(name, "has ended", "", "", "")
			continue
		}
		each, cores := "no call", ""
		if answered > 0 {
			each = span(p.CPU / time.Duration(answered))
		}
		if l.Record.Counted > 0 {
			cores = fmt.Sprintf("%.2f", p.CPU.Seconds()/l.Record.Counted.Seconds())
		}
		t.Add(name, each, cores, megabytes(p.RSS), megabytes(p.PeakRSS))
	}
	return t
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
