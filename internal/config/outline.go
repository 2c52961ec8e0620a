package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// structure is a kind whose value has parts with names of the operator's choice:
// a mapping in the file, the same as YAML or JSON text in a variable.
//
// setNode stores what the node holds in field and tells at of every part, or
// leaves field as it is and tells at of every fault. lines is its inverse: one
// line per entry, as it could stand under the key in a file.
type structure interface {
	kind
	setNode(field any, node *yaml.Node, at *outline)
	lines(field any) []line
}

// line is one entry of a structured value as it is shown.
type line struct {
	name string // of the entry
	text string // "name: value"
}

// partInfo is what people are told about one part of an entry.
type partInfo struct{ name, standard, allowed, help string }

// outline is the way through one structured value: it knows where each part
// stands, and collects what is wrong.
type outline struct {
	key    string
	origin Origin            // of the whole value
	places map[string]Origin // of its parts, by "key[name]" and "key[name].part"
	faults Faults
}

// entryPath names one entry of a structured key, for people. The name may be
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

// faultAt reports what was written at a path and does not fit what stands beside
// it.
func (o *outline) faultAt(path, what, allowed string) {
	o.faults = append(o.faults, Fault{o.places[path], path, what, allowed})
}

func (o *outline) written(path string) bool {
	_, written := o.places[path]
	return written
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

// isEmpty recognizes the word for a value without entries.
func isEmpty(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Value == none }

// parseText reads the text of a variable as the value of a key in a file.
func parseText(text string) (*yaml.Node, error) {
	if len(text) > maxFileSize {
		return nil, fmt.Errorf("has %d bytes, more than %d", len(text), maxFileSize)
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document yaml.Node
	err := decoder.Decode(&document)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		what, _ := yamlFault(err, text)
		return nil, fmt.Errorf("is not valid YAML: %s", what)
	case err != nil || len(document.Content) != 1: // nothing but comments
		return nil, errors.New("has no value")
	case !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF):
		return nil, errors.New("is not one YAML value")
	}
	return resolve(document.Content[0]), nil
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
