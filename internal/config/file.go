package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFileSize bounds the file. The whole table with a comment per key is a few
// KiB; what is larger is not a configuration.
const maxFileSize = 1 << 20

// file is one configuration file on its way to settings.
type file struct {
	outline
	table    []Key
	keys     map[string]Key // by name and by alias
	sections map[string]bool
	seen     map[string]int // line on which a key or a section was first set, by its name
	settings []setting
}

// parseTable reads YAML into settings of the keys of a table. Every line that is not
// understood is a fault; the rest of the file is still read.
func parseTable(name string, content []byte, table []Key) ([]setting, Faults) {
	f := &file{table: table, keys: map[string]Key{}, sections: map[string]bool{}, seen: map[string]int{}}
	f.origin.File = name
	for _, key := range table {
		f.keys[key.Name] = key
		for _, alias := range key.Aliases {
			f.keys[alias] = key
		}
		for section := parent(key.Name); section != ""; section = parent(section) {
			f.sections[section] = true
		}
	}
	switch root, fault := document(string(content)); {
	case fault != nil:
		fault.Origin.File = name
		f.faults = Faults{*fault}
	case root == nil || isNull(root): // only comments
	case root.Kind != yaml.MappingNode:
		f.fault(root, "", "is not a list of keys", "lines of the form key: value")
	default:
		f.mapping(root, "")
	}
	return f.settings, f.faults
}

// document returns the one value of a text, nil if it has none, or what is wrong with the
// text and on which line, 0 if that is not known.
func document(text string) (*yaml.Node, *Fault) {
	if len(text) > maxFileSize {
		return nil, &Fault{What: fmt.Sprintf("has more than %d bytes", maxFileSize), Allowed: fmt.Sprintf("at most %d", maxFileSize)}
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case err == nil:
		return nil, &Fault{Origin: Origin{Line: second.Line}, What: "a second YAML document begins here", Allowed: "one document per file"}
	case !errors.Is(err, io.EOF):
		what, line := yamlFault(err, text)
		// The parser may name the line on which the enclosing block begins.
		return nil, &Fault{
			Origin: Origin{Line: line}, What: "is not valid YAML, here or below: " + what,
			Allowed: "key: value, keys of one section indented alike, with spaces",
		}
	case len(first.Content) == 0:
		return nil, nil
	}
	return resolve(first.Content[0]), nil
}

// yamlFault returns what the parser has found in a text, on one line, and the line of
// the text, 0 if it does not tell. An alias, which it would repeat, may be a password
// that begins with a star.
func yamlFault(err error, text string) (what string, line int) {
	what = err.Error()
	if match := forms["yaml line"].FindStringSubmatch(what); match != nil {
		what = what[len(match[0]):]
		line, _ = strconv.Atoi(match[1]) // no number: 0, the file as a whole
	}
	switch tab := tabBefore(text, line); {
	case strings.Contains(what, "anchor '"):
		what = "an alias to nothing that comes before; text that begins with * needs quotes"
	case tab > 0 && (strings.Contains(what, "cannot start any token") || strings.Contains(what, "tab character")):
		return "a line begins with a tab", tab
	case strings.Contains(what, "cannot start any token"):
		what = "text that begins with @, % or ` needs quotes"
	}
	return strings.Join(strings.Fields(what), " "), line
}

// tabBefore returns the first line, from one on, that has a tab before its text; 0 if
// none has.
func tabBefore(text string, from int) int {
	number := 0
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimLeft(line, " \t")
		if number >= from && strings.TrimSpace(trimmed) != "" && strings.Contains(line[:len(line)-len(trimmed)], "\t") {
			return number
		}
	}
	return 0
}

