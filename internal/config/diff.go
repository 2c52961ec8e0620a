package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Change is one effective value that is not what it was.
type Change struct {
	Key     string // with the entry, where the value has entries: "methods[/a.B/C]"
	Old     string // as in a table; of what may be secret "(hidden)"; none if it was not there
	New     string
	Applies Applies
}

// String returns "queue.length: 1000 to 50".
func (c Change) String() string { return fmt.Sprintf("%s: %s to %s", c.Key, c.Old, c.New) }

// Changes are in the order of the table of keys.
type Changes []Change

// By returns the changes that hold with a.
func (c Changes) By(a Applies) Changes {
	var some Changes
	for _, change := range c {
		if change.Applies == a {
			some = append(some, change)
		}
	}
	return some
}

// Keys returns the names of what has changed.
func (c Changes) Keys() []string {
	names := make([]string, len(c))
	for i, change := range c {
		names[i] = change.Key
	}
	return names
}

// Diff names what is another value in now than in before, from wherever it came.
// Values that may be secrets are not in it.
func Diff(before, now *Config) Changes {
	var changes Changes
	for _, key := range ownKeys() {
		found := key.changes(before, now)
		for i := range found {
			found[i].Applies = key.appliesBetween(before, now)
		}
		changes = append(changes, found...)
	}
	return changes
}

// appliesBetween is Applies, but for changes of whether there are workers at all:
// what would run them is made when cabrank starts.
func (k Key) appliesBetween(before, now *Config) Applies {
	if (k.Name == "upstreams" || k.Name == "workers.command") && before.RunsWorkers() != now.RunsWorkers() {
		return ByUpgrade
	}
	return k.Applies
}

func (k Key) changes(before, now *Config) Changes {
	switch k.Name {
	case "workers.command": // also if it came from somewhere else
		return k.change(showWords(before.Command), showWords(now.Command))
	case "workers.env":
		return changedEntries(k.Name, before.Workers.Env, now.Workers.Env, func(string) string { return hidden })
	case "fair.weights": // names may be metadata, which nobody is to read
		if !maps.Equal(before.Fair.Weights, now.Fair.Weights) {
			return Changes{{Key: k.Name, Old: entriesOf(before.Fair.Weights), New: entriesOf(now.Fair.Weights)}}
		}
		return nil
	case "lanes":
		show := func(r LaneRule) string { // of the callers only how many they are
			if n := len(r.Keys); n > 0 {
				r.Keys = []string{fmt.Sprintf("%d of them", n)}
			}
			return showEntry(reflect.ValueOf(&r).Elem())
		}
		return changedEntries(k.Name, byName(before.Lanes, laneName), byName(now.Lanes, laneName), show)
	case "methods":
		return changedEntries(k.Name, byName(before.Methods, methodPattern), byName(now.Methods, methodPattern), func(r MethodRule) string { return showEntry(reflect.ValueOf(&r).Elem()) })
	}
	was, is := k.field(before), k.field(now)
	if text := k.kind.show(is); text == k.kind.show(was) && strings.Contains(text, hidden) && !reflect.DeepEqual(was, is) {
		return Changes{{Key: k.Name, Old: text, New: text}}
	}
	return k.change(k.kind.show(was), k.kind.show(is))
}

// change compares plain values.
func (k Key) change(before, now string) Changes {
	if before == now {
		return nil
	}
	if k.Secret {
		before, now = masked(before), masked(now)
	}
	return Changes{{Key: k.Name, Old: before, New: now}}
}

// masked hides a value, but not that there is none.
func masked(value string) string {
	if value == none {
		return none
	}
	return hidden
}

func showWords(command []string) string { return commandLine{}.show(&command) }

func laneName(r LaneRule) string        { return r.Name }
func methodPattern(r MethodRule) string { return r.Pattern }

func byName[T any](all []T, name func(T) string) map[string]T {
	named := make(map[string]T, len(all))
	for _, entry := range all {
		named[name(entry)] = entry
	}
	return named
}

// changedEntries compares entries by their names, in the order of these.
func changedEntries[T any](key string, before, now map[string]T, show func(T) string) Changes {
	var changes Changes
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(now)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, had := before[name]
		is, has := now[name]
		change := Change{Key: entryPath(key, name), Old: none, New: none}
		if had {
			change.Old = show(was)
		}
		if has {
			change.New = show(is)
		}
		if had != has || !reflect.DeepEqual(was, is) {
			changes = append(changes, change)
		}
	}
	return changes
}

func entriesOf[T any](all map[string]T) string {
	switch len(all) {
	case 0:
		return none
	case 1:
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", len(all))
}
