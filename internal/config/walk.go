package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is a field of a struct that has a name: a key of Config, or a part of one. Its tags
// say all that there is to know of it:
//
//	key:"timeout"     the name; in a section, a struct without help, behind that of the section
//	also:"a,b"        other names that the file may use
//	env, flag, arg    the variable, if it is gruf-relay's; the flag, and what --help calls its argument
//	default, help     for people, and the value where nobody gives one
//	change:"reload"   from when on another value holds: reload, restart or upgrade
//	secret:"yes"      the value is not repeated when it changes; "names": nor are the names of entries
//	kind:"upstream"   a kind of kinds(); without it range, zero, word, unit and oneof as in strictyaml
type field struct {
	name  string
	tag   reflect.StructTag
	index []int
	kind  kind
}

// secretNames marks entries whose names may be secrets, too.
const secretNames = "names"

// of returns the pointer that the field's kind sets.
func (f field) of(value reflect.Value) any { return value.FieldByIndex(f.index).Addr().Interface() }

// fieldsOf returns what has a name in a struct, in its order.
func fieldsOf(t reflect.Type) []field {
	table.kindsOnce.Do(func() { table.kinds = kinds() })
	return walk(t, "", nil, table.kinds)
}

// walk returns the same of a section, with its name in front.
func walk(t reflect.Type, section string, index []int, named map[string]kind) (all []field) {
	for i := range t.NumField() {
		of := t.Field(i)
		name, has := of.Tag.Lookup("key")
		if section != "" {
			name = strings.TrimSuffix(section+"."+name, ".")
		}
		at := append(slices.Clone(index), i)
		switch kind, isNamed := named[of.Tag.Get("kind")]; {
		case !has:
		case of.Tag.Get("help") == "":
			all = append(all, walk(of.Type, name, at, named)...)
		case isNamed:
			all = append(all, field{name, of.Tag, at, kind})
		default:
			all = append(all, field{name, of.Tag, at, plain{of.Tag}})
		}
	}
	return all
}

// table is made once: it is asked for at each key of a file.
var table struct {
	keysOnce, kindsOnce sync.Once
	keys                []Key
	kinds               map[string]kind
}

// Keys returns the table of settings, in the order in which it is shown.
func Keys() []Key {
	table.keysOnce.Do(func() { table.keys = makeTable() })
	return slices.Clone(table.keys)
}

func makeTable() (keys []Key) {
	for _, f := range fieldsOf(reflect.TypeFor[Config]()) {
		key := f.asKey(func(c *Config) any { return c })
		if key.Env == "" {
			key.Env = variableOf(prefix, key.Name)
		}
		if key.Name == "workers.count" {
			key.measured = func(cpus, _ int) int { return min(cpus, maxPortSpan-1) } // one is for the spare of a roll
		}
		keys = append(keys, key)
	}
	return keys
}

// asKey is the field of a struct, of which of returns the pointer, as a key.
func (f field) asKey(of func(*Config) any) Key {
	get := f.tag.Get
	return Key{
		Name: f.name, Env: get("env"), Flag: get("flag"), Arg: get("arg"), Default: get("default"), Help: get("help"),
		Aliases: slices.DeleteFunc(strings.Split(get("also"), ","), func(name string) bool { return name == "" }),
		Applies: Applies(get("change")), Secret: get("secret"),
		kind: f.kind, field: func(c *Config) any { return f.of(reflect.ValueOf(of(c)).Elem()) },
	}
}
