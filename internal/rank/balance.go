package rank

import "strconv"

// Balance is when and by what the endpoint of a call is chosen.
//
// LateBinding chooses when a slot is free. All others choose when the call
// comes, without a look at whether a slot is free there, as balancers do that
// have no queue; the call then waits for a slot of that endpoint while others
// may be idle. They are here to be compared, and for callers that must meet the
// same worker again (RingHash). All else is the same for all: slots, deadlines,
// shares, lanes.
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
	// P2C takes the better of two that chance has picked, by their calls.
	P2C
	// PeakEWMA takes the better of two that chance has picked, by their calls
	// times their latency, a peak of which counts at once and fades slowly.
	PeakEWMA
	// RingHash takes the one to which Request.Hash leads on a ring, or the next
	// if that has too many calls.
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

// ParseBalance is the inverse of String. It reports whether there is a policy of
// that name.
func ParseBalance(name string) (Balance, bool) {
	for b := range balances {
		if b.String() == name {
			return b, true
		}
	}
	return 0, false
}
