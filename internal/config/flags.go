package config

import (
	"fmt"
	"strings"

	"github.com/cabrank/cabrank/internal/spelling"
)

// ConfigFlag and ConfigVariable name the file to read.
const (
	ConfigFlag     = "config"
	ConfigVariable = "CONFIG_PATH"
)

// Flag describes one command-line flag, which sets one key.
type Flag struct {
	Name    string // without dashes
	Arg     string // how --help names the argument
	Default string // as the argument would be written
	Help    string
	Env     string // the variable that sets the same
	Repeats bool   // given several times, the values are joined with commas
	Switch  bool   // alone it means true

	key Key
}

// Flags returns every flag that Load understands, in the order of the table,
// except --config.
func Flags() []Flag {
	var flags []Flag
	for _, key := range Keys() {
		if key.Flag != "" {
			flags = append(flags, newFlag(key))
		}
	}
	return flags
}

func newFlag(key Key) Flag {
	_, repeats := key.kind.(itemized)
	_, isSwitch := key.field(new(Config)).(*bool)
	return Flag{
		Name: key.Flag, Arg: key.Arg, Default: key.Default, Help: key.Help, Env: key.Env,
		Repeats: repeats, Switch: isSwitch && key.Arg == "", key: key,
	}
}

// setting turns the flag's argument into a setting of its key.
func (f Flag) setting(argument string) setting {
	return setting{f.key, raw{text: argument}, Origin{Flag: f.Name}}
}

// last returns the part of a key's name after its last dot.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// flagSettings turns the flags that were given into settings.
func flagSettings(given map[string]string) ([]setting, Faults) {
	var settings []setting
	var faults Faults
	known := map[string]bool{ConfigFlag: true}
	for _, flag := range Flags() {
		known[flag.Name] = true
		if argument, isGiven := given[flag.Name]; isGiven {
			settings = append(settings, flag.setting(argument))
		}
	}
	for name := range given {
		if !known[name] {
			faults = append(faults, Fault{Origin: Origin{Flag: name}, What: "unknown flag" + Suggest(name)})
		}
	}
	return settings, faults
}

// FlagNames returns the names of all flags, without dashes.
func FlagNames() []string {
	names := []string{ConfigFlag}
	for _, flag := range Flags() {
		names = append(names, flag.Name)
	}
	return names
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
	return didYouMean("--", flag, FlagNames())
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
