package config

import (
	"fmt"
	"strings"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// Origin says where a value comes from.
//
// Shape: the zero value is the default; otherwise one of a file with a line, a
// variable or a flag (Flag is its name without dashes).
type Origin struct {
	File     string
	Line     int
	Variable string
	Flag     string
	// Command is set for what follows "--" on the command line.
	Command bool
}

// String returns "default", "cabrank.yml:12", "variable WORKERS_COUNT",
// "flag --workers" or "command line".
func (o Origin) String() string {
	switch {
	case o.Command:
		return "command line"
	case o.Flag != "":
		return "flag --" + o.Flag
	case o.Variable != "":
		return "variable " + o.Variable
	case o.File != "" && o.Line > 0:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case o.File != "":
		return o.File
	}
	return "default"
}

// on is the origin on a line of the file, if it is one.
func (o Origin) on(line int) Origin {
	if o.File != "" {
		o.Line = line
	}
	return o
}

// Fault is one thing that is wrong with the configuration.
type Fault struct {
	Origin  Origin
	Key     string // empty if the fault is not about one key
	What    string // what is wrong
	Allowed string // what would be right; empty if What says it
}

// Error returns the fault as one line: origin, key, what is wrong, what is
// allowed.
func (f Fault) Error() string {
	return strictyaml.Fault{File: f.Origin.String(), Key: f.Key, What: f.What, Allowed: f.Allowed}.Error()
}

// Faults is every fault that Load found, in the order of the sources.
type Faults []Fault

// Error returns one line per fault, without a newline at the end.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// quote returns text for an error line: quoted, on one line, shortened.
func quote(text string) string { return strictyaml.Quote(text) }

// Lines is what is wrong with a configuration or a command line, one line each.
func Lines(err error) []string { return strings.Split(err.Error(), "\n") }
