package config

import (
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
	Secret  string   // "yes": the value may hold secrets, and is not repeated when it changes; or secretNames
	Hidden  bool     // it is not in the table: see grufKeys and benchKeys
	Of      string   // of such a name: the key of whose value it is a part

	kind     kind
	field    func(*Config) any         // the pointer that kind sets
	measured func(cpus, procs int) int // the default where it depends on the machine: usable CPUs, GOMAXPROCS
}

// Allowed says which values the key takes.
func (k Key) Allowed() string { return k.kind.allowed() }

// parts are what the key, or an entry of it, consists of; most have none.
func (k Key) parts() (parts []Key) {
	kind, is := k.kind.(nested)
	if !is || kind.of == nil || kind.list {
		return nil
	}
	entry := "[]."
	if k.isSingle() {
		entry = "."
	}
	for _, p := range fieldsOf(kind.of) {
		part := p.asKey(nil)
		part.Name = k.Name + entry + p.name
		parts = append(parts, part)
	}
	return parts
}

// isSingle reports whether the key has parts and no entries.
func (k Key) isSingle() bool { kind, is := k.kind.(nested); return is && kind.max == 0 }

// Bounds that appear both as a default's limit and as a range.
const (
	maxWorkers = 1000
	maxShards  = 256

	// maxPortSpan is how many workers fit between a worker's port and its
	// metrics port, which is 100 above it, as gruf-relay laid them out.
	maxPortSpan = 100
)

// fileKeys returns what a file may have: the table, and gruf-relay's names.
func fileKeys() []Key { return append(Keys(), outsideTable("", grufKeys())...) }

// allKeys returns what can be read.
func allKeys() []Key { return append(fileKeys(), outsideTable(prefix, benchKeys())...) }

func outsideTable(prefix string, keys []Key) []Key {
	for i, key := range keys {
		keys[i].Hidden, keys[i].Env = true, variableOf(prefix, key.Name)
	}
	return keys
}

// ownKeys are those that have a value of their own.
func ownKeys() []Key {
	return slices.DeleteFunc(allKeys(), func(k Key) bool { return k.Of != "" })
}

// variableOf names the variable of a key: that of a.b is A_B, and CABRANK_A_B if gruf-relay
// did not have it.
func variableOf(prefix, name string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// automatic is the word for a value that cabrank finds by itself.
const automatic = "auto"
