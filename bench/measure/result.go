// Package measure holds what the benchmark's programs count and report: CPU of
// a process, latencies, and the result of one run.
package measure

import (
	"fmt"
	"time"
)

// Process is what a process and its children have used since they began.
type Process struct {
	CPU          time.Duration // user + system, from the scheduler's clock
	User, System uint64        // in clock ticks of 10 ms: for the proportion
	Switches     uint64        // context switches of all threads
	RSSKiB       uint64        // resident now
}

// Host is what everybody has used.
type Host struct {
	Busy           []float64 // seconds of each core
	Packets, Bytes uint64    // received on loopback in this network namespace
}

// Sample is the state of all counters at one moment.
type Sample struct {
	At    time.Time
	Calls uint64
	Process
	Host
}

// Take reads all counters. With pid 0 nobody's CPU is counted.
func Take(calls uint64, pid int) (s Sample, err error) {
	s.At, s.Calls = time.Now(), calls
	if pid != 0 {
		if s.Process, err = ReadProcess(pid); err != nil {
			return s, err
		}
	}
	s.Host, err = ReadHost()
	return s, err
}

// Result is what one run has measured. Latency and CPU are of the counted
// part only, failures of the whole run.
type Result struct {
	Conns   int     `json:"conns"`
	Streams int     `json:"streams"`
	Size    int     `json:"size"`
	Answers int     `json:"answers"`
	Seconds float64 `json:"seconds"` // length of the counted part

	Calls     uint64  `json:"calls"` // completed in the counted part
	PerSecond float64 `json:"calls_per_second"`
	Failed    uint64  `json:"failed"`            // in the whole run
	Failure   string  `json:"failure,omitempty"` // the first one
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Max       float64 `json:"max_us"`

	CPUPerCall  float64   `json:"cpu_us_per_call,omitempty"` // of -pid and its children, user + system
	UserShare   float64   `json:"user_share,omitempty"`      // of that CPU, from clock ticks
	Switches    float64   `json:"switches_per_call,omitempty"`
	RSSKiB      uint64    `json:"rss_kib,omitempty"` // at the end
	CPU         float64   `json:"cpu_seconds,omitempty"`
	CoreBusy    []float64 `json:"core_busy_seconds,omitempty"` // of every core, all processes
	LoopPackets float64   `json:"loopback_packets_per_call"`   // of everybody in this network namespace
	LoopBytes   float64   `json:"loopback_bytes_per_call"`
}

// String renders a result in two or three lines for people.
func (r Result) String() string {
	s := fmt.Sprintf("%d calls in %.2f s (%.0f/s), %d failed\nlatency p50 %.0f us, p99 %.0f us, max %.0f us; loopback %.2f packets and %.0f bytes per call",
		r.Calls, r.Seconds, r.PerSecond, r.Failed, r.P50, r.P99, r.Max, r.LoopPackets, r.LoopBytes)
	if r.Failure != "" {
		s += "\nfirst failure: " + r.Failure
	}
	if r.CPU > 0 {
		s += fmt.Sprintf("\nprocess: %.3f us CPU per call (%.0f %% user), %.3f context switches per call, %.1f MiB resident",
			r.CPUPerCall, 100*r.UserShare, r.Switches, float64(r.RSSKiB)/1024)
	}
	return s
}

// Between fills in what lies between two samples.
func (r *Result) Between(from, to Sample) {
	r.Calls = to.Calls - from.Calls
	r.Seconds = to.At.Sub(from.At).Seconds()
	r.PerSecond = float64(r.Calls) / r.Seconds
	calls := float64(max(r.Calls, 1))
	used := to.CPU - from.CPU
	r.CPU, r.CPUPerCall = used.Seconds(), micros(used)/calls
	if ticks := to.User + to.System - from.User - from.System; ticks > 0 {
		r.UserShare = float64(to.User-from.User) / float64(ticks)
	}
	r.Switches = float64(to.Switches-from.Switches) / calls
	r.RSSKiB = to.RSSKiB
	for i := range min(len(to.Busy), len(from.Busy)) {
		r.CoreBusy = append(r.CoreBusy, to.Busy[i]-from.Busy[i])
	}
	r.LoopPackets = float64(to.Packets-from.Packets) / calls
	r.LoopBytes = float64(to.Bytes-from.Bytes) / calls
}

// Latency fills in the quantiles.
func (r *Result) Latency(l *Latencies) {
	r.P50, r.P99, r.Max = micros(l.Quantile(0.5)), micros(l.Quantile(0.99)), micros(l.Quantile(1))
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
