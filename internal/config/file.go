package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/cabrank/cabrank/internal/spelling"
	"github.com/cabrank/cabrank/internal/strictyaml"
)

// file is one configuration file on its way to settings.
type file struct {
	name     string
	table    []Key
	keys     map[string]Key // by name and by alias
	sections map[string]bool
	seen     map[string]int // line on which a key or a section was first set, by its name
	settings []setting
}

// parseTable reads YAML into settings of the keys of a table. Every line that is not
// understood is a fault of root; the rest of the file is still read.
func parseTable(name string, content []byte, table []Key) (settings []setting, root strictyaml.Node) {
	f := &file{name: name, table: table, keys: map[string]Key{}, sections: map[string]bool{}, seen: map[string]int{}}
	for _, key := range table {
		for _, name := range append(key.Aliases, key.Name) {
			f.keys[name] = key
		}
		for section := parent(key.Name); section != ""; section = parent(section) {
			f.sections[section] = true
		}
	}
	root = strictyaml.Read(name, content)
	if root.Given() && !root.IsMap() {
		root.Fault("", "is not a list of keys", "lines of the form key: value")
	}
	f.mapping(root, "")
	return f.settings, root
}

// mapping reads the pairs of one level. Only known sections are entered, so
// that the depth is bounded whatever anchors the file plays with.
func (f *file) mapping(n strictyaml.Node, section string) {
	for name, value := range n.Pairs() {
		path := strings.TrimPrefix(section+"."+name, ".")
		key, known := f.keys[path]
		switch {
		case f.sections[path] && (!known || value.IsMap() || !value.Given()):
			f.section(path, value)
		case known:
			f.setting(key, path, value)
		case name == "<<":
			value.Fault("", "merge keys are not taken", "an alias in place of a value, as in port: *name")
		case value.Anchored():
			value.Fault("", "unknown key, in which nothing can be kept for aliases", "the anchor (&name) where its value is used first")
		default:
			f.unknown(path, section, value)
		}
	}
}

func (f *file) section(path string, value strictyaml.Node) {
	if first, twice := f.seen[path]; twice {
		value.Fault("", fmt.Sprintf("is there twice, first on line %d", first), "one section with all its keys")
		return
	}
	f.seen[path] = value.Line
	switch {
	case value.IsMap():
		f.mapping(value, path)
	case value.Given(): // else every key under it is commented out
		value.Fault("", "is a section, not a value", "keys under it: "+under(f.table, path))
	}
}

func (f *file) setting(key Key, path string, value strictyaml.Node) {
	if first, twice := f.seen[key.Name]; twice {
		what := fmt.Sprintf("is set twice, first on line %d", first)
		if path != key.Name {
			what = fmt.Sprintf("is %s, set twice, first on line %d", key.Name, first)
		}
		value.Fault("", what, "once")
		return
	}
	f.seen[key.Name] = value.Line
	if f.sections[path] { // of which this is the one value, so that there is no section besides
		f.seen[path] = value.Line
	}
	if _, hasParts := key.kind.(nested); value.Given() || !hasParts { // else every entry under it is commented out
		f.settings = append(f.settings, setting{key, value, Origin{f.name, value.Line}})
	}
}

func (f *file) unknown(path, section string, value strictyaml.Node) {
	known := slices.Concat(slices.Collect(maps.Keys(f.keys)), slices.Collect(maps.Keys(f.sections)))
	sort.Strings(known)
	meant := meantKeys(f.table, path, func(k Key) string { return k.Name })
	unknownKey(value, path, cmp.Or(meant, spelling.Nearest(path, known)), under(f.table, section))
}
