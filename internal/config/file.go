package config

import (
	"cmp"
	"fmt"
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
	seen     map[string]int // line on which a key or a section was first set, by its name
	settings []setting
}

// parseTable reads YAML into settings of the keys of a table. Every line that is not
// understood is a fault of root; the rest of the file is still read.
func parseTable(name string, content []byte, table []Key) (settings []setting, root strictyaml.Node) {
	f := &file{name: name, table: table, seen: map[string]int{}}
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
		key := slices.IndexFunc(f.table, func(k Key) bool { return k.Name == path || slices.Contains(k.Aliases, path) })
		switch {
		case f.isSection(path) && (key < 0 || value.IsMap() || !value.Given()):
			f.section(path, value)
		case key >= 0:
			f.setting(f.table[key], path, value)
		case name == "<<":
			value.Fault("", "merge keys are not taken", "an alias in place of a value, as in port: *name")
		case value.Anchored():
			value.Fault("", "unknown key, in which nothing can be kept for aliases", "the anchor (&name) where its value is used first")
		default:
			f.unknown(path, section, value)
		}
	}
}

// isSection reports whether keys are under a name.
func (f *file) isSection(name string) bool {
	return slices.ContainsFunc(f.table, func(k Key) bool { return strings.HasPrefix(k.Name, name+".") })
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
	if f.isSection(path) { // of which this is the one value, so that there is no section besides
		f.seen[path] = value.Line
	}
	if value.Given() || key.kind.nested == nil { // else every entry under it is commented out
		f.settings = append(f.settings, setting{key, value, Origin{f.name, value.Line}})
	}
}

func (f *file) unknown(path, section string, value strictyaml.Node) {
	var known []string
	for _, key := range f.table {
		known = append(append(known, key.Name, parent(key.Name)), key.Aliases...)
	}
	sort.Strings(known)
	meant := meantKeys(f.table, path, func(k Key) string { return k.Name })
	unknownKey(value, path, cmp.Or(meant, spelling.Nearest(path, known)), under(f.table, section))
}
