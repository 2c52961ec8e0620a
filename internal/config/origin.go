package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// Origin says where a value comes from. The zero value is the default.
type Origin struct {
	Place string // "cabrank.yml", "variable WORKERS_COUNT", "flag --workers" or "command line"
	Line  int    // of a file; 0: it is none
}

func byFlag(name string) Origin     { return Origin{Place: "flag --" + name} }
func byVariable(name string) Origin { return Origin{Place: "variable " + name} }
func byCommandLine() Origin         { return Origin{Place: "command line"} }

// String returns the place with its line, or "default".
func (o Origin) String() string {
	if o.Line > 0 {
		return fmt.Sprintf("%s:%d", o.Place, o.Line)
	}
	return cmp.Or(o.Place, "default")
}

// fault is what is wrong with a key there.
func (o Origin) fault(key, what, allowed string) Fault {
	return Fault{File: cmp.Or(o.Place, "default"), Line: o.Line, Key: key, What: what, Allowed: allowed}
}

// Fault is one thing that is wrong with the configuration; File is the place.
type Fault = strictyaml.Fault

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

// FaultAt is what is wrong with the value of a key.
func (c *Config) FaultAt(key, what, allowed string) Fault {
	return c.origins[key].fault(key, what, allowed)
}

// Written returns where a key was written, and false if it has its default.
func (c *Config) Written(key string) (Origin, bool) {
	origin, written := c.origins[key]
	return origin, written
}

// quote returns text for an error line: quoted, on one line, shortened.
func quote(text string) string { return strictyaml.Quote(text) }

// Lines is what is wrong with a configuration or a command line, one line each.
func Lines(err error) []string { return strings.Split(err.Error(), "\n") }
