package config

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/cabrank/cabrank/internal/spelling"
	"github.com/cabrank/cabrank/internal/strictyaml"
)

// last returns the part of a key's name after its last dot.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// parent is the section that a key or a section is in, "" at the top.
func parent(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

// underscored is a name in the form in which those of keys, flags and variables are alike.
func underscored(name string) string { return strings.NewReplacer(".", "_", "-", "_").Replace(name) }

// whereMoved says what has become of the key that a name in a file, a variable or a flag
// was for, "" if there never was one.
func whereMoved(name string) string {
	name = strings.ToLower(underscored(strings.TrimPrefix(name, prefix)))
	for now, names := range moved() {
		if slices.Contains(strings.Fields(underscored(names)), name) {
			return now
		}
	}
	for _, key := range keysThat(func(k Key) bool { return k.kind.nested != nil && k.kind.most == 0 }) {
		for _, part := range key.parts() {
			if underscored(part.Name) == strings.TrimPrefix(name, "socket_") { // auth's were socket.auth_...
				return fmt.Sprintf("now %s: {%s: ...}", key.Name, last(part.Name))
			}
		}
	}
	return ""
}

// Suggest returns "; did you mean --workers?" for a flag that is not known, or
// where to set the key if it names one that has no flag, or "" if nothing has a
// name like it. A key is named as a whole, or by what follows the section if no other
// ends in it.
func Suggest(flag string) string {
	if now := whereMoved(flag); now != "" {
		return ": " + now
	}
	name := underscored(flag)
	named := keysThat(func(k Key) bool { return k.Hidden == "" && underscored(k.Name) == name })
	if named == nil {
		named = keysThat(func(k Key) bool { return k.Hidden == "" && last(k.Name) == name })
	}
	if len(named) == 1 && named[0].Flag == "" {
		return fmt.Sprintf("; %s has no flag: set it in the file or by the variable %s", named[0].Name, named[0].Env)
	}
	flags := []string{ConfigFlag}
	for _, key := range Flags() {
		flags = append(flags, key.Flag)
	}
	return strictyaml.DidYouMean("--", flag, flags)
}

// meantKeys names the keys that a name of the top level most likely stands for:
// that of the flag of that name, or those whose names end like it (a section that
// lost its indentation). call gives them their names.
func meantKeys(table []Key, name string, call func(Key) string) string {
	var ends []string
	for _, key := range table {
		if key.Flag == name {
			return call(key)
		}
		if last(key.Name) == name {
			ends = append(ends, call(key))
		}
	}
	return strings.Join(ends, " or ")
}

// under lists the keys of a section, or of the top level for "": those of the table, or
// gruf-relay's where there are no others.
func under(table []Key, section string) string {
	names := map[bool][]string{} // by whether they are gruf-relay's
	for _, key := range table {
		if rest, below := strings.CutPrefix("."+key.Name, strings.TrimSuffix("."+section, ".")+"."); below {
			name, _, _ := strings.Cut(rest, ".")
			names[key.Hidden != ""] = append(names[key.Hidden != ""], name)
		}
	}
	shown := names[len(names[false]) == 0]
	sort.Strings(shown)
	return strings.Join(slices.Compact(shown), ", ")
}

// meantVariable returns the variable that a name with the prefix most likely stands
// for: that of the key which is called so in a file or by gruf-relay, of the flag, of a
// key in some section, or the nearest.
func meantVariable(name string) string {
	name = strings.TrimPrefix(name, prefix)
	variables := map[string]string{"CONFIG": ConfigVariable, ConfigVariable: ConfigVariable}
	for _, key := range allKeys() {
		for _, as := range append(key.Aliases, key.Name, strings.TrimPrefix(key.Env, prefix)) {
			variables[variableOf("", as)] = key.Env
		}
	}
	if variable, exact := variables[name]; exact {
		return variable
	}
	if meant := meantKeys(allKeys(), strings.ToLower(name), ofVariable); meant != "" {
		return meant
	}
	return variables[spelling.Nearest(name, slices.Sorted(maps.Keys(variables)))]
}
