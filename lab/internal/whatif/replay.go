package whatif

import (
	"errors"
	"time"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Replay is a load that is given to simulated workers call by call: what a run with
// real workers would have measured, to hold one against the other.
type Replay struct {
	// Plan is an open loop.
	Plan traffic.Plan
	// Service is what a call keeps a slot for, by its number.
	Service func(number uint64) time.Duration
	// Echo is added to each latency.
	Echo time.Duration
	// Workers have Slots each, behind a Policy.
	Workers, Slots int
	Policy         Policy
	Queue          Queue
}

// Record simulates the calls.
//
// Errors: one line, for a load that cannot be simulated.
func (r Replay) Record() (*traffic.Record, error) {
	switch {
	case !r.Plan.Open():
		return nil, errors.New("only an open loop can be simulated: in a closed one answers decide when calls come")
	case r.Workers < 1 || r.Slots < 1 || r.Workers*r.Slots > mostPlaces:
		return nil, errors.New("internal error: workers without slots")
	}
	var arrivals []traffic.Arrival
	var calls []ranksim.Call
	for a := range r.Plan.Arrivals() {
		c := ranksim.Call{Arrives: a.Due, Service: r.Service(a.Number)}
		if r.Plan.Timeout > 0 {
			c.Deadline = a.Due + max(r.Plan.Timeout-r.Echo, 1)
		}
		arrivals, calls = append(arrivals, a), append(calls, c)
	}
	result := ranksim.Run(r.Policy.system(r.Workers, r.Slots, r.Queue, r.Plan.Seed), calls)
	replay := traffic.NewReplay(r.Plan)
	for i := range result.Records {
		rec := &result.Records[i]
		replay.End(arrivals[i], rec.Sojourn+r.Echo, traffic.Answer{Code: codeOf(rec.Ending)})
	}
	return replay.Record()
}

// codeOf is gRPC's code of an ending.
func codeOf(e ranksim.Ending) uint32 {
	switch e {
	case ranksim.Answered:
		return 0
	case ranksim.Refused, ranksim.Exhausted:
		return codeShed
	default:
		return codeLate
	}
}
