package admin

import (
	"os"
	"time"

	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/scale"
	"github.com/cabrank/cabrank/internal/stats"
)

// Live is the answer to GET /v1/live: what has been counted since the process began. Names and
// units are as in Status. Counters never fall; they begin anew with another PID.
type Live struct {
	Time    time.Time `json:"time"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`

	Codes    map[string]uint64 `json:"codes"`    // finished calls by code, as in cabrank_calls_total
	Methods  []LiveMethod      `json:"methods"`  // at most 201
	Seconds  LiveTimes         `json:"seconds"`  // of finished calls, from their headers to their end
	Waited   LiveTimes         `json:"waited"`   // for a slot
	Worked   LiveTimes         `json:"worked"`   // with a slot
	Refusals map[string]uint64 `json:"refusals"` // by reason, as in cabrank_refusals_total

	Connections        int64  `json:"connections"` // of callers, now
	ConnectionsLimit   int64  `json:"connections_limit"`
	Accepted           uint64 `json:"accepted"` // connections of callers
	BufferedBytes      int64  `json:"buffered_bytes"`
	BufferedLimitBytes int64  `json:"buffered_limit_bytes"`
	Files              int    `json:"files,omitempty"` // that are open; absent where it is not known
	FilesLimit         uint64 `json:"files_limit,omitempty"`

	Load         *scale.Sample      `json:"load,omitempty"`         // what the number of workers is decided by; absent without workers
	Workers      []LiveWorker       `json:"workers"`                // and endpoints that someone else runs
	Pages        map[string]uint64  `json:"pages,omitempty"`        // of workers' metrics that were asked for, by result
	Certificates map[string]float64 `json:"certificates,omitempty"` // for how many seconds they are good, by file
}

// LiveWorker is what Status does not say of a worker or an endpoint elsewhere.
type LiveWorker struct {
	Worker     string   `json:"worker"`
	Slots      int      `json:"slots"` // that it may use
	InFlight   int      `json:"in_flight"`
	Pace       float64  `json:"pace"`                  // how long its calls take against what is usual for their methods; 1: as usual
	Slow       bool     `json:"slow,omitempty"`        // others are preferred
	CPUSeconds float64  `json:"cpu_seconds,omitempty"` // that its processes have used
	NoHealth   bool     `json:"no_health,omitempty"`   // it has no health service, or none for Cabrank
	LastLines  []string `json:"last_lines,omitempty"`  // that it has written, if it has ended unasked
}

// LiveMethod is what is counted of one method.
type LiveMethod struct {
	Method     string  `json:"method"`
	Calls      uint64  `json:"calls"`
	Failed     uint64  `json:"failed"`      // with another code than OK
	NoDeadline uint64  `json:"no_deadline"` // without a deadline
	Seconds    float64 `json:"seconds"`     // of all of them together
}

// LiveTimes are counts of durations: those up to each bound and above the one before, and behind
// the last bound all longer ones. Bounds are seconds.
type LiveTimes struct {
	Bounds []float64 `json:"bounds"`
	Counts []uint64  `json:"counts"`
}

// NewLive is what the statistics of the relay say in this moment, of a process that began then.
func NewLive(stats relay.Stats, began time.Time) Live {
	live := Live{
		Time: time.Now().UTC(), PID: os.Getpid(), Started: began.UTC(),
		Codes: map[string]uint64{}, Methods: []LiveMethod{}, Refusals: stats.Refusals,
		Connections: stats.Connections, ConnectionsLimit: stats.MostConnections, Accepted: stats.Accepted,
		BufferedBytes: stats.Buffered, BufferedLimitBytes: stats.MostBuffered, Workers: []LiveWorker{},
	}
	for _, m := range stats.Methods {
		one := LiveMethod{Method: m.Method, Seconds: m.Seconds.Sum, NoDeadline: m.NoDeadline}
		for code, n := range m.Codes {
			live.Codes[code] += n
			if one.Calls += n; code != "OK" {
				one.Failed += n
			}
		}
		live.Methods = append(live.Methods, one)
		live.Seconds.add(m.Seconds)
		live.Waited.add(m.Wait)
		live.Worked.add(m.Work)
	}
	return live
}

// add adds a histogram; all have the same bounds.
func (t *LiveTimes) add(h stats.Histogram) {
	if t.Counts == nil {
		t.Bounds, t.Counts = h.Bounds, make([]uint64, len(h.Counts))
	}
	for i, n := range h.Counts {
		t.Counts[i] += n
	}
}
