// Package measure holds what the lab's programs count and report: CPU and
// memory of a process, latencies, and the result of one run.
package measure

import (
	"fmt"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// Traffic counts the bytes that a program has read from its connections and
// written to them, without the headers of TCP.
type Traffic struct{ Received, Sent uint64 }

// BackendCount is what one backend did while it lived: warm-up and trial calls
// are counted, too. Bytes are without the headers of TCP.
type BackendCount struct {
	Calls    uint64 `json:"calls"`
	Received uint64 `json:"received_bytes"`
	Sent     uint64 `json:"sent_bytes"`
}

// Sample is the state of all counters at one moment.
type Sample struct {
	At    time.Time
	Calls uint64
	Traffic
	Process
	Host
	Rig time.Duration // CPU of the programs that measure
}

// Take reads the counters of a process, of the machine and of the programs that
// measure, if they are given. With pid 0 nobody's CPU is counted.
func Take(calls uint64, traffic Traffic, pid int, rig ...int) (s Sample, err error) {
	s.At, s.Calls, s.Traffic = time.Now(), calls, traffic
	if pid != 0 {
		if s.Process, err = ReadProcess(pid); err != nil {
			return s, err
		}
	}
	for _, other := range rig {
		p, err := ReadProcess(other)
		if err != nil {
			return s, err
		}
		s.Rig += p.CPU
	}
	s.Host, err = ReadHost()
	return s, err
}

// Result is what one run has measured. Latency, bytes and CPU are of the
// counted part only, failures of the whole run.
type Result struct {
	Conns   int     `json:"conns"`
	Streams int     `json:"streams"`
	Size    int     `json:"size"`
	Answers int     `json:"answers"`
	Rate    float64 `json:"rate,omitempty"` // calls per second of an open loop, 0 for a closed one
	Seconds float64 `json:"seconds"`        // length of the counted part

	Calls     uint64  `json:"calls"` // completed in the counted part
	PerSecond float64 `json:"calls_per_second"`
	Failed    uint64  `json:"failed"`            // in the whole run
	Failure   string  `json:"failure,omitempty"` // the first one
	Unsent    uint64  `json:"unsent,omitempty"`  // due in the counted part, and no stream was free until its end

	// Of calls that were to begin in the counted part, from that moment on.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	Max float64 `json:"max_us"`
	// Of calls that were due in the counted part of an open loop: how long after that
	// moment 99 % of them were sent at the latest. A wait for a free stream counts.
	Lag float64 `json:"send_lag_p99_us,omitempty"`

	// All of these calls, and how late each was sent. Results of before 2026-11-23 have
	// neither, and their latencies are up to 3 % too high.
	Latencies *latency.Histogram `json:"latencies,omitempty"`
	Lags      *latency.Histogram `json:"send_lags,omitempty"`

	Request float64 `json:"request_bytes_per_call"` // sent by the client, without headers of TCP
	Answer  float64 `json:"answer_bytes_per_call"`  // received by it

	CPUPerCall  float64   `json:"cpu_us_per_call,omitempty"` // of -pid and its children, user + system
	UserShare   float64   `json:"user_share,omitempty"`      // of that CPU, from clock ticks
	Switches    float64   `json:"switches_per_call,omitempty"`
	CPU         float64   `json:"cpu_seconds,omitempty"`
	CoreBusy    []float64 `json:"core_busy_seconds,omitempty"` // of every core, all processes
	RigShare    float64   `json:"rig_share"`                   // CPU of client and backends, over the time: at 1 they are what is measured
	LoopPackets float64   `json:"loopback_packets_per_call"`   // of everybody in this network namespace
	LoopBytes   float64   `json:"loopback_bytes_per_call"`     // with the headers of TCP

	Before *Memory `json:"memory_before,omitempty"` // of -pid and its children, before idle connections
	After  *Memory `json:"memory_after,omitempty"`  // when all calls have ended

	FirstAnswer int64 `json:"first_answer_unix_ns,omitempty"` // when the first call was answered
}

// String renders a result in a few lines for people.
func (r Result) String() string {
	s := fmt.Sprintf("%d calls in %.2f s (%.0f/s), %d failed\nlatency p50 %.0f us, p99 %.0f us, max %.0f us",
		r.Calls, r.Seconds, r.PerSecond, r.Failed, r.P50, r.P99, r.Max)
	if r.Rate > 0 {
		s += fmt.Sprintf("; asked for were %.0f/s, 99 %% sent within %.0f us, %d not sent", r.Rate, r.Lag, r.Unsent)
	}
	if r.Latencies != nil && r.Latencies.Quantile(0.99).TooFew {
		s += fmt.Sprintf("\np99 is that of too few calls: it needs %d", latency.Needs(0.99))
	}
	s += fmt.Sprintf("\nper call %.0f bytes sent, %.0f received; on loopback %.2f packets, %.0f bytes", r.Request, r.Answer, r.LoopPackets, r.LoopBytes)
	if r.Failure != "" {
		s += "\nfirst failure: " + r.Failure
	}
	if r.CPU > 0 {
		s += fmt.Sprintf("\nprocess: %.3f us CPU per call (%.0f %% user), %.3f context switches per call", r.CPUPerCall, 100*r.UserShare, r.Switches)
	}
	if r.Before != nil {
		s += fmt.Sprintf("\nprocess before: %v", r.Before)
	}
	if r.After != nil {
		s += fmt.Sprintf("\nprocess after: %v", r.After)
	}
	return s
}

// String renders what is held in MiB.
func (m Memory) String() string {
	return fmt.Sprintf("%.1f MiB resident (RSS), %.1f MiB in proportion (PSS)", float64(m.RSSKiB)/1024, float64(m.PSSKiB)/1024)
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
	r.RigShare = (to.Rig - from.Rig).Seconds() / r.Seconds
	for i := range min(len(to.Busy), len(from.Busy)) {
		r.CoreBusy = append(r.CoreBusy, to.Busy[i]-from.Busy[i])
	}
	r.Request = float64(to.Sent-from.Sent) / calls
	r.Answer = float64(to.Received-from.Received) / calls
	r.LoopPackets = float64(to.Packets-from.Packets) / calls
	r.LoopBytes = float64(to.Bytes-from.Bytes) / calls
}

// Keep takes over how long calls took and, of an open loop, how late they were sent;
// nil where nothing was counted. It fills in the quantiles.
func (r *Result) Keep(latencies, lags *latency.Histogram) {
	r.Latencies, r.Lags = latencies, lags
	if latencies != nil {
		r.P50, r.P99, r.Max = micros(latencies.At(0.5)), micros(latencies.At(0.99)), micros(latencies.At(1))
	}
	if lags != nil {
		r.Lag = micros(lags.At(0.99))
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
