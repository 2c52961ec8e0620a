// Package load is the raw client: it makes gRPC-shaped calls at the least cost,
// checks every byte of every answer, and counts calls, latency, traffic and what a
// process has used meanwhile. It needs backends that answer as those of package echo
// do. Start from Plan.
package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/cabrank/cabrank/lab/internal/measure"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
)

// Plan is what to do. It is never changed once the load runs.
type Plan struct {
	Addr           string
	Conns, Streams int           // connections, and calls in flight on each (the most, in an open loop)
	Size           int           // bytes of a message without its prefix
	Answers        int           // messages in the answer to each call
	Burst          int           // most calls in one write, 0 without bound
	Rate           float64       // calls per second of an open loop, 0 for a closed one
	Idle, First    bool          // other things to measure: memory for idle connections, the first answer
	Warmup         time.Duration // before anything is counted
	Duration       time.Duration // of the counted part; of a pause (Idle); the most (First)
	Indexed        bool          // header blocks with the dynamic table
	Timeout        string        // grpc-timeout, "" for none
	PID            int           // whose CPU is counted, with its children; 0 for nobody's
	Backends       int           // process of the backends, 0 if not known
}

// Check says what of a plan cannot be.
func (p Plan) Check() error {
	switch {
	case p.Size < rawh2.MinMessage || p.Size > rawh2.MaxMessage:
		return fmt.Errorf("size %d: want %d to %d", p.Size, rawh2.MinMessage, rawh2.MaxMessage)
	case p.Conns < 1 || p.Streams < 1 || p.Answers < 1 || p.Burst < 0:
		return errors.New("conns, streams and answers must be at least 1, burst at least 0")
	case p.Rate < 0 || p.Rate > maxRate:
		return fmt.Errorf("rate %v: want 0 to %d", p.Rate, maxRate)
	case p.Idle && p.First, p.Rate > 0 && (p.Idle || p.First):
		return errors.New("rate, idle and first exclude each other")
	case p.Duration <= 0 || p.Warmup < 0:
		return errors.New("duration must be above 0, warmup not below")
	}
	return nil
}

// Run does what a checked plan says. Failed calls are in the result; an error means
// that nothing was measured.
func (p Plan) Run() (measure.Result, error) {
	switch {
	case p.First:
		return firstAnswer(p)
	case p.Idle:
		return idle(p)
	default:
		return run(p)
	}
}
