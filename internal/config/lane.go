package config

import "slices"

// checkLaneName accepts what can be the label of a metric without a thought,
// but for the two names that the rank gives itself.
func checkLaneName(name string) error {
	return wrong("",
		flaw{name == "default", "is the lane of all calls that are in no other"},
		flaw{name == "streams", "is the lane of long calls, see stream_slots"},
		flaw{!forms["lane"].MatchString(name), "is not a name of 1 to 32 characters"})
}

// methodsOfLanes sees to it that something is in every lane, and every method in one.
func (c *Config) methodsOfLanes(refuse refuse) {
	owners := map[string]string{}
	for _, lane := range c.Lanes {
		path := entryPath("lanes", lane.Name)
		refuse(len(lane.Methods)+len(lane.Keys) == 0, path, "has neither methods nor keys, so that no call is in it", "one of the two")
		for _, method := range slices.Compact(slices.Sorted(slices.Values(lane.Methods))) {
			what, allowed := onlyOnce(owners, method, lane.Name, "")
			refuse(what != "", path+".methods", quote(method)+what, allowed)
		}
	}
}

// onlyOnce gives an item to a lane, and says what is wrong with one that is in a lane already;
// as is its form.
func onlyOnce(owners map[string]string, item, lane, as string) (what, allowed string) {
	switch first, twice := owners[item]; {
	case twice && first == lane:
		what, allowed = " is there twice"+as, "each once"
	case twice:
		what, allowed = " is also in lanes["+first+"]", "each in one lane"
	}
	owners[item] = lane
	return what, allowed
}
