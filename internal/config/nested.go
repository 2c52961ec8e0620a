package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nested is the kind of what has parts: entries by names that the operator chooses, a list
// of structs, or one struct. It is nested in the file, and the same as YAML or JSON text in
// a variable.
type nested struct {
	of    reflect.Type // of an entry, or of the one struct; nil: entries have no parts
	shape yaml.Kind    // of its node
	wrong string       // what is said of another one
	max   int          // entries; 0: it is one struct
	legal string       // values

	read  func(into reflect.Value, node *yaml.Node, at *outline) // from a node of that shape
	lines func(value reflect.Value) []line
}

// line is one entry, or one part of a struct, as it could stand under the key in a file.
type line struct {
	name  string // of the entry or part
	label string // what stands before the text: "name: " or "- "
	text  string
	told  string // the text where a change of it is told
	value any    // what the text is made of
}

func (l line) String() string { return l.label + l.text }

func (k nested) set(field any, text string) error {
	if text != none {
		return errors.New("has no parts") // it is not repeated: it may be secret
	}
	reflect.ValueOf(field).Elem().SetZero()
	return nil
}

// setNode stores what a node holds, or leaves field as it is and tells at of every fault.
func (k nested) setNode(field any, node *yaml.Node, at *outline) {
	value, before := reflect.New(reflect.TypeOf(field).Elem()).Elem(), len(at.faults)
	entries := len(node.Content)
	if k.shape == yaml.MappingNode {
		entries /= 2
	}
	switch {
	case isEmpty(node):
	case node.Kind != k.shape:
		at.fault(node, at.key, k.wrong, k.legal)
	case k.max > 0 && entries > k.max:
		at.fault(node, at.key, fmt.Sprintf("%d entries are too many", entries), k.legal)
	default:
		k.read(value, node, at)
	}
	if len(at.faults) == before {
		reflect.ValueOf(field).Elem().Set(value)
	}
}

func (k nested) linesOf(field any) []line { return k.lines(reflect.ValueOf(field).Elem()) }

