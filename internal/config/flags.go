package config

import "slices"

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

// flagSettings turns the flags that were given into settings.
func flagSettings(given map[string]string) ([]setting, Faults) {
	var settings []setting
	var faults Faults
	known := map[string]bool{ConfigFlag: true}
	for _, key := range Flags() {
		known[key.Flag] = true
		if argument, isGiven := given[key.Flag]; isGiven {
			settings = append(settings, key.written(argument, Origin{Flag: key.Flag}))
		}
	}
	for name := range given {
		if !known[name] {
			faults = append(faults, Fault{Origin: Origin{Flag: name}, What: "unknown flag" + Suggest(name)})
		}
	}
	return settings, faults
}
