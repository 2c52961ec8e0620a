package scenario

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed files/*.yml
var files embed.FS

const suffix = ".yml"

// Names are the names of the scenarios that come with the program, sorted.
func Names() (all []string) {
	entries, _ := files.ReadDir("files") // it is in the program
	for _, e := range entries {
		all = append(all, strings.TrimSuffix(e.Name(), suffix))
	}
	slices.Sort(all)
	return all
}

// Text returns the file of a scenario that comes with the program.
//
// Errors: one line that lists what there is.
func Text(name string) ([]byte, error) {
	text, err := files.ReadFile(path.Join("files", name+suffix))
	if err != nil {
		return nil, fmt.Errorf("%w (`cabrank lab list`; a file ends in %s)", noSuch("scenario", name, Names()), suffix)
	}
	return text, nil
}

// Builtin returns a scenario that comes with the program, with other values: see Parse.
//
// Errors: as those of Text and Parse.
func Builtin(name string, set map[string]string) (*Scenario, error) {
	text, err := Text(name)
	if err != nil {
		return nil, err
	}
	return Parse(name+suffix, text, set)
}
