package config

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// outline is the way through one nested value: it knows where each part stands, and
// collects what is wrong.
type outline struct {
	key    string
	origin Origin            // of the whole value
	places map[string]Origin // of its parts, by "key[name]" and "key[name].part"
	faults Faults
}

// entryPath names one entry of a nested key, for people. The name may be
// anything that a file can hold.
func entryPath(key, name string) string {
	if len(name) > maxQuoted || yamlText(name) != name {
		name = quote(name)
	}
	return key + "[" + name + "]"
}

// originOf returns where a node stands. A variable has no lines worth telling.
func (o *outline) originOf(node *yaml.Node) Origin {
	origin := o.origin
	if origin.File != "" {
		origin.Line = node.Line
	}
	return origin
}

func (o *outline) fault(node *yaml.Node, path, what, allowed string) {
	o.faults = append(o.faults, Fault{o.originOf(node), path, what, allowed})
}

// faultAt reports what was written at a path and does not fit.
func (o *outline) faultAt(path, what, allowed string) {
	o.faults = append(o.faults, Fault{o.places[path], path, what, allowed})
}

func (o *outline) written(path string) bool {
	_, written := o.places[path]
	return written
}

// entries visits the entries of a mapping, and reports names that clean refuses.
func (o *outline) entries(node *yaml.Node, pathOf func(key, name string) string, clean func(string) error, legal string, visit func(path, name string, value *yaml.Node)) {
	o.pairs(node, func(name string) string { return pathOf(o.key, name) }, func(path, name string, key, value *yaml.Node) {
		if err := clean(name); err != nil {
			o.fault(key, path, err.Error(), legal)
		}
		visit(path, name, value)
	})
}

// pairs visits the pairs of a mapping whose keys are plain text and come once;
// pathOf names a pair. The caller has seen that node is a mapping.
func (o *outline) pairs(node *yaml.Node, pathOf func(name string) string, visit func(path, name string, key, value *yaml.Node)) {
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := resolve(node.Content[i]), resolve(node.Content[i+1])
		if key.Kind != yaml.ScalarNode {
			o.fault(key, o.key, "has a name that is not plain text", "name: value")
			continue
		}
		path := pathOf(key.Value)
		if before, twice := first[key.Value]; twice {
			o.fault(key, path, o.twice(before), "once")
			continue
		}
		first[key.Value] = key
		o.places[path] = o.originOf(key)
		visit(path, key.Value, key, value)
	}
}

func (o *outline) twice(first *yaml.Node) string {
	if o.origin.File == "" {
		return "is set twice"
	}
	return fmt.Sprintf("is set twice, first on line %d", first.Line)
}

func (o *outline) unknownPart(path, name string, known []string) {
	switch now, hint := whereMoved(path), didYouMean("", name, known); {
	case now != "":
		o.faultAt(path, now, "")
	case hint != "":
		o.faultAt(path, "unknown key"+hint, "")
	default:
		o.faultAt(path, "unknown key", strings.Join(known, ", "))
	}
}

// isEmpty recognizes the word for a value without entries.
func isEmpty(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Value == none }

// parseText reads the text of a variable as the value of a key in a file.
func parseText(text string) (*yaml.Node, error) {
	switch node, fault := document(text); {
	case fault != nil:
		return nil, errors.New(strings.Replace(fault.What, ", here or below", "", 1))
	case node == nil:
		return nil, errors.New("has no value")
	default:
		return node, nil
	}
}

// yamlText writes text so that it can stand anywhere in a file, also within
// braces.
func yamlText(text string) string {
	for i, r := range []byte(text) {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '/' || r == '_'
		if !plain && (i == 0 || !strings.ContainsRune(".-*", rune(r))) {
			return quoteYAML(text)
		}
	}
	switch strings.ToLower(text) {
	case "", "null":
		return quoteYAML(text)
	}
	return text
}

// quoteYAML writes text in double quotes. Names and values are printable ASCII
// once they are accepted, so that only two characters need an escape.
func quoteYAML(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
