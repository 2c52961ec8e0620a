package stats

import "math/rand/v2"

// Round is one pair of blocks, or one block of each of several arms: all with
// the same seed, one after the other.
type Round struct {
	// Seed is for the arrivals and service times. All arms of the round use
	// the same, so that none has the luck of easier calls. It is below 2^53:
	// readers of JSON that know floating point alone keep it.
	Seed uint64 `json:"seed"`
	// Order is the arms, by number, in the order in which they run.
	Order []int `json:"order"`
}

// Plan lays out an experiment of so many rounds with so many arms. In every
// round the arms run in a random order, drawn for each round anew: what
// changes with time (a machine that gets warm, a neighbor) falls on all arms
// alike, and whoever runs second has no advantage. This is a randomized
// complete block design.
//
// The same seed gives the same plan, today and with the next Go.
//
// Source: Fisher, "The Design of Experiments" (1935), chapter 4.
func Plan(seed uint64, rounds, arms int) []Round {
	source := rand.NewPCG(seed, 0)
	random := rand.New(source)
	plan := make([]Round, rounds)
	for i := range plan {
		plan[i] = Round{Seed: source.Uint64() >> 11, Order: random.Perm(arms)}
	}
	return plan
}
