package config

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// mapping is the kind of *map[string]V fields: values by names that the operator
// chooses.
type mapping[V any] struct {
	max   int
	legal string                       // of names
	clean func(string) (string, error) // refuses names
	path  func(key, name string) string
	of    string // what a value is, and what values are, in one word each
	all   string
	value kind // of *V
}

// maxWeights bounds the callers with a weight of their own.
const maxWeights = 1000

// weights are shares by caller.
func weights() mapping[float64] {
	return mapping[float64]{maxWeights, callersLegal, cleanCaller, callerPath, "weight", "weights", plain{`range:"0.01..1000"`}}
}

func (k mapping[V]) set(field any, text string) error {
	if text != none {
		return fmt.Errorf("%s has no entries", quote(text))
	}
	*field.(*map[string]V) = nil
	return nil
}

func (k mapping[V]) setNode(field any, node *yaml.Node, at *outline) {
	switch {
	case isEmpty(node):
		*field.(*map[string]V) = nil
		return
	case node.Kind != yaml.MappingNode:
		at.fault(node, at.key, "has no entries of the form key: "+k.of, k.allowed())
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
	if _, err := k.clean(name); err != nil {
		at.fault(key, path, err.Error(), k.legal)
		return v
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
	return fmt.Sprintf("%s with %s of %s, at most %d, or %s", k.legal, k.all, k.value.allowed(), k.max, none)
}
