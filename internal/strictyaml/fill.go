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
		if what := set(v, tag, n.yaml.Value); what != "" {
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
	case n.Alone() && find(all, alone) >= 0:
		f := all[find(all, alone)]
		n.fillKind(v.FieldByIndex(f.Index), f.Tag)
	case n.Given() && n.yaml.Kind != yaml.MappingNode:
		n.Line = max(n.Line, n.yaml.Line)
		n.Fault("", "is not of the form key: value", allowed(v, tag))
	default:
		n.pairs(v, tag, all)
	}
}

// fields are those of a struct with a key, which is their Name here.
func fields(t reflect.Type, above ...int) (all []reflect.StructField) {
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("key"), ",")
		f.Name, f.Index = name, append(slices.Clone(above), i)
		if option == "inline" {
			all = append(all, fields(f.Type, f.Index...)...)
		} else if name != "" {
			all = append(all, f)
		}
	}
	return all
}

func find(all []reflect.StructField, is func(f reflect.StructField) bool) int {
	return slices.IndexFunc(all, is)
}

func alone(f reflect.StructField) bool { return strings.HasSuffix(f.Tag.Get("key"), ",alone") }

func required(f reflect.StructField) bool { return strings.HasSuffix(f.Tag.Get("key"), ",required") }

// pairs fills a struct, which has the fields all, or a map.
func (n Node) pairs(v reflect.Value, tag reflect.StructTag, all []reflect.StructField) {
	seen := map[string]int{} // the line of each
	if v.Kind() == reflect.Map {
		if !n.holds(len(n.yaml.Content)/2, tag) {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
	}
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		key := n.at(n.yaml.Content[i], "", 0).yaml
		name, value := key.Value, n.at(n.yaml.Content[i+1], n.under(key.Value), n.yaml.Content[i].Line)
		if v.Kind() == reflect.Map {
			value.Key = n.Key + "[" + strings.TrimPrefix(value.Key, n.Key+".") + "]"
		}
		at := find(all, func(f reflect.StructField) bool {
			return f.Name == name || name != "" && slices.Contains(strings.Split(f.Tag.Get("also"), ","), name)
		})
		if at >= 0 {
			name = all[at].Name
		}
		switch {
		case seen[name] > 0:
			value.Fault("", fmt.Sprintf("is set twice, first on line %d", seen[name]), "")
		case v.Kind() == reflect.Map:
			value.entry(v, tag, name)
		case at >= 0:
			value.fill(v.FieldByIndex(all[at].Index), all[at].Tag)
		case name == "<<":
			value.Fault("", "merge keys are not taken", "an alias in place of a value, as in port: *name")
		default:
			value.Fault("", "unknown key"+meant(name, names(all)), strings.Join(names(all), ", "))
		}
		seen[name] = value.Line
	}
	for _, f := range all {
		if required(f) && seen[f.Name] == 0 {
			n.Fault(f.Name, "is missing", allowed(v.FieldByIndex(f.Index), f.Tag))
		}
	}
}

// entry puts a value into a map.
func (n Node) entry(all reflect.Value, tag reflect.StructTag, name string) {
	key, value := reflect.New(all.Type().Key()).Elem(), reflect.New(all.Type().Elem()).Elem()
	if what := set(key, "", name); what != "" {
		n.Fault("", what, allowed(key, ""))
		return
	}
	n.fill(value, tag)
	all.SetMapIndex(key, value)
}

func names(all []reflect.StructField) (names []string) {
	for _, f := range all {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// list fills a slice; one value is a list of one.
func (n Node) list(v reflect.Value, tag reflect.StructTag) {
	items := []Node{n}
	if split := tag.Get("split"); n.yaml.Kind == yaml.SequenceNode {
		items = nil
		for i, item := range n.yaml.Content {
			items = append(items, n.at(item, fmt.Sprintf("%s[%d]", n.Key, i+1), item.Line))
		}
	} else if n.Alone() && split != "" {
		items = nil
		for word := range strings.SplitSeq(n.yaml.Value, split) {
			if word = strings.TrimSpace(word); word != "" {
				items = append(items, n.at(&yaml.Node{Kind: yaml.ScalarNode, Value: word, Tag: "!!str"}, n.Key, n.Line))
			}
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
