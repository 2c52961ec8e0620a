package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cabrank/cabrank/internal/relay"
)

// LaneRule is a class of calls: those of Methods, and those of the callers in
// Keys. A call is in the lane that names its method, by its whole name before
// its service; if none does, in the lane that names its caller; else in none.
type LaneRule = relay.Lane

const (
	maxLanes       = 8
	maxLaneCallers = 1000
	laneLegal      = "names of lower case letters, digits, _ and -"
)

// laneRules is the kind of lanes.
func laneRules() entries[LaneRule] {
	return entries[LaneRule]{
		name: func(r *LaneRule) *string { return &r.Name }, max: maxLanes, legal: laneLegal,
		clean: checkLaneName, check: checkLane, whole: checkLanes,
	}
}

// checkLaneName accepts what can be the label of a metric without a thought,
// but for the two names that the rank gives itself.
func checkLaneName(name string) error {
	switch name {
	case "default":
		return errors.New("is the lane of all calls that are in no other")
	case "streams":
		return errors.New("is the lane of long calls, see stream_slots")
	}
	return named("lane", "is not a name of 1 to 32 characters")(name)
}

func checkLane(r *LaneRule, path string, at *outline) {
	if len(r.Methods) == 0 && len(r.Keys) == 0 {
		at.faultAt(path, "has neither methods nor keys, so that no call is in it", "one of the two")
	}
}

// checkLanes sees to it that every call is in one lane.
func checkLanes(all []LaneRule, at *outline) {
	methods, keys := map[string]string{}, map[string]string{}
	for _, r := range all {
		path := entryPath(at.key, r.Name)
		onlyOnce(r.Methods, r.Name, methods, path+".methods", quote, at)
		onlyOnce(r.Keys, r.Name, keys, path+".keys", quoteCaller, at)
	}
}

// onlyOnce reports the items that a lane, or one before it, has named already.
func onlyOnce(items []string, lane string, owner map[string]string, path string, told func(string) string, at *outline) {
	for _, item := range slices.Compact(slices.Sorted(slices.Values(items))) {
		if first, twice := owner[item]; twice {
			at.faultAt(path, fmt.Sprintf("%s is also in lanes[%s]", told(item), first), "each in one lane")
		}
		owner[item] = lane
	}
}
