package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// nested says what a kind consists of that has parts: one struct; or many, in a list, or by
// names that the operator chooses, in a map or in a slice of structs that have their names in
// a field. It is nested in the file, and the same as YAML or JSON text in a variable.
type nested struct {
	form  string                             // of it all
	names string                             // which there may be; "": it is one struct, or a list
	check func(name string) (string, error)  // of an entry
	path  func(key, name string) string      // names an entry, for people
	field string                             // of the name, in a struct
	value kind                               // of the values of a map
	whole func(entry any, n strictyaml.Node) // looks at an entry that is right in all parts
	word  string                             // stands for a map with the one entry "", which no other can have
}

// places are the lines on which the parts of a value stand, by "key[name]" and
// "key[name].part".
type places map[string]int

// eachEntry visits the items of a list, and the pairs of a mapping whose names come once. pathOf
// names them.
func eachEntry(n strictyaml.Node, pathOf func(key, name string) string, visit func(name string, value strictyaml.Node)) {
	for i, item := range n.Items() {
		item.Key = pathOf(n.Key, strconv.Itoa(i))
		visit(strconv.Itoa(i), item)
	}
	seen := map[string]int{} // the line of each
	for name, value := range n.Pairs() {
		value.Key = pathOf(n.Key, name)
		if seen[name] > 0 {
			value.Fault("", fmt.Sprintf("is set twice, first on line %d", seen[name]), "once")
			continue
		}
		seen[name] = value.Line
		visit(name, value)
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

// store puts what a node holds where field points, and tells the node of every fault.
func (k kind) store(field any, n strictyaml.Node, at places) {
	var err error
	at[n.Key] = n.Line
	switch {
	case k.nested != nil:
		k.storeNested(reflect.ValueOf(field).Elem(), n, at)
	case !n.Given():
		err = errors.New("has no value")
	case n.Alone():
		err = k.set(field, n.Value())
	case n.IsMap():
		err = errors.New("is a section, not a value")
	case !k.isList():
		err = errors.New("is a list, not one value")
	default:
		var items []string
		if items, err = textsOf(n); err == nil {
			err = k.setItems(field, items)
		}
	}
	if err != nil {
		n.Fault("", err.Error(), k.allowed())
	}
}

// textsOf are the items of a list.
func textsOf(n strictyaml.Node) (texts []string, err error) {
	for _, item := range n.Items() {
		if !item.Alone() {
			return nil, errors.New("has an item that is not plain text")
		}
		texts = append(texts, item.Value())
	}
	return texts, nil
}

// isNamed reports whether parts or entries have names, so that it is no list.
func (k kind) isNamed() bool { return k.most == 0 || k.nested.names != "" }

func (k kind) storeNested(into reflect.Value, n strictyaml.Node, at places) {
	into.SetZero()
	if into.Kind() == reflect.Map {
		into.Set(reflect.MakeMap(into.Type()))
	}
	entries := len(n.Items())
	for range n.Pairs() {
		entries++
	}
	switch {
	case n.Alone() && n.Value() == none:
	case n.Alone() && k.nested.word != "" && n.Value() == k.nested.word:
		into.SetMapIndex(reflect.ValueOf(""), reflect.Zero(into.Type().Elem()))
	case n.Alone() || n.IsMap() != k.isNamed():
		n.Fault("", "is not of the form "+k.nested.form, k.allowed())
	case k.most == 0:
		storeParts(into, n, at)
	case entries > k.most:
		n.Fault("", fmt.Sprintf("%d entries are too many", entries), k.allowed())
	default:
		eachEntry(n, k.nested.path, func(name string, value strictyaml.Node) { k.storeEntry(into, n.Key, name, value, at) })
	}
}

func (k kind) storeEntry(into reflect.Value, key, name string, n strictyaml.Node, at places) {
	at[entryPath(key, name)] = n.Line // also if the path is another one
	if check := k.nested.check; check != nil {
		if _, err := check(name); err != nil {
			n.Fault("", err.Error(), k.nested.names)
		}
	}
	entry := reflect.New(into.Type().Elem())
	if into.Kind() == reflect.Map {
		k.nested.value.store(entry.Interface(), n, at)
		into.SetMapIndex(reflect.ValueOf(name), entry.Elem())
		return
	}
	if k.nested.field != "" {
		entry.Elem().FieldByName(k.nested.field).SetString(name)
	}
	storeParts(entry.Elem(), n, at)
	ofEntry := func(f Fault) bool { return strings.HasPrefix(f.Key, n.Key) }
	if k.nested.whole != nil && !slices.ContainsFunc(n.Faults(), ofEntry) {
		k.nested.whole(entry.Interface(), n)
	}
	into.Set(reflect.Append(into, entry.Elem()))
}

// storeParts fills a struct from a mapping. If nothing is given every part is commented out.
func storeParts(into reflect.Value, n strictyaml.Node, at places) {
	parts := keysOf(into.Type(), "")
	if n.Given() && !n.IsMap() {
		n.Fault("", "is not a section", "keys under it: "+under(parts, ""))
	}
	for _, s := range settingsIn(n, "", parts) {
		s.key.kind.store(s.key.in(into), s.value, at)
	}
}

// line is one entry, or one part of a struct, as it could stand under the key in a file.
type line struct {
	path  string // of the entry, "[name]", or part, ".name", behind that of the key
	label string // what stands before the text: "name: " or "- "
	text  string
	value any // what the text is made of
}

func (l line) String() string { return l.label + l.text }

// isWord reports whether a map is what the word stands for.
func (k kind) isWord(all reflect.Value) bool {
	return k.nested.word != "" && all.MapIndex(reflect.ValueOf("")).IsValid()
}

// linesOf writes the entries, or the parts of the one struct, but for what is as if it had not
// been written; told is where a change is told.
func (k kind) linesOf(field any, told bool) (lines []line) {
	all := reflect.ValueOf(field).Elem()
	add := func(path, label string, of kind, value any) {
		lines = append(lines, line{path, label, of.within(value, told), value})
	}
	switch {
	case k.most == 0:
		unset := reflect.New(all.Type()).Elem()
		for _, p := range keysOf(all.Type(), "") {
			if p.kind.show(p.in(all)) != p.kind.show(p.in(unset)) {
				add("."+p.Name, p.Name+": ", p.kind, p.in(all))
			}
		}
	case all.Kind() == reflect.Map && !k.isWord(all):
		for _, key := range all.MapKeys() {
			value := reflect.New(all.Type().Elem())
			value.Elem().Set(all.MapIndex(key))
			add(entryPath("", key.String()), yamlText(key.String())+": ", k.nested.value, value.Interface())
		}
		sort.Slice(lines, func(i, j int) bool { return lines[i].path < lines[j].path })
	case all.Kind() == reflect.Slice:
		for i := range all.Len() {
			name, label := strconv.Itoa(i), "- "
			if k.nested.field != "" {
				name = all.Index(i).FieldByName(k.nested.field).String()
				label = yamlText(name) + ": "
			}
			add(entryPath("", name), label, parts(""), all.Index(i).Addr().Interface())
		}
	}
	return lines
}

// showNested writes all entries on one line, as a variable could hold them.
func (k kind) showNested(field any) string {
	switch {
	case k.isWord(reflect.ValueOf(field).Elem()):
		return k.nested.word
	case k.linesOf(field, false) == nil:
		return none
	}
	return k.within(field, false)
}

// within writes a value so that it can stand within another one.
func (k kind) within(field any, told bool) string {
	text, isText := field.(*string)
	switch {
	case k.nested != nil:
		var texts []string
		for _, l := range k.linesOf(field, told) {
			texts = append(texts, strings.TrimPrefix(l.String(), "- "))
		}
		if k.isNamed() {
			return "{" + strings.Join(texts, ", ") + "}"
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case k.isList() && told && k.tag.Get("secret") != "":
		return fmt.Sprintf(`["%d of them"]`, len(k.items(field)))
	case k.isList():
		return inList(k.items(field), yamlText)
	case isText && !k.secret:
		return yamlText(*text)
	}
	return k.show(field)
}

// yamlText writes text so that it can stand anywhere in a file, also within
// braces.
func yamlText(text string) string {
	if !forms["yaml"].MatchString(text) || strings.EqualFold(text, "null") {
		return strconv.Quote(text)
	}
	return text
}