// mapping reads the pairs of one level. Only known sections are entered, so
// that the depth is bounded whatever anchors the file plays with.
func (f *file) mapping(node *yaml.Node, section string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], resolve(node.Content[i+1])
		path := strings.TrimPrefix(section+"."+name.Value, ".")
		key, known := f.keys[path]
		switch {
		case f.sections[path] && (!known || value.Kind == yaml.MappingNode || isNull(value)):
			f.section(path, name, value)
		case known:
			f.setting(key, path, name, value)
		case !f.shared(name, path, node.Content[i+1]):
			f.unknown(name, path, section)
		}
	}
}

// shared refuses what other programs' files have for values that are written once and
// used more than once. It reports false for any other key.
func (f *file) shared(name *yaml.Node, path string, value *yaml.Node) bool {
	holder := value.Anchor != "" || slices.ContainsFunc(value.Content, func(n *yaml.Node) bool { return n.Anchor != "" })
	switch {
	case name.Value == "<<":
		f.fault(name, path, "merge keys are not taken", "an alias in place of a value, as in port: *name")
	case holder:
		f.fault(name, path, "unknown key, in which nothing can be kept for aliases", "the anchor (&name) where its value is used first")
	default:
		return false
	}
	return true
}

func (f *file) section(path string, name, value *yaml.Node) {
	if first, twice := f.seen[path]; twice {
		f.fault(name, path, fmt.Sprintf("is there twice, first on line %d", first), "one section with all its keys")
		return
	}
	f.seen[path] = name.Line
	switch {
	case value.Kind == yaml.MappingNode:
		f.mapping(value, path)
	case isNull(value): // every key under it is commented out
	default:
		f.fault(name, path, "is a section, not a value", "keys under it: "+under(f.table, path))
	}
}

func (f *file) setting(key Key, path string, name, value *yaml.Node) {
	if first, twice := f.seen[key.Name]; twice {
		what := fmt.Sprintf("is set twice, first on line %d", first)
		if path != key.Name {
			what = fmt.Sprintf("is %s, set twice, first on line %d", key.Name, first)
		}
		f.fault(name, path, what, "once")
		return
	}
	f.seen[key.Name] = name.Line
	if f.sections[path] { // of which this is the one value, so that there is no section besides
		f.seen[path] = name.Line
	}
	content, what := raw{node: value}, ""
	if _, hasParts := key.kind.(structure); !hasParts {
		content, what = rawOf(value)
	} else if isNull(value) { // every entry under it is commented out
		return
	}
	if what != "" {
		f.fault(name, path, what, key.Allowed())
		return
	}
	f.settings = append(f.settings, setting{key, content, f.originOf(name)})
}

// rawOf takes the text out of a node, or says why there is none.
func rawOf(node *yaml.Node) (content raw, what string) {
	switch {
	case isNull(node):
		return raw{}, "has no value"
	case node.Kind == yaml.ScalarNode:
		return raw{text: node.Value}, ""
	case node.Kind != yaml.SequenceNode:
		return raw{}, "is a section, not a value"
	}
	content.items = []string{}
	for _, item := range node.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || isNull(item) {
			return raw{}, "has an item that is not plain text"
		}
		content.items = append(content.items, item.Value)
	}
	return content, ""
}

// storeNode puts what a node holds in a field, or says what is wrong with it.
func storeNode(node *yaml.Node, k kind, field any) (what string) {
	content, what := rawOf(node)
	if what != "" {
		return what
	}
	if err := content.store(k, field); err != nil {
		return err.Error()
	}
	return ""
}

func (f *file) unknown(name *yaml.Node, path, section string) {
	known := slices.Concat(slices.Collect(maps.Keys(f.keys)), slices.Collect(maps.Keys(f.sections)))
	sort.Strings(known)
	what, allowed := "unknown key"+didYouMean("", path, known), ""
	if meant := meantKeys(f.table, path, func(k Key) string { return k.Name }); meant != "" {
		what = "unknown key; did you mean " + meant + "?"
	}
	if now := whereMoved(path); now != "" {
		what = now
	} else if !strings.HasSuffix(what, "?") {
		allowed = under(f.table, section)
	}
	f.fault(name, path, what, allowed)
}

// resolve follows an alias to the node it stands for.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}
