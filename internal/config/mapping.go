package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// mapping is the kind of *map[string]V fields: values by names that the operator
// chooses.
type mapping[V any] struct {
	max    int
	legal  string             // of names
	clean  func(string) error // refuses names
	path   func(key, name string) string
	form   string // of an entry
	all    string // what values are, in a word; "": it is not told
	value  kind   // of *V
	secret bool   // the text of all is not repeated
}

// maxWeights bounds the callers with a weight of their own.
const maxWeights = 1000

// weights are shares by caller.
func weights() mapping[float64] {
	return mapping[float64]{
		max: maxWeights, legal: callersLegal, clean: func(name string) error { _, err := cleanCaller(name); return err }, path: callerPath,
		form: "key: weight", all: "weights", value: plain{`range:"0.01..1000"`},
	}
}

func (k mapping[V]) set(field any, text string) error {
	switch {
	case text == none:
		*field.(*map[string]V) = nil
		return nil
	case k.secret:
		return errors.New("has no entries")
	}
	return fmt.Errorf("%s has no entries", quote(text))
}

func (k mapping[V]) setNode(field any, node *yaml.Node, at *outline) {
	switch {
	case isEmpty(node):
		*field.(*map[string]V) = nil
		return
	case node.Kind != yaml.MappingNode:
		at.fault(node, at.key, "has no entries of the form "+k.form, k.allowed())
		return
	case len(node.Content)/2 > k.max:
		at.fault(node, at.key, fmt.Sprintf("%d entries are too many", len(node.Content)/2), k.allowed())
		return
	}
	all := map[string]V{}
	at.pairs(node, func(name string) string { return k.path(at.key, name) }, func(path, name string, key, value *yaml.Node) {
		at.places[entryPath(at.key, name)] = at.places[path]
		all[name] = k.read(path, name, key, value, at)
	})
	if len(at.faults) == 0 {
		*field.(*map[string]V) = all
	}
}

// read reads one entry.
func (k mapping[V]) read(path, name string, key, value *yaml.Node, at *outline) (v V) {
	if err := k.clean(name); err != nil {
		at.fault(key, path, err.Error(), k.legal)
	}
	if what := storeNode(value, k.value, &v); what != "" {
		at.fault(key, path, what, k.value.allowed())
	}
	return v
}

func (k mapping[V]) show(field any) string { return showLines(k.lines(field)) }

func (k mapping[V]) lines(field any) []line {
	all := *field.(*map[string]V)
	lines := make([]line, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		lines = append(lines, line{name, yamlText(name) + ": " + k.value.show(&v)})
	}
	return lines
}

func (k mapping[V]) allowed() string {
	text := k.legal
	if k.all != "" {
		text += " with " + k.all + " of " + k.value.allowed()
	}
	return fmt.Sprintf("%s, at most %d, or %s", text, k.max, none)
}
