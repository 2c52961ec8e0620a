package config

import (
	"cmp"
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
	return slices.DeleteFunc(slices.Clone(c), func(change Change) bool { return change.Applies != a })
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
func Diff(before, now *Config) (changes Changes) {
	for _, key := range ownKeys() {
		changes = append(changes, key.changes(before, now)...)
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

func (k Key) changes(before, now *Config) (changes Changes) {
	both := map[string][2]line{} // by the paths of entries
	for i, c := range []*Config{before, now} {
		for _, l := range k.told(c) {
			pair := both[l.path]
			pair[i] = l
			both[l.path] = pair
		}
	}
	for _, path := range slices.Sorted(maps.Keys(both)) {
		was, is := both[path][0], both[path][1]
		if was.text != is.text || !reflect.DeepEqual(was.value, is.value) {
			changes = append(changes, Change{k.Name + path, cmp.Or(was.text, none), cmp.Or(is.text, none), k.appliesBetween(before, now)})
		}
	}
	return changes
}

// told is what a change tells of the key: a line for each of its entries that have names, or
// one line. Where the text does not tell all, the line has the value besides.
func (k Key) told(c *Config) []line {
	field := k.field(c)
	if k.Name == "workers.command" { // also if it came from somewhere else
		field = &c.Command
	}
	text, entries := k.kind.show(field), k.kind.nested
	switch {
	case k.Secret == secretNames:
		text = countOf(field)
	case entries != nil && entries.names != "" && entries.word == "":
		return k.kind.linesOf(field, true)
	case k.Secret != "" && text != none:
		text = hidden
	case !strings.Contains(text, hidden):
		return []line{{text: text}}
	}
	return []line{{text: text, value: field}}
}

// countOf tells of entries whose names nobody is to read.
func countOf(field any) string {
	n := reflect.ValueOf(field).Elem().Len()
	return cmp.Or(map[int]string{0: none, 1: "1 entry"}[n], fmt.Sprintf("%d entries", n))
}

// Merge returns what holds in a cabrank that runs with running once it has
// reloaded loaded: loaded, but for the values that only an upgrade changes.
//
// Errors: Faults, if these do not go together with what is new.
func Merge(running, loaded *Config) (*Config, error) {
	if running.File != "" && loaded.File != running.File {
		// All that it said would silently become the default.
		what := "was read at the start and is not there any more"
		return nil, Faults{Origin{Place: running.File}.fault("", what, "the file, which may be empty")}
	}
	merged := *loaded
	merged.origins = maps.Clone(loaded.origins)
	for _, key := range ownKeys() {
		if key.appliesBetween(running, loaded) == ByUpgrade {
			key.take(&merged, running)
		}
	}
	faults := merged.contradictions()
	for i := range faults {
		faults[i].What += ", unless cabrank is upgraded"
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return &merged, nil
}

// take gives the key the value, and the origin, that it has in another
// configuration.
func (k Key) take(to, from *Config) {
	reflect.ValueOf(k.field(to)).Elem().Set(reflect.ValueOf(k.field(from)).Elem())
	if k.Name == "workers.command" {
		to.Command, to.commandOrigin = from.Command, from.commandOrigin
	}
	maps.DeleteFunc(to.origins, func(name string, _ Origin) bool { return k.covers(name) })
	for name, origin := range from.origins {
		if k.covers(name) {
			to.origins[name] = origin
		}
	}
}

// covers reports whether an origin is that of the key, or of an entry of it.
func (k Key) covers(name string) bool {
	rest, found := strings.CutPrefix(name, k.Name)
	return found && (rest == "" || rest[0] == '[' || rest[0] == '.' && k.kind.nested != nil)
}
