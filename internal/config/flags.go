package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/spelling"
)

// ConfigFlag and ConfigVariable name the file to read.
const (
	ConfigFlag     = "config"
	ConfigVariable = "CONFIG_PATH"
)

// Flags returns the keys that have a flag, in the order of the table.
func Flags() []Key { return slices.DeleteFunc(Keys(), func(k Key) bool { return k.Flag == "" }) }

// Repeats reports whether the key's flag may be given several times: values are joined with
// commas.
func (k Key) Repeats() bool { _, repeats := k.kind.(itemized); return repeats }

// Switch reports whether the key's flag means true if it stands alone.
func (k Key) Switch() bool {
	if k.Arg != "" {
		return false
	}
	_, is := k.field(new(Config)).(*bool)
	return is
}

// given turns the argument of the key's flag into a setting.
func (k Key) given(argument string) setting {
	return setting{k, raw{text: argument}, Origin{Flag: k.Flag}}
}

// last returns the part of a key's name after its last dot.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// flagSettings turns the flags that were given into settings.
func flagSettings(given map[string]string) ([]setting, Faults) {
	var settings []setting
	var faults Faults
	known := map[string]bool{ConfigFlag: true}
	for _, key := range Flags() {
		known[key.Flag] = true
		if argument, isGiven := given[key.Flag]; isGiven {
			settings = append(settings, key.given(argument))
		}
	}
	for name := range given {
		if !known[name] {
			faults = append(faults, Fault{Origin: Origin{Flag: name}, What: "unknown flag" + Suggest(name)})
		}
	}
	return settings, faults
}

// Suggest returns "; did you mean --workers?" for a flag that is not known, or
// where to set the key if it names one that has no flag, or "" if nothing has a
// name like it.
func Suggest(flag string) string {
	if now := whereMoved(flag); now != "" {
		return ": " + now
	}
	if key, found := flaglessKey(flag); found {
		return fmt.Sprintf("; %s has no flag: set it in the file or by the variable %s", key.Name, key.Env)
	}
	known := []string{ConfigFlag}
	for _, key := range Flags() {
		known = append(known, key.Flag)
	}
	return didYouMean("--", flag, known)
}

// flaglessKey finds the key that a flag stands for which does not exist: by its
// whole name, or by the part after the section if no other key ends in it.
func flaglessKey(flag string) (Key, bool) {
	plain := strings.NewReplacer(".", "_", "-", "_")
	name := plain.Replace(flag)
	var ends []Key
	for _, key := range Keys() {
		whole := plain.Replace(key.Name)
		if whole == name && key.Flag == "" {
			return key, true
		}
		if whole == name || strings.TrimPrefix(key.Name, key.section()+".") == name {
			ends = append(ends, key)
		}
	}
	if len(ends) == 1 && ends[0].Flag == "" {
		return ends[0], true
	}
	return Key{}, false
}

func didYouMean(prefix, name string, known []string) string {
	if near := spelling.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s%s?", prefix, near)
	}
	return ""
}
