package strictyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fill stores the value in v. What is wrong in it stays as it was.
func (n Node) fill(v reflect.Value, tag reflect.StructTag) {
	if n.file.read++; n.file.read == mostValues {
		n.Fault("", "is too much, with what aliases repeat", fmt.Sprintf("at most %d values", mostValues))
	} else if n.file.read > mostValues {
		return
	}
	before := len(n.file.faults)
	switch into := v.Addr().Interface().(type) {
	case *Node:
		*into = n
	case Unmarshaler:
		into.UnmarshalStrict(n)
	default:
		n.fillKind(v, tag)
	}
	if check, ok := reflect.TypeAssert[Checker](v.Addr()); ok && len(n.file.faults) == before {
		check.Check(n)
	}
}

func (n Node) fillKind(v reflect.Value, tag reflect.StructTag) {
	text, kind := isText(v), v.Kind()
	switch all := fields(v.Type()); {
	case text && n.Alone():
		if what := Set(v.Addr().Interface(), tag, n.yaml.Value); what != "" {
			n.Fault("", what, allowed(v, tag))
		}
	case text && n.Given():
		n.Fault("", "is a list or has keys", allowed(v, tag))
	case text, kind == reflect.Slice && !n.Given():
		n.Fault("", "has no value", allowed(v, tag))
	case kind != reflect.Struct && !n.Given(): // all of it is commented out
	case kind == reflect.Pointer:
		inner := reflect.New(v.Type().Elem())
		n.fill(inner.Elem(), tag)
		v.Set(inner)
	case kind == reflect.Slice:
		n.list(v, tag)
	case n.Alone() && alone(all) >= 0:
		f := all[alone(all)]
		n.fillKind(v.FieldByIndex(f.index), f.tag)
	case n.Given() && n.yaml.Kind != yaml.MappingNode:
		n.Line = max(n.Line, n.yaml.Line)
		n.Fault("", "is not of the form key: value", allowed(v, tag))
	default:
		n.keys(v, tag, all)
	}
}

// field is one of a struct that has a key.
type field struct {
	name, option string
	index        []int
	tag          reflect.StructTag
}

func (f field) is(name string) bool {
	return f.name == name || name != "" && slices.Contains(strings.Split(f.tag.Get("also"), ","), name)
}

func fields(t reflect.Type, above ...int) (all []field) {
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		f := field{index: append(slices.Clone(above), i), tag: t.Field(i).Tag}
		f.name, f.option, _ = strings.Cut(f.tag.Get("key"), ",")
		if f.option == "inline" {
			all = append(all, fields(t.Field(i).Type, f.index...)...)
		} else if f.name != "" {
			all = append(all, f)
		}
	}
	return all
}

// alone is the number of the field that a value without keys is for, or -1.
func alone(all []field) int {
	return slices.IndexFunc(all, func(f field) bool { return f.option == "alone" })
}

// keys fills a struct, which has the fields all, or a map.
func (n Node) keys(v reflect.Value, tag reflect.StructTag, all []field) {
	seen := map[string]int{} // the line of each
	if v.Kind() == reflect.Map {
		if !n.holds(len(n.yaml.Content)/2, tag) {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
	}
	for name, value := range n.Pairs() {
		if v.Kind() == reflect.Map {
			value.Key = n.Key + "[" + strings.TrimPrefix(value.Key, n.Key+".") + "]"
		}
		at := slices.IndexFunc(all, func(f field) bool { return f.is(name) })
		if at >= 0 {
			name = all[at].name
		}
		switch {
		case seen[name] > 0:
			value.Fault("", fmt.Sprintf("is set twice, first on line %d", seen[name]), "")
		case v.Kind() == reflect.Map:
			value.entry(v, tag, name)
		case at >= 0:
			value.fill(v.FieldByIndex(all[at].index), all[at].tag)
		case name == "<<":
			value.Fault("", "merge keys are not taken", "an alias in place of a value, as in port: *name")
		case DidYouMean("", name, names(all)) != "":
			value.Fault("", "unknown key"+DidYouMean("", name, names(all)), "")
		default:
			value.Fault("", "unknown key", strings.Join(names(all), ", "))
		}
		seen[name] = value.Line
	}
	for _, f := range all {
		if f.option == "required" && seen[f.name] == 0 {
			n.Fault(f.name, "is missing", allowed(v.FieldByIndex(f.index), f.tag))
		}
	}
}

// entry puts a value into a map.
func (n Node) entry(all reflect.Value, tag reflect.StructTag, name string) {
	key, value := reflect.New(all.Type().Key()).Elem(), reflect.New(all.Type().Elem()).Elem()
	if what := Set(key.Addr().Interface(), "", name); what != "" {
		n.Fault("", what, allowed(key, ""))
		return
	}
	n.fill(value, tag)
	all.SetMapIndex(key, value)
}

func names(all []field) (sorted []string) {
	for _, f := range all {
		sorted = append(sorted, f.name)
	}
	slices.Sort(sorted)
	return sorted
}

// list fills a slice; one value is a list of one.
func (n Node) list(v reflect.Value, tag reflect.StructTag) {
	items := n.Items()
	switch split := tag.Get("split"); {
	case items != nil:
	case !n.Alone() || split == "":
		items = []Node{n}
	default:
		for _, word := range strings.FieldsFunc(n.yaml.Value, func(r rune) bool { return r == '\n' || strings.ContainsRune(split, r) }) {
			items = append(items, n.at(&yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(word), Tag: "!!str"}, n.Key, n.Line))
		}
	}
	if n.holds(len(items), tag) {
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			item.fill(v.Index(i), tag)
		}
	}
}

// holds reports whether there may be so many entries.
func (n Node) holds(entries int, tag reflect.StructTag) bool {
	var least, most int
	if _, err := fmt.Sscanf(tag.Get("items"), "%d..%d", &least, &most); err == nil && (entries < least || entries > most) {
		n.Fault("", fmt.Sprintf("has %d entries", entries), fmt.Sprintf("%d to %d", least, most))
		return false
	}
	return true
}