// show writes all entries on one line, as a variable could hold them.
func (k nested) show(field any) string {
	var texts []string
	for _, l := range k.linesOf(field) {
		texts = append(texts, strings.TrimPrefix(l.String(), listItem))
	}
	switch {
	case texts == nil:
		return none
	case k.shape == yaml.SequenceNode:
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

func (k nested) allowed() string { return k.legal }

// record is the kind of fields that are structs. check is told of one whose parts are right;
// it may be nil.
func record[T any](form string, check func(value *T, node *yaml.Node, at *outline)) nested {
	return nested{
		of: reflect.TypeFor[T](), shape: yaml.MappingNode, wrong: "is not of the form " + form, legal: form + ", or " + none,
		read: func(into reflect.Value, node *yaml.Node, at *outline) {
			readParts(into, at.key, node, at)
			if len(at.faults) == 0 && check != nil {
				check(into.Addr().Interface().(*T), node, at)
			}
		},
		lines: func(value reflect.Value) []line { return partsOf(value) },
	}
}

// entries are structs by name, which a field of each keeps.
type entries[T any] struct {
	name  func(*T) *string // that field
	max   int
	legal string                                   // names
	clean func(name string) error                  // refuses names
	check func(entry *T, path string, at *outline) // of one entry whose parts are right
	whole func(all []T, at *outline)               // of all of them, if none has a fault; may sort
}

// kind is the kind of fields that are slices of such structs.
func (e entries[T]) kind() nested {
	return nested{
		of: reflect.TypeFor[T](), shape: yaml.MappingNode, wrong: "has no entries of the form name: {...}",
		max: e.max, legal: fmt.Sprintf("%s, at most %d, or %s", e.legal, e.max, none),
		read: func(into reflect.Value, node *yaml.Node, at *outline) {
			all := into.Addr().Interface().(*[]T)
			at.entries(node, entryPath, e.clean, e.legal, func(path, name string, value *yaml.Node) {
				*all = append(*all, e.entry(path, name, value, at))
			})
			if len(at.faults) == 0 {
				e.whole(*all, at)
			}
		},
		lines: func(value reflect.Value) (lines []line) {
			for i := range value.Len() {
				entry := value.Index(i)
				name, parts := *e.name(entry.Addr().Interface().(*T)), partsOf(entry)
				text, told := joinParts(parts, line.String), joinParts(parts, func(l line) string { return l.label + l.told })
				lines = append(lines, line{name, yamlText(name) + ": ", text, told, entry.Interface()})
			}
			return lines
		},
	}
}

// entry reads one entry, and looks at it if it is right by itself.
func (e entries[T]) entry(path, name string, value *yaml.Node, at *outline) (entry T) {
	before := len(at.faults)
	*e.name(&entry) = name
	into := reflect.ValueOf(&entry).Elem()
	switch {
	case value.Kind == yaml.MappingNode:
		readParts(into, path, value, at)
	case !isNull(value): // null: every part is commented out
		at.fault(value, path, "is not a section", "keys under it: "+strings.Join(partNames(fieldsOf(into.Type())), ", "))
	}
	if len(at.faults) == before {
		e.check(&entry, path, at)
	}
	return entry
}

func joinParts(parts []line, write func(line) string) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = write(part)
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// mapping is values by name.
type mapping[V any] struct {
	max   int
	legal string             // of names
	clean func(string) error // refuses names
	path  func(key, name string) string
	form  string // of an entry
	all   string // what values are, in a word; "": it is not told
	value kind   // of *V
}

// kind is the kind of fields that are maps of such values.
func (m mapping[V]) kind() nested {
	legal := m.legal
	if m.all != "" {
		legal += " with " + m.all + " of " + m.value.allowed()
	}
	return nested{
		shape: yaml.MappingNode, wrong: "has no entries of the form " + m.form,
		max: m.max, legal: fmt.Sprintf("%s, at most %d, or %s", legal, m.max, none),
		read: func(into reflect.Value, node *yaml.Node, at *outline) {
			all := map[string]V{}
			at.entries(node, m.path, m.clean, m.legal, func(path, name string, value *yaml.Node) {
				at.places[entryPath(at.key, name)] = at.places[path]
				var v V
				if what := storeNode(value, m.value, &v); what != "" {
					at.faultAt(path, what, m.value.allowed())
				}
				all[name] = v
			})
			into.Set(reflect.ValueOf(all))
		},
		lines: func(value reflect.Value) (lines []line) {
			all := value.Interface().(map[string]V)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				v := all[name]
				text := m.value.show(&v)
				lines = append(lines, line{name, yamlText(name) + ": ", text, text, v})
			}
			return lines
		},
	}
}

// listItem stands before an item of a list.
const listItem = "- "

// sequence is the kind of fields that are lists of structs: at most so many, each of one
// form. check says what is wrong with one whose parts are right.
func sequence[T any](form string, most int, check func(item *T) (what string)) nested {
	legal := fmt.Sprintf("[%s, ...], at most %d, or %s", form, most, none)
	return nested{
		of: reflect.TypeFor[T](), shape: yaml.SequenceNode, wrong: "is no list", max: most, legal: legal,
		read: func(into reflect.Value, node *yaml.Node, at *outline) {
			all := make([]T, len(node.Content))
			for i, item := range node.Content {
				path, before := fmt.Sprintf("%s[%d]", at.key, i), len(at.faults)
				item = resolve(item)
				at.places[path] = at.originOf(item)
				if item.Kind != yaml.MappingNode {
					at.fault(item, path, "is not of the form "+form, legal)
					continue
				}
				readParts(reflect.ValueOf(&all[i]).Elem(), path, item, at)
				if what := check(&all[i]); what != "" && len(at.faults) == before {
					at.fault(item, path, what, legal)
				}
			}
			into.Set(reflect.ValueOf(all))
		},
		lines: func(value reflect.Value) (lines []line) {
			for i := range value.Len() {
				text := joinParts(partsOf(value.Index(i)), line.String)
				lines = append(lines, line{strconv.Itoa(i), listItem, text, text, value.Index(i).Interface()})
			}
			return lines
		},
	}
}

// readParts fills a struct from a mapping.
func readParts(into reflect.Value, path string, node *yaml.Node, at *outline) {
	parts := fieldsOf(into.Type())
	at.pairs(node, func(part string) string { return path + "." + part }, func(path, name string, key, value *yaml.Node) {
		i := slices.IndexFunc(parts, func(p field) bool { return p.name == name })
		if i < 0 {
			at.unknownPart(path, name, partNames(parts))
		} else if what := storeNode(value, parts[i].kind, parts[i].of(into)); what != "" {
			at.fault(key, path, what, parts[i].kind.allowed())
		}
	})
}

func partNames(parts []field) (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// partsOf writes the parts of a struct, but for what is as if it had not been written.
func partsOf(value reflect.Value) (lines []line) {
	unset := reflect.New(value.Type()).Elem()
	for _, p := range fieldsOf(value.Type()) {
		shown := p.kind.show(p.of(value))
		if shown == p.kind.show(p.of(unset)) {
			continue
		}
		told := ""
		if k, are := p.kind.(itemized); are {
			items := k.items(p.of(value))
			shown = "[" + joinYAML(items) + "]"
			if p.tag.Get("secret") != "" {
				told = fmt.Sprintf(`["%d of them"]`, len(items))
			}
		} else if text, is := p.of(value).(*string); is && shown != hidden {
			shown = yamlText(*text)
		}
		lines = append(lines, line{name: p.name, label: p.name + ": ", text: shown, told: cmp.Or(told, shown)})
	}
	return lines
}

// joinYAML writes the inside of a list.
func joinYAML(items []string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = yamlText(item)
	}
	return strings.Join(texts, ", ")
}
