package config

import (
	"reflect"
	"slices"
	"strings"
)

// Key is one row of the table of settings.
type Key struct {
	Name    string   // dotted, as in the file: "workers.count"
	Aliases []string // other names that the file may use
	Env     string   // the variable
	Flag    string   // without dashes
	Arg     string   // how --help names the flag's argument
	Default string   // as it could be written in a file; for a measured one what is measured
	Help    string   // what it means, one line
	Applies Applies  // from when on a changed value holds
	Secret  bool     // the value may hold secrets: it is not repeated when it changes
	Hidden  bool     // it is not in the table: see grufKeys and benchKeys
	Of      string   // of such a name: the key of whose value it is a part

	kind     kind
	field    func(*Config) any // the pointer that kind sets
	measured func(machine) int // the default where it depends on the machine
}

// Allowed says which values the key takes.
func (k Key) Allowed() string { return k.kind.allowed() }

// parts describes what the key, or an entry of it, consists of; most have none.
func (k Key) parts() (parts []partInfo) {
	of, path := reflect.TypeOf(k.field(new(Config))).Elem(), k.Name+"."
	switch kind := k.kind.(type) {
	case entries:
		of, path = kind.of, k.Name+"[]."
	case record:
	default:
		return nil
	}
	for _, p := range fieldsOf(of) {
		parts = append(parts, partInfo{path + p.name, p.tag.Get("default"), p.kind.allowed(), p.tag.Get("help")})
	}
	return parts
}

// isSingle reports whether the key has parts and no entries.
func (k Key) isSingle() bool { _, one := k.kind.(record); return one }

// section returns the part of the name before the dot, or "".
func (k Key) section() string {
	section, _, found := strings.Cut(k.Name, ".")
	if !found {
		return ""
	}
	return section
}

// machine is what the defaults of workers.count and shards are taken from.
type machine struct {
	cpus  int // usable CPUs
	procs int // GOMAXPROCS
}

// Bounds that appear both as a default's limit and as a range.
const (
	maxWorkers = 1000
	maxShards  = 256

	// maxPortSpan is how many workers fit between a worker's port and its
	// metrics port, which is 100 above it, as gruf-relay laid them out.
	maxPortSpan = 100
)

// fileKeys returns what a file may have: the table, and gruf-relay's names.
func fileKeys() []Key { return slices.Concat(Keys(), outsideTable(grufKeys())) }

// allKeys returns what can be read.
func allKeys() []Key { return slices.Concat(fileKeys(), outsideTable(benchKeys())) }

func outsideTable(keys []Key) []Key {
	for i := range keys {
		keys[i].Hidden = true
	}
	return keys
}

// ownKeys are those that have a value of their own.
func ownKeys() []Key {
	return slices.DeleteFunc(allKeys(), func(k Key) bool { return k.Of != "" })
}

// variableOf names the variable of a key that gruf-relay did not have: a.b is
// CABRANK_A_B.
func variableOf(name string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// automatic is the word for a value that cabrank finds by itself.
const automatic = "auto"
