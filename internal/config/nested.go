package config

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/spelling"
	"github.com/cabrank/cabrank/internal/strictyaml"
)

// nested is the kind of what has parts: entries by names that the operator chooses, a list
// of structs, or one struct. It is nested in the file, and the same as YAML or JSON text in
// a variable.
type nested struct {
	of    reflect.Type // an entry, or the one struct; nil: entries have no parts
	list  bool         // it is a list, not a mapping
	wrong string       // what is said of another form
	max   int          // entries; 0: it is one struct
	legal string       // values

	read  func(into reflect.Value, n strictyaml.Node, at places)
	lines func(value reflect.Value) []line
}

// places are the lines on which the parts of a value stand, by "key[name]" and
// "key[name].part".
type places map[string]int

// pairs visits the pairs of a mapping whose names come once. pathOf names a pair.
func (p places) pairs(n strictyaml.Node, pathOf func(key, name string) string) iter.Seq2[string, strictyaml.Node] {
	return func(yield func(string, strictyaml.Node) bool) {
		seen := map[string]int{} // the line of each
		for name, value := range n.Pairs() {
			value.Key = pathOf(n.Key, name)
			if seen[name] > 0 {
				value.Fault("", fmt.Sprintf("is set twice, first on line %d", seen[name]), "once")
				continue
			}
			seen[name] = value.Line
			p[value.Key] = value.Line
			if !yield(name, value) {
				return
			}
		}
	}
}

// entryPath names one entry of a nested key, for people. The name may be
// anything that a file can hold.
func entryPath(key, name string) string {
	if len(name) > strictyaml.MostQuoted || yamlText(name) != name {
		name = quote(name)
	}
	return key + "[" + name + "]"
}

func partPath(key, name string) string { return key + "." + name }

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
		return errors.New("has no parts") // the text is not repeated: it may be secret
	}
	reflect.ValueOf(field).Elem().SetZero()
	return nil
}

