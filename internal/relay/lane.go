package relay

import (
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
)

// Lane is a class of calls with a priority and slots of its own. A call is in the lane of its
// method, or else in the lane of its caller's key, or else in none. The code that fills it
// in has validated it.
type Lane struct {
	Methods []string `key:"methods" kind:"methods" default:"none" help:"the methods whose calls are in the lane"`                                           // "/package.Service/Method", or "/package.Service/*"; none in two lanes
	Keys    []string `key:"keys" kind:"callers" default:"none" secret:"yes" help:"the callers whose calls are in the lane, unless a lane has their method"` // as Keys says; none in two lanes

	rank.LaneOptions `key:""`
}

// Lanes are numbered as the rank does it: from 1 in the order of the options,
// and 0 is none.

func lanesOfMethods(lanes []Lane) stats.Patterns[uint8] {
	of := make(stats.Patterns[uint8])
	for i, lane := range lanes {
		for _, pattern := range lane.Methods {
			of.Add(pattern, uint8(i+1))
		}
	}
	return of
}

func lanesOfKeys(lanes []Lane) map[string]uint8 {
	of := make(map[string]uint8)
	for i, lane := range lanes {
		for _, key := range lane.Keys {
			of[key] = uint8(i + 1)
		}
	}
	return of
}

func rankLanes(lanes []Lane) []rank.LaneOptions {
	options := make([]rank.LaneOptions, len(lanes))
	for i, lane := range lanes {
		options[i] = lane.LaneOptions
	}
	return options
}
