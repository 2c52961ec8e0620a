package agent

import (
	"time"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Job is what one generator does.
type Job struct {
	// Target is what is dialed, as caller.Options has it.
	Target string `json:"target"`
	// Path is what is asked for in HTTP requests, in place of gRPC calls, and Ready what
	// is answered when the target can work, as caller.GatewayOptions has both. What follows
	// of the method and the connections has no meaning then.
	Path  string `json:"path,omitempty"`
	Ready string `json:"ready,omitempty"`
	// Method is package.Service/Method; Proto and Imports describe it. Without any it is
	// one that this program knows, or the target is asked by reflection.
	Method  string   `json:"method"`
	Proto   []string `json:"proto,omitempty"`
	Imports []string `json:"imports,omitempty"`
	// Data are the requests, drawn by the seed of the plan; Messages is how many callers
	// send in a call of a stream.
	Data     string `json:"data"`
	Messages int    `json:"messages,omitempty"`
	// Metadata is sent with each call, as name:value.
	Metadata []string `json:"metadata,omitempty"`
	// WorkerKey is the header or trailer that names who has answered.
	WorkerKey string `json:"worker_key,omitempty"`
	// Raw has Data say what rawh2.ParseRequest reads; what else there is of the method and
	// the connections has no meaning then.
	Raw bool `json:"raw,omitempty"`
	// Connections is how calls share them, as caller.ParseStrategy reads it.
	Connections string        `json:"connections"`
	DNSInterval time.Duration `json:"dns_interval_ns,omitempty"`
	// Way is how calls are written.
	Way caller.Way `json:"way,omitzero"`
	// Plan is the whole plan; its Part is what this generator does.
	Plan traffic.Plan `json:"plan"`
}

// Answer is what a generator has come to.
type Answer struct {
	// Error says in a line why there is no record.
	Error string `json:"error,omitempty"`
	// Record is of its part.
	Record *traffic.Record `json:"record,omitempty"`
	// CPU is what it has used since the load began, of Took; PeakRSS the most that it
	// held, in bytes.
	CPU     time.Duration `json:"cpu_ns"`
	Took    time.Duration `json:"took_ns"`
	PeakRSS int64         `json:"peak_rss_bytes"`
	// Cores is how many it may use at a time.
	Cores int `json:"cores"`
}

// Busy is the share of its cores that it has used, 0 to 1: of several generators on one
// machine the sum counts.
func (a *Answer) Busy() float64 {
	if a.Took <= 0 || a.Cores < 1 {
		return 0
	}
	return a.CPU.Seconds() / a.Took.Seconds() / float64(a.Cores)
}

// begin is the second line of the input.
type begin struct {
	At time.Time `json:"at"`
}

// line is a line of the output: one of its fields is there.
type line struct {
	Ready  string  `json:"ready,omitempty"` // how it calls
	Answer *Answer `json:"answer,omitempty"`
}
