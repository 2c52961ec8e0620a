package config

import (
	"errors"
	"fmt"
	"reflect"
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
func laneRules() nested {
	return entries(reflect.TypeFor[LaneRule](), "Name", maxLanes, laneLegal, checkLaneName)
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

// methodsOfLanes sees to it that something is in every lane, and every method in one.
func (c *Config) methodsOfLanes() (faults Faults) {
	owners := map[string]string{}
	for _, lane := range c.Lanes {
		path := entryPath("lanes", lane.Name)
		if len(lane.Methods)+len(lane.Keys) == 0 {
			faults = append(faults, c.faultAt(path, "has neither methods nor keys, so that no call is in it", "one of the two"))
		}
		for _, method := range slices.Compact(slices.Sorted(slices.Values(lane.Methods))) {
			faults = append(faults, c.onlyOnce(owners, method, lane.Name, path+".methods", quote(method), "")...)
		}
	}
	return faults
}

// onlyOnce gives an item to a lane, and reports one that is in a lane already. told is what
// may be said of it, and as of its form.
func (c *Config) onlyOnce(owners map[string]string, item, lane, path, told, as string) (faults Faults) {
	switch first, twice := owners[item]; {
	case twice && first == lane:
		faults = Faults{c.faultAt(path, told+" is there twice"+as, "each once")}
	case twice:
		faults = Faults{c.faultAt(path, fmt.Sprintf("%s is also in lanes[%s]", told, first), "each in one lane")}
	}
	owners[item] = lane
	return faults
}
