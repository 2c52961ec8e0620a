package peers

import (
	"fmt"

	"github.com/cabrank/cabrank/internal/testkit/oneslot"
	"github.com/cabrank/cabrank/lab/internal/measure"
)

// phase is what one run does.
type phase string

const (
	phaseMax   phase = "max"  // as many calls as there can be: CPU per call
	phaseRate  phase = "rate" // an open loop: latency
	phaseIdle  phase = "idle"
	phaseStart phase = "start"
)

// job is a run that is still to be done.
type job struct {
	peer     peer
	workload workload
	phase    phase
	rate     float64 // of an open loop
	repeat   int
}

// run is one measurement. No run is ever dropped: one that failed has Error.
type run struct {
	// What the result file says once for all rounds, see series.
	Peer     string `json:"-"`
	Workload string `json:"-"`
	Phase    phase  `json:"-"`
	Command  string `json:"-"`
	LoadArgs string `json:"-"`

	Repeat int    `json:"repeat"`
	Error  string `json:"error,omitempty"`

	BackendCalls []uint64 `json:"backend_calls"` // of each backend, warm-up included
	// Between proxy and backends, without the headers of TCP.
	UpRequest float64 `json:"upstream_request_bytes_per_call"`
	UpAnswer  float64 `json:"upstream_answer_bytes_per_call"`
	// Foreign is the share of the proxy's core that others used meanwhile.
	Foreign float64 `json:"foreign_share"`
	// StartMillis is the time from exec to the first answer.
	StartMillis float64 `json:"start_ms,omitempty"`
	measure.Result

	// Queue is what callers and workers of kindQueue have seen.
	Queue *oneslot.Finding `json:"queue,omitempty"`
}

// good says whether the run counts calls and none of them failed.
func (r run) good() bool { return r.Error == "" && r.Calls > 0 }

// addBackends takes over what the backends have counted.
func (r *run) addBackends(counts []measure.BackendCount) {
	var calls, received, sent uint64
	for _, c := range counts {
		r.BackendCalls = append(r.BackendCalls, c.Calls)
		calls += c.Calls
		received += c.Received
		sent += c.Sent
	}
	if calls > 0 {
		r.UpRequest, r.UpAnswer = float64(received)/float64(calls), float64(sent)/float64(calls)
	}
}

// perConnection is what one idle connection holds, in KiB of RSS.
func (r run) perConnection() float64 {
	return r.grown(func(m *measure.Memory) uint64 { return m.RSSKiB })
}

// perConnectionPSS is the same in KiB of PSS.
func (r run) perConnectionPSS() float64 {
	return r.grown(func(m *measure.Memory) uint64 { return m.PSSKiB })
}

func (r run) grown(kib func(*measure.Memory) uint64) float64 {
	if r.Before == nil || r.After == nil || r.Conns == 0 {
		return 0
	}
	return (float64(kib(r.After)) - float64(kib(r.Before))) / float64(r.Conns)
}

// rss is the memory at the end, in MB of 10^6 bytes; 0 for none. pss and files
// are parts of it, see measure.Memory.
func (r run) rss() float64   { return r.atEnd(func(m *measure.Memory) uint64 { return m.RSSKiB }) }
func (r run) pss() float64   { return r.atEnd(func(m *measure.Memory) uint64 { return m.PSSKiB }) }
func (r run) files() float64 { return r.atEnd(func(m *measure.Memory) uint64 { return m.FileKiB }) }

func (r run) atEnd(kib func(*measure.Memory) uint64) float64 {
	if r.After == nil {
		return 0
	}
	return megabytes(1024 * kib(r.After))
}

func megabytes(bytes uint64) float64 { return float64(bytes) / 1e6 }

// line tells about a run while the others are still to come.
func (r run) line() string {
	head := fmt.Sprintf("%d %-7s %-5s %-15s", r.Repeat+1, r.Workload, r.Phase, r.Peer)
	if r.Error != "" {
		return head + " FAILED: " + r.Error
	}
	rss := r.rss()
	if r.Queue != nil {
		return head + " " + queueLine(*r.Queue)
	}
	switch r.Phase {
	case phaseIdle:
		return fmt.Sprintf("%s %7.2f KiB per connection, %.1f MB in all", head, r.perConnection(), rss)
	case phaseStart:
		return fmt.Sprintf("%s %7.1f ms to the first answer, %.1f MB", head, r.StartMillis, rss)
	default:
		return fmt.Sprintf("%s %7.3f us CPU per call, %8.0f calls/s, p50 %6.0f us, p99 %7.0f us, %5.1f MB, foreign %2.0f %%",
			head, r.CPUPerCall, r.PerSecond, r.P50, r.P99, rss, 100*r.Foreign)
	}
}
