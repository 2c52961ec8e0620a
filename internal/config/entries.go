package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// part is one key that an entry may have.
type part[T any] struct {
	name     string
	standard string // what holds where it is not written, for people
	help     string
	kind     kind
	field    func(*T) any // the pointer that kind sets
}

// entries is the kind of *[]T fields: a mapping from names that the operator
// chooses to parts that the table knows.
type entries[T any] struct {
	max   int
	legal string                  // of names
	name  func(*T) *string        // where an entry keeps its name
	clean func(name string) error // refuses names
	table []part[T]
	check func(entry *T, path string, at *outline) // of one entry whose parts are right
	whole func(all []T, at *outline)               // of all of them, if none has a fault; may sort
}

func (k entries[T]) set(field any, text string) error {
	if text != none {
		return fmt.Errorf("%s has no entries", quote(text))
	}
	*field.(*[]T) = nil
	return nil
}

func (k entries[T]) setNode(field any, node *yaml.Node, at *outline) {
	if isEmpty(node) {
		*field.(*[]T) = nil
		return
	}
	if node.Kind != yaml.MappingNode {
		at.fault(node, at.key, "has no entries of the form name: {...}", k.allowed())
		return
	}
	if n := len(node.Content) / 2; n > k.max {
		at.fault(node, at.key, fmt.Sprintf("%d entries are too many", n), k.allowed())
		return
	}
	var all []T
	at.pairs(node, func(name string) string { return entryPath(at.key, name) }, func(path, name string, key, value *yaml.Node) {
		if entry, right := k.entry(path, name, key, value, at); right {
			all = append(all, *entry)
		}
	})
	if len(at.faults) == 0 {
		k.whole(all, at)
	}
	if len(at.faults) == 0 {
		*field.(*[]T) = all
	}
}

// entry reads one entry, and says whether it is right by itself.
func (k entries[T]) entry(path, name string, key, value *yaml.Node, at *outline) (*T, bool) {
	entry, before := new(T), len(at.faults)
	*k.name(entry) = name
	if err := k.clean(name); err != nil {
		at.fault(key, path, err.Error(), k.legal)
	}
	switch {
	case value.Kind == yaml.MappingNode:
		at.pairs(value, func(part string) string { return path + "." + part }, func(path, name string, key, value *yaml.Node) {
			k.part(entry, path, name, key, value, at)
		})
	case !isNull(value): // null: every part is commented out
		at.fault(value, path, "is not a section", "keys under it: "+strings.Join(k.partNames(), ", "))
	}
	if len(at.faults) == before {
		k.check(entry, path, at)
	}
	return entry, len(at.faults) == before
}

func (k entries[T]) part(entry *T, path, name string, key, value *yaml.Node, at *outline) {
	i := slices.IndexFunc(k.table, func(p part[T]) bool { return p.name == name })
	if i < 0 {
		k.unknown(path, name, key, at)
		return
	}
	if what := storeNode(value, k.table[i].kind, k.table[i].field(entry)); what != "" {
		at.fault(key, path, what, k.table[i].kind.allowed())
	}
}

func (k entries[T]) unknown(path, name string, key *yaml.Node, at *outline) {
	if now := whereMoved(path); now != "" {
		at.fault(key, path, now, "")
		return
	}
	if hint := didYouMean("", name, k.partNames()); hint != "" {
		at.fault(key, path, "unknown key"+hint, "")
		return
	}
	at.fault(key, path, "unknown key", strings.Join(k.partNames(), ", "))
}

func (k entries[T]) partNames() []string {
	names := make([]string, len(k.table))
	for i, p := range k.table {
		names[i] = p.name
	}
	return names
}

func (k entries[T]) show(field any) string { return showLines(k.lines(field)) }

// showLines writes all entries on one line, as a variable could hold them.
func showLines(lines []line) string {
	if len(lines) == 0 {
		return none
	}
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.text
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

func (k entries[T]) lines(field any) []line {
	all := *field.(*[]T)
	lines := make([]line, len(all))
	for i := range all {
		name := *k.name(&all[i])
		lines[i] = line{name, yamlText(name) + ": " + k.line(all[i])}
	}
	return lines
}

// line writes what an entry consists of.
func (k entries[T]) line(entry T) string { return "{" + strings.Join(k.shownParts(&entry), ", ") + "}" }

// shownParts leaves out what is as if it had not been written.
func (k entries[T]) shownParts(entry *T) []string {
	var shown []string
	for _, p := range k.table {
		text, unset := p.kind.show(p.field(entry)), p.kind.show(p.field(new(T)))
		if text == unset {
			continue
		}
		switch value := p.field(entry).(type) {
		case *[]string:
			text = "[" + joinYAML(*value) + "]"
		case *string:
			if _, secret := p.kind.(secretText); !secret {
				text = yamlText(*value)
			}
		}
		shown = append(shown, p.name+": "+text)
	}
	return shown
}

// joinYAML writes the inside of a list.
func joinYAML(items []string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = yamlText(item)
	}
	return strings.Join(texts, ", ")
}

func (k entries[T]) allowed() string {
	return fmt.Sprintf("%s, at most %d, or %s", k.legal, k.max, none)
}

func (k entries[T]) parts() []partInfo {
	infos := make([]partInfo, len(k.table))
	for i, p := range k.table {
		infos[i] = partInfo{p.name, p.standard, p.kind.allowed(), p.help}
	}
	return infos
}
