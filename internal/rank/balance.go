package rank

import "strconv"

// Balance says when and how the endpoint of a call is chosen.
//
// LateBinding chooses when a slot is free. All other policies choose when the call
// comes, whether the endpoint has a free slot or not, like balancers without a
// queue; the call then waits for a slot of that endpoint while others may be idle.
// They exist for comparison, and for callers that must meet the same worker again
// (RingHash). Slots, deadlines, shares and lanes work the same with all of them.
//
// Their cost is O(endpoints) for each call, and a full queue makes room for others
// only among the calls of the same endpoint.
type Balance uint8

const (
	// LateBinding gives a call to the first free slot.
	LateBinding Balance = iota
	// Random takes any endpoint.
	Random
	// RoundRobin takes one after the other.
	RoundRobin
	// LeastRequest takes the one with the fewest calls, waiting ones included.
	LeastRequest
	// P2C picks two at random and takes the one with fewer calls.
	P2C
	// PeakEWMA picks two at random and takes the one with the lower product of calls
	// and latency; a peak of the latency counts at once and fades slowly.
	PeakEWMA
	// RingHash takes the endpoint at Request.Hash on a ring, or the next one if that
	// has too many calls.
	RingHash
	balances // how many there are
)

// String returns the policy's name as configuration files have it.
func (b Balance) String() string {
	if b >= balances {
		return "balance_" + strconv.Itoa(int(b))
	}
	return [...]string{
		LateBinding: "late_binding", Random: "random", RoundRobin: "round_robin",
		LeastRequest: "least_request", P2C: "p2c", PeakEWMA: "peak_ewma", RingHash: "ring_hash",
	}[b]
}

// ParseBalance is the inverse of String. It reports whether name is a policy.
func ParseBalance(name string) (Balance, bool) {
	for b := range balances {
		if b.String() == name {
			return b, true
		}
	}
	return 0, false
}
