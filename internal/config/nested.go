package config

import (
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

// nested is the kind of what has parts: one struct; a list of structs; or entries by names
// that the operator chooses, in a map, or in a slice of structs that have their names in a
// field. It is nested in the file, and the same as YAML or JSON text in a variable.
type nested struct {
	form  string // of an entry, or of the one struct
	max   int    // entries; 0: it is one struct
	list  bool   // entries have no names
	names string // which there may be
	check func(name string) error
	field string                        // of the name, in a struct
	path  func(key, name string) string // names an entry with a name, for people
	value kind                          // of the values of a map
	all   string                        // what they are, in a word; "": it is not told
	word  string                        // stands for a map with the one entry "", which no other can have
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
	value any // what the text is made of
}

// listItem stands before an item of a list.
const listItem = "- "

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
	into, entries, isList := reflect.ValueOf(field).Elem(), len(n.Items()), n.Items() != nil
	for range n.Pairs() {
		entries++
	}
	into.SetZero()
	switch {
	case n.Alone() && n.Value() == none:
	case n.Alone() && k.word != "" && n.Value() == k.word:
		into.Set(reflect.MakeMap(into.Type()))
		into.SetMapIndex(reflect.ValueOf(""), reflect.Zero(into.Type().Elem()))
	case n.Alone() || isList != k.list:
		n.Fault("", k.wrong(), k.allowed())
	case k.max == 0:
		readParts(into, n, at)
	case entries > k.max:
		n.Fault("", fmt.Sprintf("%d entries are too many", entries), k.allowed())
	default:
		k.setEntries(into, n, at)
	}
}

func (k nested) setEntries(into reflect.Value, n strictyaml.Node, at places) {
	if into.Kind() == reflect.Map {
		into.Set(reflect.MakeMap(into.Type()))
	}
	for i, item := range n.Items() {
		item.Key = entryPath(n.Key, strconv.Itoa(i))
		at[item.Key] = item.Line
		k.setEntry(into, "", item, at)
	}
	for name, value := range at.pairs(n, k.path) {
		at[entryPath(n.Key, name)] = value.Line
		if err := k.check(name); err != nil {
			value.Fault("", err.Error(), k.names)
		}
		k.setEntry(into, name, value, at)
	}
}

func (k nested) setEntry(into reflect.Value, name string, n strictyaml.Node, at places) {
	entry := reflect.New(into.Type().Elem())
	switch {
	case k.value != nil:
		store(k.value, entry.Interface(), n, at)
		into.SetMapIndex(reflect.ValueOf(name), entry.Elem())
		return
	case n.IsMap():
		readParts(entry.Elem(), n, at)
	case k.list:
		n.Fault("", "is not of the form "+k.form, k.allowed())
	case n.Given(): // else every part is commented out
		n.Fault("", "is not a section", "keys under it: "+strings.Join(partNames(keysOf(entry.Elem().Type(), "")), ", "))
	}
	if k.field != "" {
		entry.Elem().FieldByName(k.field).SetString(name)
	}
	into.Set(reflect.Append(into, entry.Elem()))
}

func (k nested) isWord(all reflect.Value) bool {
	return k.word != "" && all.MapIndex(reflect.ValueOf("")).IsValid()
}

// linesOf writes the entries, or the parts of the one struct; told is where a change is told.
func (k nested) linesOf(field any, told bool) (lines []line) {
	all := reflect.ValueOf(field).Elem()
	switch {
	case k.max == 0:
		return partsOf(all, told)
	case k.isWord(all):
		return nil
	case k.value != nil:
		for _, key := range all.MapKeys() {
			v := reflect.New(all.Type().Elem())
			v.Elem().Set(all.MapIndex(key))
			text := k.value.show(v.Interface())
			lines = append(lines, line{key.String(), yamlText(key.String()) + ": ", text, v.Interface()})
		}
		sort.Slice(lines, func(i, j int) bool { return lines[i].name < lines[j].name })
		return lines
	}
	for i := range all.Len() {
		entry, name, label := all.Index(i), strconv.Itoa(i), listItem
		if k.field != "" {
			name = entry.FieldByName(k.field).String()
			label = yamlText(name) + ": "
		}
		lines = append(lines, line{name, label, "{" + joined(partsOf(entry, told)) + "}", entry.Interface()})
	}
	return lines
}

// show writes all entries on one line, as a variable could hold them.
func (k nested) show(field any) string {
	switch text := joined(k.linesOf(field, false)); {
	case k.isWord(reflect.ValueOf(field).Elem()):
		return k.word
	case text == "":
		return none
	case k.list:
		return "[" + text + "]"
	default:
		return "{" + text + "}"
	}
}

func joined(lines []line) string {
	var texts []string
	for _, l := range lines {
		texts = append(texts, strings.TrimPrefix(l.String(), listItem))
	}
	return strings.Join(texts, ", ")
}

func (k nested) wrong() string {
	switch {
	case k.list:
		return "is no list"
	case k.max == 0:
		return "is not of the form " + k.form
	}
	return "has no entries of the form " + k.form
}

func (k nested) allowed() string {
	legal := k.names
	switch {
	case k.max == 0:
		return k.form + ", or " + none
	case k.list:
		legal = "[" + k.form + ", ...]"
	case k.all != "":
		legal += " with " + k.all + " of " + k.value.allowed()
	}
	legal = fmt.Sprintf("%s, at most %d, or %s", legal, k.max, none)
	if k.word != "" {
		legal += ", or " + k.word
	}
	return legal
}

// readParts fills a struct from a mapping.
func readParts(into reflect.Value, n strictyaml.Node, at places) {
	parts := keysOf(into.Type(), "")
	names := partNames(parts)
	for name, value := range at.pairs(n, partPath) {
		if i := slices.Index(names, name); i >= 0 {
			store(parts[i].kind, parts[i].in(into), value, at)
			continue
		}
		unknownKey(value, value.Key, spelling.Nearest(name, names), strings.Join(names, ", "))
	}
}

// store puts what a node holds in a field, or tells it what is wrong.
func store(k kind, field any, n strictyaml.Node, at places) {
	if parts, has := k.(nested); has {
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

func partNames(parts []Key) (names []string) {
	for _, part := range parts {
		names = append(names, part.Name)
	}
	return names
}

// partsOf writes the parts of a struct, but for what is as if it had not been written.
func partsOf(value reflect.Value, told bool) (lines []line) {
	unset := reflect.New(value.Type()).Elem()
	for _, p := range keysOf(value.Type(), "") {
		shown := p.kind.show(p.in(value))
		if shown == p.kind.show(p.in(unset)) {
			continue
		}
		if k, are := p.kind.(itemized); are {
			items := k.items(p.in(value))
			shown = inList(items, yamlText)
			if told && p.Secret != "" {
				shown = fmt.Sprintf(`["%d of them"]`, len(items))
			}
		} else if text, is := p.in(value).(*string); is && shown != hidden {
			shown = yamlText(*text)
		}
		lines = append(lines, line{name: p.Name, label: p.Name + ": ", text: shown})
	}
	return lines
}

// yamlText writes text so that it can stand anywhere in a file, also within
// braces.
func yamlText(text string) string {
	if !forms["yaml"].MatchString(text) || strings.EqualFold(text, "null") {
		return strconv.Quote(text)
	}
	return text
}
