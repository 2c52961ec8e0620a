package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MostBytes bounds a file, mostValues what is read of it: aliases make much of little.
const MostBytes, mostValues = 1 << 20, 200_000

// file is what the nodes of a file share.
type file struct {
	name   string
	faults Faults
	read   int // values
}

// Node is a value of a file, with its place. The zero Node is a value that is not given.
type Node struct {
	Key  string // as in arms[2].client; empty is the whole file
	Line int    // of the key; 0 is the whole file

	file *file
	yaml *yaml.Node // no alias; nil if it is not given
}

// Read returns the whole of a file, which faults call name. It is not given if the file
// holds nothing, or no YAML: Err tells.
func Read(name string, text []byte) Node {
	n := Node{file: &file{name: name}}
	if len(text) > MostBytes {
		n.Fault("", fmt.Sprintf("has more than %d bytes", MostBytes), fmt.Sprintf("at most %d", MostBytes))
		return n
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) {
		return n
	}
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case err == nil:
		n.Line = second.Line
		n.Fault("", "a second YAML document begins here", "one document per file")
	case errors.Is(err, io.EOF):
		return n.at(first.Content[0], "", 0)
	default:
		var what string
		what, n.Line = syntax(err, string(text))
		n.Fault("", "is not valid YAML, here or below: "+what, "key: value, keys of one section indented alike, with spaces")
	}
	return Node{file: n.file}
}

// syntax returns what the parser has found in a text, on one line, and the line of the text
// on which it, or the block around it, begins; 0 if it does not tell. An alias, which it
// would repeat, may be a password that begins with a star.
func syntax(err error, text string) (what string, line int) {
	what = strings.TrimPrefix(err.Error(), "yaml: ")
	if _, err := fmt.Sscanf(what, "line %d:", &line); err == nil {
		_, what, _ = strings.Cut(what, ": ")
	}
	noToken := strings.Contains(what, "cannot start any token")
	switch tab := tabBefore(text, line); {
	case strings.Contains(what, "anchor '"):
		what = "an alias to nothing that comes before; text that begins with * needs quotes"
	case tab > 0 && (noToken || strings.Contains(what, "tab character")):
		return "a line begins with a tab", tab
	case noToken:
		what = "text that begins with @, % or ` needs quotes"
	}
	return strings.Join(strings.Fields(what), " "), line
}

// tabBefore returns the first line, from one on, that has a tab before its text; 0 if
// none has.
func tabBefore(text string, from int) int {
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " \t")
		if i+1 >= from && strings.TrimSpace(trimmed) != "" && strings.Contains(line[:len(line)-len(trimmed)], "\t") {
			return i + 1
		}
	}
	return 0
}

// Text returns a value that no file has.
func Text(text string) Node {
	return Node{file: &file{}, yaml: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}}
}

func (n Node) at(value *yaml.Node, key string, line int) Node {
	for value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	return Node{file: n.file, yaml: value, Key: key, Line: line}
}

// under names a key of this value.
func (n Node) under(key string) string {
	if len(key) > MostQuoted {
		key = Quote(key)
	}
	if n.Key == "" || key == "" {
		return n.Key + key
	}
	return n.Key + "." + key
}

// Faults returns what was found wrong in the file until now, in the order of its lines.
func (n Node) Faults() Faults {
	sort.SliceStable(n.file.faults, func(i, j int) bool { return n.file.faults[i].Line < n.file.faults[j].Line })
	return n.file.faults
}

// Err returns the Faults, nil if there are none.
func (n Node) Err() error {
	if all := n.Faults(); len(all) > 0 {
		return all
	}
	return nil
}

// Fault tells what is wrong with the value of a key, or with the whole if key is empty.
func (n Node) Fault(key, what, allowed string) {
	if at := n.Get(key); at.yaml != nil {
		n.Line = at.Line
	}
	n.file.faults = append(n.file.faults, Fault{n.file.name, n.Line, n.under(key), what, allowed})
}

// Given reports whether there is a value.
func (n Node) Given() bool { return n.yaml != nil && n.yaml.ShortTag() != "!!null" }

// Alone reports whether there is one text, without keys.
func (n Node) Alone() bool { return n.Given() && n.yaml.Kind == yaml.ScalarNode }

// Value returns the text of a value without keys.
func (n Node) Value() string { return n.yaml.Value }

// IsMap reports whether the value has keys.
func (n Node) IsMap() bool { return n.Given() && n.yaml.Kind == yaml.MappingNode }

// Anchored reports whether the value, or one in it, is kept for aliases, and stands here.
func (n Node) Anchored() bool {
	return n.yaml.Line >= n.Line && (n.yaml.Anchor != "" || slices.ContainsFunc(n.yaml.Content, func(inner *yaml.Node) bool { return inner.Anchor != "" }))
}

// Items returns the entries of a list; nil if the value is none.
func (n Node) Items() []Node {
	if n.yaml == nil || n.yaml.Kind != yaml.SequenceNode {
		return nil
	}
	items := make([]Node, len(n.yaml.Content))
	for i, item := range n.yaml.Content {
		items[i] = n.at(item, fmt.Sprintf("%s[%d]", n.Key, i+1), item.Line)
	}
	return items
}

// Get returns the value of a key as it stands in the file.
func (n Node) Get(key string) Node {
	for name, value := range n.Pairs() {
		if name == key {
			return value
		}
	}
	return Node{file: n.file}
}

// Pairs goes over the keys of a mapping. A key that is no text has no name.
func (n Node) Pairs() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		for i := 0; n.yaml != nil && n.yaml.Kind == yaml.MappingNode && i < len(n.yaml.Content); i += 2 {
			line, name := n.yaml.Content[i].Line, n.at(n.yaml.Content[i], "", 0).yaml.Value
			if !yield(name, n.at(n.yaml.Content[i+1], n.under(name), line)) {
				return
			}
		}
	}
}

// Decode fills what into points at, with the tags of a field, and reports whether nothing
// was wrong with it. A value that is not given leaves it as it is.
func (n Node) Decode(into any, tags ...string) bool {
	if n.yaml == nil {
		return true
	}
	before := len(n.file.faults)
	n.fill(reflect.ValueOf(into).Elem(), reflect.StructTag(strings.Join(tags, " ")))
	return len(n.file.faults) == before
}

// Replace puts other text in the place of each value; keys stay.
func (n Node) Replace(text func(string) string) {
	switch {
	case n.yaml == nil:
		return
	case n.yaml.Kind == yaml.ScalarNode:
		n.yaml.Value = text(n.yaml.Value)
	}
	for i, inner := range n.yaml.Content { // no alias is followed, so that each is met once
		if n.yaml.Kind != yaml.MappingNode || i%2 == 1 {
			Node{yaml: inner}.Replace(text)
		}
	}
}
