package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/spelling"
)

// ConfigFlag and ConfigVariable name the file to read.
const (
	ConfigFlag     = "config"
	ConfigVariable = "CONFIG_PATH"
)

// Flag describes one command-line flag that sets one or more keys.
type Flag struct {
	Name    string // without dashes
	Arg     string // how --help names the argument
	Default string // as the argument would be written
	Help    string
	Env     []string // the variables that set the same
	Repeats bool     // given several times, the values are joined with commas
	Switch  bool     // alone it means true

	keys []Key
}

// Flags returns every flag that Load understands, in the order of the table,
// except --config.
func Flags() []Flag {
	var flags []Flag
	at := map[string]int{}
	for _, key := range Keys() {
		if key.Flag == "" {
			continue
		}
		i, known := at[key.Flag]
		if !known {
			i = len(flags)
			at[key.Flag] = i
			flags = append(flags, newFlag(key))
		}
		flags[i].keys = append(flags[i].keys, key)
		flags[i].Env = append(flags[i].Env, key.Env)
	}
	for i := range flags {
		flags[i].Default = flags[i].defaultText()
	}
	return flags
}

func newFlag(first Key) Flag {
	_, repeats := first.kind.(itemized)
	_, isSwitch := first.kind.(toggle)
	flag := Flag{Name: first.Flag, Arg: first.Arg, Help: first.Help, Repeats: repeats, Switch: isSwitch && first.Arg == ""}
	if first.FlagFor != "" {
		flag.Help = first.FlagFor
	}
	return flag
}

func (f Flag) defaultText() string {
	if len(f.keys) == 1 {
		return f.keys[0].Default
	}
	var host, port string
	for _, key := range f.keys {
		switch last(key.Name) {
		case "host":
			host = key.Default
		case "port":
			port = key.Default
		}
	}
	return host + ":" + port
}

// settings turns the flag's argument into settings of its keys.
func (f Flag) settings(argument string) ([]setting, *Fault) {
	origin := Origin{Flag: f.Name}
	if len(f.keys) == 1 {
		return []setting{{f.keys[0], raw{text: argument}, origin}}, nil
	}
	if argument == "off" && last(f.keys[0].Name) == "enabled" {
		return []setting{{f.keys[0], raw{text: "false"}, origin}}, nil
	}
	host, port, err := splitHostPort(argument)
	if err != nil {
		section := f.keys[0].section()
		allowed := f.Arg + ", port 0 to " + strconv.Itoa(maxPort)
		return nil, &Fault{Origin: origin, Key: section, What: err.Error(), Allowed: allowed}
	}
	parts := map[string]string{"enabled": "true", "host": host, "port": strconv.Itoa(port)}
	var settings []setting
	for _, key := range f.keys {
		settings = append(settings, setting{key, raw{text: parts[last(key.Name)]}, origin})
	}
	return settings, nil
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
		argument, isGiven := given[flag.Name]
		if !isGiven {
			continue
		}
		some, fault := flag.settings(argument)
		if fault != nil {
			faults = append(faults, *fault)
		}
		settings = append(settings, some...)
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
