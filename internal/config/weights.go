package config

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxWeights bounds the callers with a weight of their own.
const maxWeights = 1000

// weights is the kind of *map[string]float64 fields.
type weights struct{ number decimal }

func (k weights) set(field any, text string) error {
	if text != none {
		return fmt.Errorf("%s has no entries", quote(text))
	}
	*field.(*map[string]float64) = nil
	return nil
}

func (k weights) setNode(field any, node *yaml.Node, at *outline) {
	switch {
	case isEmpty(node):
		*field.(*map[string]float64) = nil
		return
	case node.Kind != yaml.MappingNode:
		at.fault(node, at.key, "has no entries of the form key: weight", k.allowed())
		return
	case len(node.Content)/2 > maxWeights:
		at.fault(node, at.key, fmt.Sprintf("%d entries are too many", len(node.Content)/2), k.allowed())
		return
	}
	all := map[string]float64{}
	at.pairs(node, func(name string) string { return callerPath(at.key, name) }, func(path, name string, key, value *yaml.Node) {
		at.places[entryPath(at.key, name)] = at.places[path]
		all[name] = k.weight(path, name, key, value, at)
	})
	if len(at.faults) == 0 {
		*field.(*map[string]float64) = all
	}
}

// weight reads one entry.
func (k weights) weight(path, name string, key, value *yaml.Node, at *outline) (weight float64) {
	if _, err := cleanCaller(name); err != nil {
		at.fault(key, path, err.Error(), callersLegal)
		return 0
	}
	if what := storeNode(value, k.number, &weight); what != "" {
		at.fault(key, path, what, k.number.allowed())
	}
	return weight
}

func (k weights) show(field any) string { return showLines(k.lines(field)) }

func (k weights) lines(field any) []line {
	all := *field.(*map[string]float64)
	lines := make([]line, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, line{name, yamlText(name) + ": " + showDecimal(all[name])})
	}
	return lines
}

func (k weights) allowed() string {
	return fmt.Sprintf("%s with weights of %s, at most %d, or %s", callersLegal, k.number.allowed(), maxWeights, none)
}

func (weights) parts() []partInfo { return nil }
