package config

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entries is the kind of fields that are slices of structs: a mapping from names that the
// operator chooses, which a field of each keeps, to parts that tags name.
type entries struct {
	of    reflect.Type
	name  string // of the field that has an entry's name
	max   int
	legal string                                    // of names
	clean func(name string) error                   // refuses names
	check func(entry any, path string, at *outline) // of one entry whose parts are right
	whole func(all any, at *outline)                // of all of them, if none has a fault; may sort
}

func (k entries) set(field any, text string) error {
	if text != none {
		return fmt.Errorf("%s has no entries", quote(text))
	}
	reflect.ValueOf(field).Elem().SetZero()
	return nil
}

func (k entries) setNode(field any, node *yaml.Node, at *outline) {
	all := reflect.New(reflect.SliceOf(k.of))
	switch n := len(node.Content) / 2; {
	case isEmpty(node):
	case node.Kind != yaml.MappingNode:
		at.fault(node, at.key, "has no entries of the form name: {...}", k.allowed())
	case n > k.max:
		at.fault(node, at.key, fmt.Sprintf("%d entries are too many", n), k.allowed())
	default:
		at.pairs(node, func(name string) string { return entryPath(at.key, name) }, func(path, name string, key, value *yaml.Node) {
			all.Elem().Set(reflect.Append(all.Elem(), k.entry(path, name, key, value, at)))
		})
		if len(at.faults) == 0 {
			k.whole(all.Interface(), at)
		}
	}
	if len(at.faults) == 0 {
		reflect.ValueOf(field).Elem().Set(all.Elem())
	}
}

// entry reads one entry, and looks at it if it is right by itself.
func (k entries) entry(path, name string, key, value *yaml.Node, at *outline) reflect.Value {
	entry, before := reflect.New(k.of), len(at.faults)
	entry.Elem().FieldByName(k.name).SetString(name)
	if err := k.clean(name); err != nil {
		at.fault(key, path, err.Error(), k.legal)
	}
	switch {
	case value.Kind == yaml.MappingNode:
		readParts(entry, path, value, at)
	case !isNull(value): // null: every part is commented out
		at.fault(value, path, "is not a section", "keys under it: "+strings.Join(partNames(fieldsOf(k.of)), ", "))
	}
	if len(at.faults) == before {
		k.check(entry.Interface(), path, at)
	}
	return entry.Elem()
}

func (k entries) show(field any) string { return showLines(k.lines(field)) }

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

func (k entries) lines(field any) []line {
	all := reflect.ValueOf(field).Elem()
	lines := make([]line, all.Len())
	for i := range lines {
		name := all.Index(i).FieldByName(k.name).String()
		lines[i] = line{name, yamlText(name) + ": " + showEntry(all.Index(i))}
	}
	return lines
}

// showEntry writes what an entry consists of.
func showEntry(entry reflect.Value) string { return "{" + strings.Join(shownParts(entry), ", ") + "}" }

func (k entries) allowed() string {
	return fmt.Sprintf("%s, at most %d, or %s", k.legal, k.max, none)
}
