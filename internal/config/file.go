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

// mapping is one that has keys of a table, on its way to settings: a file, or a value with
// parts.
type mapping struct {
	place    string
	table    []Key
	seen     map[string]int // line on which a key or a section was first set, by its name
	settings []setting
}

// parseTable reads YAML into settings of the keys of a table. Every line that is not
// understood is a fault of root; the rest of the file is still read.
func parseTable(name string, content []byte, table []Key) (settings []setting, root strictyaml.Node) {
	root = strictyaml.Read(name, content)
	if root.Given() && !root.IsMap() {
		root.Fault("", "is not a list of keys", "lines of the form key: value")
	}
	return settingsIn(root, name, table), root
}

func settingsIn(n strictyaml.Node, place string, table []Key) []setting {
	m := &mapping{place: place, table: table, seen: map[string]int{}}
	m.read(n, "")
	return m.settings
}

// read takes the pairs of one level. Only known sections are entered, so
// that the depth is bounded whatever anchors the file plays with.
func (m *mapping) read(n strictyaml.Node, section string) {
	for name, value := range n.Pairs() {
		path := strings.TrimPrefix(section+"."+name, ".")
		key := slices.IndexFunc(m.table, func(k Key) bool { return k.Name == path || slices.Contains(k.Aliases, path) })
		switch {
		case m.isSection(path) && (key < 0 || value.IsMap() || !value.Given()):
			m.section(path, value)
		case key >= 0:
			m.setting(m.table[key], path, value)
		case name == "<<":
			value.Fault("", "merge keys are not taken", "an alias in place of a value, as in port: *name")
		case value.Anchored():
			value.Fault("", "unknown key, in which nothing can be kept for aliases", "the anchor (&name) where its value is used first")
		default:
			m.unknown(path, section, value)
		}
	}
}

// isSection reports whether keys are under a name.
func (m *mapping) isSection(name string) bool {
	return slices.ContainsFunc(m.table, func(k Key) bool { return strings.HasPrefix(k.Name, name+".") })
}

func (m *mapping) section(path string, value strictyaml.Node) {
	if first, twice := m.seen[path]; twice {
		value.Fault("", fmt.Sprintf("is there twice, first on line %d", first), "one section with all its keys")
		return
	}
	m.seen[path] = value.Line
	switch {
	case value.IsMap():
		m.read(value, path)
	case value.Given(): // else every key under it is commented out
		value.Fault("", "is a section, not a value", "keys under it: "+under(m.table, path))
	}
}

func (m *mapping) setting(key Key, path string, value strictyaml.Node) {
	if first, twice := m.seen[key.Name]; twice {
		what := fmt.Sprintf("is set twice, first on line %d", first)
		if path != key.Name {
			what = fmt.Sprintf("is %s, set twice, first on line %d", key.Name, first)
		}
		value.Fault("", what, "once")
		return
	}
	m.seen[key.Name] = value.Line
	if m.isSection(path) { // of which this is the one value, so that there is no section besides
		m.seen[path] = value.Line
	}
	if value.Given() || key.kind.nested == nil { // else every entry under it is commented out
		m.settings = append(m.settings, setting{key, value, Origin{m.place, value.Line}})
	}
}

// unknown tells of a key that there is not: what has become of it, which was meant, or
// which there are.
func (m *mapping) unknown(path, section string, value strictyaml.Node) {
	var known []string
	for _, key := range m.table {
		known = append(append(known, key.Name, parent(key.Name)), key.Aliases...)
	}
	sort.Strings(known)
	now := whereMoved(value.Key)
	meant := cmp.Or(meantKeys(m.table, path, func(k Key) string { return k.Name }), spelling.Nearest(path, known))
	switch {
	case now != "":
		value.Fault("", now, "")
	case meant != "":
		value.Fault("", "unknown key; did you mean "+meant+"?", "")
	default:
		value.Fault("", "unknown key", under(m.table, section))
	}
}
