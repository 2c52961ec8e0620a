package config

import (
	"maps"
	"reflect"
	"strings"
)

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
	_, hasParts := k.kind.(nested)
	return found && (rest == "" || rest[0] == '[' || rest[0] == '.' && hasParts)
}
