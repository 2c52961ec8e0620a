package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
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
	name     string
	table    []Key
	keys     map[string]Key // by name and by alias
	sections map[string]bool
	seen     map[string]int // line on which a key or a section was first set, by its name

	settings []setting
	faults   Faults
}

// parseFile reads YAML into settings. Every line that is not understood is a
// fault; the rest of the file is still read.
func parseFile(name string, content []byte) ([]setting, Faults) {
	return parseTable(name, content, fileKeys())
}

// parseTable is parseFile for any table of keys.
func parseTable(name string, content []byte, table []Key) ([]setting, Faults) {
	f := &file{name: name, table: table, keys: map[string]Key{}, sections: map[string]bool{}, seen: map[string]int{}}
	for _, key := range table {
		f.keys[key.Name] = key
		for _, alias := range key.Aliases {
			f.keys[alias] = key
		}
		for section := parent(key.Name); section != ""; section = parent(section) {
			f.sections[section] = true
		}
	}
	f.parse(content)
	return f.settings, f.faults
}

func (f *file) parse(content []byte) {
	if len(content) > maxFileSize {
		f.fault(0, "", fmt.Sprintf("has more than %d bytes", maxFileSize), fmt.Sprintf("at most %d", maxFileSize))
		return
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return // an empty file sets nothing
	} else if err != nil {
		f.syntax(err, string(content))
		return
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		f.fault(second.Line, "", "a second YAML document begins here", "one document per file")
	case !errors.Is(err, io.EOF):
		f.syntax(err, string(content))
		return
	}
	for _, root := range document.Content {
		f.root(root)
	}
}

func (f *file) root(node *yaml.Node) {
	switch {
	case node.Kind == yaml.MappingNode:
		f.mapping(node, "")
	case isNull(node): // only comments
	default:
		f.fault(node.Line, "", "is not a list of keys", "lines of the form key: value")
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax reports what the YAML parser found, which gives the line only as text.
func (f *file) syntax(err error, text string) {
	what, line := yamlFault(err, text)
	// The parser may name the line on which the enclosing block begins.
	f.fault(line, "", "is not valid YAML, here or below: "+what,
		"key: value, keys of one section indented alike, with spaces")
}

// yamlFault returns what the parser has found in a text, on one line, and the line of
// the text, 0 if it does not tell. An alias, which it would repeat, may be a password
// that begins with a star.
func yamlFault(err error, text string) (what string, line int) {
	what = err.Error()
	if match := yamlLine.FindStringSubmatch(what); match != nil {
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

func (f *file) fault(line int, key, what, allowed string) {
	origin := Origin{File: f.name, Line: line}
	f.faults = append(f.faults, Fault{Origin: origin, Key: key, What: what, Allowed: allowed})
}

// mapping reads the pairs of one level. Only known sections are entered, so
// that the depth is bounded whatever anchors the file plays with.
func (f *file) mapping(node *yaml.Node, section string) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], resolve(node.Content[i+1])
		path := name.Value
		if section != "" {
			path = section + "." + path
		}
		key, known := f.keys[path]
		switch {
		case f.sections[path] && (!known || value.Kind == yaml.MappingNode || isNull(value)):
			f.section(path, name.Line, value)
		case known:
			f.setting(key, path, name.Line, value)
		case !f.shared(name, path, node.Content[i+1]):
			f.unknown(path, section, name.Line)
		}
	}
}

// shared refuses what other programs' files have for values that are written once and
// used more than once. It reports false for any other key.
func (f *file) shared(name *yaml.Node, path string, value *yaml.Node) bool {
	holder := value.Anchor != "" || slices.ContainsFunc(value.Content, func(n *yaml.Node) bool { return n.Anchor != "" })
	switch {
	case name.Value == "<<":
		f.fault(name.Line, path, "merge keys are not taken", "an alias in place of a value, as in port: *name")
	case holder:
		f.fault(name.Line, path, "unknown key, in which nothing can be kept for aliases", "the anchor (&name) where its value is used first")
	default:
		return false
	}
	return true
}

func (f *file) section(path string, line int, value *yaml.Node) {
	if first, twice := f.seen[path]; twice {
		f.fault(line, path, fmt.Sprintf("is there twice, first on line %d", first), "one section with all its keys")
		return
	}
	f.seen[path] = line
	switch {
	case value.Kind == yaml.MappingNode:
		f.mapping(value, path)
	case isNull(value): // every key under it is commented out
	default:
		f.fault(line, path, "is a section, not a value", "keys under it: "+under(f.table, path))
	}
}

func (f *file) setting(key Key, path string, line int, value *yaml.Node) {
	if first, twice := f.seen[key.Name]; twice {
		what := fmt.Sprintf("is set twice, first on line %d", first)
		if path != key.Name {
			what = fmt.Sprintf("is %s, set twice, first on line %d", key.Name, first)
		}
		f.fault(line, path, what, "once")
		return
	}
	f.seen[key.Name] = line
	if f.sections[path] { // of which this is the one value, so that there is no section besides
		f.seen[path] = line
	}
	if _, hasParts := key.kind.(structure); hasParts {
		if !isNull(value) { // every entry under it is commented out
			f.settings = append(f.settings, setting{key, raw{node: value}, Origin{File: f.name, Line: line}})
		}
		return
	}
	content, what := rawOf(value)
	if what != "" {
		f.fault(line, path, what, key.Allowed())
		return
	}
	f.settings = append(f.settings, setting{key, content, Origin{File: f.name, Line: line}})
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
	content.list = true
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

func (f *file) unknown(path, section string, line int) {
	names := make([]string, 0, len(f.keys)+len(f.sections))
	for name := range f.keys {
		names = append(names, name)
	}
	for name := range f.sections {
		names = append(names, name)
	}
	sort.Strings(names)
	if now := whereMoved(path); now != "" {
		f.fault(line, path, now, "")
		return
	}
	what := "unknown key" + didYouMean("", path, names)
	if meant := meantKeys(f.table, path, func(k Key) string { return k.Name }); meant != "" {
		what = "unknown key; did you mean " + meant + "?"
	}
	if strings.HasSuffix(what, "?") {
		f.fault(line, path, what, "")
		return
	}
	f.fault(line, path, what, under(f.table, section))
}

// meantKeys names the keys that a name of the top level most likely stands for:
// the flag of that name sets them, or their names end like it (a section that
// lost its indentation). call gives them their names.
func meantKeys(table []Key, name string, call func(Key) string) string {
	var byFlag, byEnd []string
	for _, key := range table {
		if key.Flag == name {
			byFlag = append(byFlag, call(key))
		}
		if last(key.Name) == name {
			byEnd = append(byEnd, call(key))
		}
	}
	if len(byFlag) > 0 {
		return strings.Join(byFlag, " and ")
	}
	return strings.Join(byEnd, " or ")
}

// under lists the keys of a section, or of the top level for "": those of the table, or
// gruf-relay's where there are no others.
func under(table []Key, section string) string {
	if section != "" {
		section += "."
	}
	var own, grufs []string
	for _, key := range table {
		rest, below := strings.CutPrefix(key.Name, section)
		name, _, _ := strings.Cut(rest, ".")
		switch {
		case !below:
		case key.Hidden:
			grufs = append(grufs, name)
		default:
			own = append(own, name)
		}
	}
	if len(own) == 0 {
		own = grufs
	}
	sort.Strings(own)
	return strings.Join(slices.Compact(own), ", ")
}

// parent is the section that a key or a section is in, "" at the top.
func parent(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

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
