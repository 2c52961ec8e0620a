package config

import (
	"cmp"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Key is a setting: a field of Config, or of a struct that is a value or an entry of one. The
// tags of the field say all that there is to know of it:
//
//	key:"timeout"     the name; in a section, a struct without help, behind that of the section
//	also:"a,b"        other names that the file may use
//	parts:"a.b=Host"  gruf-relay's names for parts of the value, and the fields that they set
//	env, flag, arg    the variable, if it is gruf-relay's; the flag, and what --help calls its argument
//	default, help     for people, and the value where nobody gives one
//	docs:"callers"    the page that tells most about it, or about all of a section
//	change:"reload"   from when on another value holds: reload, restart or upgrade
//	secret:"yes"      the value is not repeated when it changes; "names": nor are the names of entries
//	hidden:"gruf"     it is on no list but that of docs/why.md; "variable": nor in a file, only benchmarks set it
//	kind:"upstream"   a kind of kinds(); without it range, zero, word, unit and oneof as in strictyaml
type Key struct {
	Name    string   // dotted, as in the file: "workers.count"
	Aliases []string // other names that the file may use
	Env     string   // the variable
	Flag    string   // without dashes
	Arg     string   // how --help names the flag's argument
	Default string   // as it could be written in a file; for a measured one what is measured
	Help    string   // what it means, one line
	Applies Applies  // from when on a changed value holds
	Secret  string
	Hidden  string
	Of      string // of a name of gruf-relay's: the key of whose value it is a part

	docs  string // the page
	kind  kind
	index []int // of the field
}

// Applies says from when on a changed value of a key holds in a cabrank that
// runs, and is called as the command is that makes a change hold. Every class
// includes those above it: a restart reloads first, and a new cabrank reads all.
type Applies string

const (
	// ByReload values hold at once for what comes: calls and connections that
	// are there keep what they began with, where it matters to them.
	ByReload Applies = "reload"
	// ByRestart values are handed to worker processes when these start, so they
	// hold with the next process of each worker.
	ByRestart Applies = "restart"
	// ByUpgrade values are fixed when cabrank starts.
	ByUpgrade Applies = "upgrade"
)

const (
	secretNames  = "names"       // Secret: the names of entries may be secrets, too
	variableOnly = "variable"    // Hidden: it is not in a file
	usableCPUs   = "usable CPUs" // Default: it is measured
	automatic    = "auto"        // the word for a value that cabrank finds by itself

	maxWorkers = 1000
	maxShards  = 256

	// maxPortSpan is how many workers fit between a worker's port and its
	// metrics port, which is 100 above it, as gruf-relay laid them out.
	maxPortSpan = 100
)

// keysOf returns what has a name in a struct at index, which is a section or has a value of
// its own, in its order.
func keysOf(t reflect.Type, section string, at ...int) (all []Key) {
	for i := range t.NumField() {
		f, index := t.Field(i), append(slices.Clone(at), i)
		name, has := f.Tag.Lookup("key")
		if section != "" {
			name = strings.TrimSuffix(section+"."+name, ".")
		}
		switch get := f.Tag.Get; {
		case !has:
		case get("help") == "":
			for _, key := range keysOf(f.Type, name, index...) {
				key.docs = cmp.Or(key.docs, get("docs"))
				all = append(all, key)
			}
		default:
			all = append(all, Key{
				Name: name, Env: get("env"), Flag: get("flag"), Arg: get("arg"), Default: get("default"), Help: get("help"),
				Aliases: strings.FieldsFunc(get("also"), func(r rune) bool { return r == ',' }),
				Applies: Applies(get("change")), Secret: get("secret"), Hidden: get("hidden"), docs: get("docs"), kind: kindOf(f.Tag), index: index,
			})
			for part := range strings.FieldsSeq(get("parts")) {
				part, field, _ := strings.Cut(part, "=")
				inner, _ := f.Type.FieldByName(field)
				all = append(all, Key{Name: part, Env: variableOf("", part), Hidden: "gruf", Of: name, kind: kindOf(inner.Tag), index: slices.Concat(index, inner.Index)})
			}
		}
	}
	return all
}

// allKeys returns what can be read: the table, gruf-relay's names, and those of benchmarks.
// It is made once, as it is asked for at each key of a file.
var allKeys = sync.OnceValue(func() (keys []Key) {
	keys = keysOf(reflect.TypeFor[Config](), "")
	for i := range keys {
		keys[i].Env = cmp.Or(keys[i].Env, variableOf(prefix, keys[i].Name))
	}
	sort.SliceStable(keys, func(i, j int) bool { return keys[i].Hidden < keys[j].Hidden }) // "", "gruf", "variable"
	return keys
})

func keysThat(are func(Key) bool) (keys []Key) {
	for _, key := range allKeys() {
		if are(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Keys returns the table of settings, in the order in which it is shown.
func Keys() []Key { return keysThat(func(k Key) bool { return k.Hidden == "" }) }

// Flags returns the keys that have a flag, in the order of the table.
func Flags() []Key { return keysThat(func(k Key) bool { return k.Flag != "" }) }

// fileKeys returns what a file may have: the table, and gruf-relay's names.
func fileKeys() []Key { return keysThat(func(k Key) bool { return k.Hidden != variableOnly }) }

// ownKeys are those that have a value of their own.
func ownKeys() []Key { return keysThat(func(k Key) bool { return k.Of == "" }) }

// variableOf names the variable of a key: that of a.b is A_B, and CABRANK_A_B if gruf-relay
// did not have it.
func variableOf(prefix, name string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// in returns the pointer that the key's kind sets, in the struct that has the key.
func (k Key) in(all reflect.Value) any { return all.FieldByIndex(k.index).Addr().Interface() }

func (k Key) field(c *Config) any { return k.in(reflect.ValueOf(c).Elem()) }

// Allowed says which values the key takes.
func (k Key) Allowed() string { return k.kind.allowed() }

// Repeats reports whether the key's flag may be given several times: values are joined with
// commas.
func (k Key) Repeats() bool { return k.kind.isList() }

// Switch reports whether the key's flag means true if it stands alone.
func (k Key) Switch() bool { _, is := k.field(new(Config)).(*bool); return is && k.Arg == "" }

// parts are what the key, or an entry of it, consists of; most have none.
func (k Key) parts() []Key {
	if k.kind.nested == nil {
		return nil
	}
	switch t := reflect.TypeOf(k.field(new(Config))).Elem(); {
	case k.kind.most == 0:
		return keysOf(t, k.Name, k.index...)
	case k.kind.nested.field != "":
		return keysOf(t.Elem(), k.Name+"[]")
	}
	return nil
}