// setNode stores what a node holds, and tells it of every fault.
func (k nested) setNode(field any, n strictyaml.Node, at places) {
	into, entries, isList := reflect.ValueOf(field).Elem(), 0, n.Items() != nil
	for range n.Pairs() {
		entries++
	}
	into.SetZero()
	switch entries += len(n.Items()); {
	case n.Alone() && n.Value() == none:
	case n.Alone() || isList != k.list:
		n.Fault("", k.wrong, k.legal)
	case k.max > 0 && entries > k.max:
		n.Fault("", fmt.Sprintf("%d entries are too many", entries), k.legal)
	default:
		k.read(into, n, at)
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
	case k.list:
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

func (k nested) allowed() string { return k.legal }

// record is the kind of fields that are structs.
func record(of reflect.Type, form string) nested {
	return nested{
		of: of, wrong: "is not of the form " + form, legal: form + ", or " + none,
		read: readParts, lines: partsOf,
	}
}

// entries is the kind of fields that are slices of structs, each with its name in a field.
// clean refuses names; legal says which there may be.
func entries(of reflect.Type, nameField string, most int, legal string, clean func(name string) error) nested {
	return nested{
		of: of, wrong: "has no entries of the form name: {...}", max: most, legal: fmt.Sprintf("%s, at most %d, or %s", legal, most, none),
		read: func(into reflect.Value, n strictyaml.Node, at places) {
			for name, value := range at.pairs(n, entryPath) {
				if err := clean(name); err != nil {
					value.Fault("", err.Error(), legal)
				}
				entry := reflect.New(of).Elem()
				entry.FieldByName(nameField).SetString(name)
				if value.IsMap() {
					readParts(entry, value, at)
				} else if value.Given() { // else every part is commented out
					value.Fault("", "is not a section", "keys under it: "+strings.Join(partNames(fieldsOf(of)), ", "))
				}
				into.Set(reflect.Append(into, entry))
			}
		},
		lines: func(value reflect.Value) (lines []line) {
			for i := range value.Len() {
				name := value.Index(i).FieldByName(nameField).String()
				lines = append(lines, entryLine(name, yamlText(name)+": ", value.Index(i)))
			}
			return lines
		},
	}
}

func entryLine(name, label string, entry reflect.Value) line {
	var texts, told []string
	for _, part := range partsOf(entry) {
		texts, told = append(texts, part.String()), append(told, part.label+part.told)
	}
	return line{name, label, "{" + strings.Join(texts, ", ") + "}", "{" + strings.Join(told, ", ") + "}", entry.Interface()}
}

// mapping is values by name.
type mapping struct {
	max   int
	legal string             // of names
	clean func(string) error // refuses names
	path  func(key, name string) string
	form  string // of an entry
	all   string // what values are, in a word; "": it is not told
	value kind
}

// kind is the kind of fields that are maps of such values.
func (m mapping) kind() nested {
	legal := m.legal
	if m.all != "" {
		legal += " with " + m.all + " of " + m.value.allowed()
	}
	return nested{
		wrong: "has no entries of the form " + m.form,
		max:   m.max, legal: fmt.Sprintf("%s, at most %d, or %s", legal, m.max, none),
		read: func(into reflect.Value, n strictyaml.Node, at places) {
			into.Set(reflect.MakeMap(into.Type()))
			for name, value := range at.pairs(n, m.path) {
				at[entryPath(n.Key, name)] = value.Line
				if err := m.clean(name); err != nil {
					value.Fault("", err.Error(), m.legal)
				}
				v := reflect.New(into.Type().Elem())
				store(m.value, v.Interface(), value, at)
				into.SetMapIndex(reflect.ValueOf(name), v.Elem())
			}
		},
		lines: func(all reflect.Value) (lines []line) {
			for _, key := range all.MapKeys() {
				v := reflect.New(all.Type().Elem())
				v.Elem().Set(all.MapIndex(key))
				text := m.value.show(v.Interface())
				lines = append(lines, line{key.String(), yamlText(key.String()) + ": ", text, text, v.Interface()})
			}
			sort.Slice(lines, func(i, j int) bool { return lines[i].name < lines[j].name })
			return lines
		},
	}
}

// listItem stands before an item of a list.
const listItem = "- "

// sequence is the kind of fields that are lists of structs: at most so many, each of one
// form.
func sequence(of reflect.Type, form string, most int) nested {
	legal := fmt.Sprintf("[%s, ...], at most %d, or %s", form, most, none)
	return nested{
		of: of, list: true, wrong: "is no list", max: most, legal: legal,
		read: func(into reflect.Value, n strictyaml.Node, at places) {
			for i, item := range n.Items() {
				item.Key = entryPath(n.Key, strconv.Itoa(i))
				at[item.Key] = item.Line
				value := reflect.New(of).Elem()
				if item.IsMap() {
					readParts(value, item, at)
				} else {
					item.Fault("", "is not of the form "+form, legal)
				}
				into.Set(reflect.Append(into, value))
			}
		},
		lines: func(value reflect.Value) (lines []line) {
			for i := range value.Len() {
				lines = append(lines, entryLine(strconv.Itoa(i), listItem, value.Index(i)))
			}
			return lines
		},
	}
}

// readParts fills a struct from a mapping.
func readParts(into reflect.Value, n strictyaml.Node, at places) {
	parts := fieldsOf(into.Type())
	for name, value := range at.pairs(n, partPath) {
		if i := slices.IndexFunc(parts, func(p field) bool { return p.name == name }); i >= 0 {
			store(parts[i].kind, parts[i].of(into), value, at)
			continue
		}
		names := partNames(parts)
		unknownKey(value, value.Key, spelling.Nearest(name, names), strings.Join(names, ", "))
	}
}

// store puts what a node holds in a field, or tells it what is wrong.
func store(k kind, field any, n strictyaml.Node, at places) {
	if parts, has := k.(structure); has {
		parts.setNode(field, n, at)
		return
	}
	var err error
	items, takesItems := k.(itemized)
	switch {
	case !n.Given():
		err = errors.New("has no value")
	case n.Alone():
		err = k.set(field, n.Value())
	case n.IsMap():
		err = errors.New("is a section, not a value")
	case !takesItems:
		err = errors.New("is a list, not one value")
	default:
		err = storeItems(items, field, n)
	}
	if err != nil {
		n.Fault("", err.Error(), k.allowed())
	}
}

func storeItems(k itemized, field any, n strictyaml.Node) error {
	texts := []string{}
	for _, item := range n.Items() {
		if !item.Alone() {
			return errors.New("has an item that is not plain text")
		}
		texts = append(texts, item.Value())
	}
	return k.setItems(field, texts)
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

// yamlText writes text so that it can stand anywhere in a file, also within
// braces.
func yamlText(text string) string {
	if !forms["yaml"].MatchString(text) || strings.EqualFold(text, "null") {
		return strconv.Quote(text)
	}
	return text
}
