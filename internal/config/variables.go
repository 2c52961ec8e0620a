package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxVariables and maxVariable bound what workers get beside cabrank's own
	// environment: their number, and the bytes of each.
	maxVariables   = 200
	maxVariable    = 32 << 10
	variablesLegal = "names of letters, digits and _ that cabrank does not set itself"
	// hidden stands for a value that is not shown.
	hidden = "(hidden)"
)

// ownVariables are those by which a worker is told who it is and where it
// listens; what begins with CABRANK_ is cabrank's, too.
func ownVariables() []string {
	return []string{"PORT", "PROMETHEUS_EXPORTER_PORT", "PROMETHEUS_EXPORTER_PATH", "RAILS_MAX_THREADS"}
}

// variables is the kind of *map[string]string fields: variables of workers. The
// values may be secrets, so that they are never shown.
type variables struct{}

func (variables) set(field any, text string) error {
	if text != none {
		return errors.New("has no entries") // the text may hold a secret
	}
	*field.(*map[string]string) = nil
	return nil
}

func (k variables) setNode(field any, node *yaml.Node, at *outline) {
	switch {
	case isEmpty(node):
		*field.(*map[string]string) = nil
		return
	case node.Kind != yaml.MappingNode:
		at.fault(node, at.key, "has no entries of the form NAME: value", k.allowed())
		return
	case len(node.Content)/2 > maxVariables:
		at.fault(node, at.key, fmt.Sprintf("%d entries are too many", len(node.Content)/2), k.allowed())
		return
	}
	all := map[string]string{}
	at.pairs(node, func(name string) string { return variablePath(at.key, name) }, func(path, name string, key, value *yaml.Node) {
		if err := checkVariable(name); err != nil {
			at.fault(key, path, err.Error(), variablesLegal)
		}
		if what := variableFault(value); what != "" {
			at.fault(key, path, what, fmt.Sprintf("text of at most %d bytes", maxVariable))
		}
		all[name] = value.Value
	})
	if len(at.faults) == 0 {
		*field.(*map[string]string) = all
	}
}

// variableFault says what is wrong with a value, without repeating it.
func variableFault(value *yaml.Node) string {
	switch _, what := rawOf(value); {
	case what != "":
		return what
	case value.Kind != yaml.ScalarNode:
		return "is a list, not one value"
	case len(value.Value) > maxVariable:
		return fmt.Sprintf("has %d bytes", len(value.Value))
	case strings.ContainsRune(value.Value, 0):
		return "has a zero byte"
	}
	return ""
}

// variablePath names an entry, without the value where NAME=VALUE stands for a name.
func variablePath(key, name string) string {
	if name, _, found := strings.Cut(name, "="); found {
		return entryPath(key, name+"="+hidden)
	}
	return entryPath(key, name)
}

// maxVariableLength bounds the name of a variable, in bytes.
const maxVariableLength = 64

// checkVariable accepts names that shells can use (POSIX, Base Definitions 8.1)
// and that are not taken.
func checkVariable(name string) error {
	odd := func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}
	switch {
	case name == "" || strings.ContainsFunc(name, odd) || name[0] >= '0' && name[0] <= '9':
		return errors.New("is not the name of a variable")
	case len(name) > maxVariableLength:
		return fmt.Errorf("is longer than %d characters", maxVariableLength)
	case name == "RAILS_MAX_THREADS":
		return errors.New("is set by cabrank, to three times workers.slots")
	case slices.Contains(ownVariables(), name) || strings.HasPrefix(name, prefix):
		return errors.New("is set by cabrank")
	}
	return nil
}

func (k variables) show(field any) string { return showLines(k.lines(field)) }

func (variables) lines(field any) []line {
	names := slices.Sorted(maps.Keys(*field.(*map[string]string)))
	lines := make([]line, len(names))
	for i, name := range names {
		lines[i] = line{name, name + ": " + hidden}
	}
	return lines
}

func (k variables) allowed() string {
	return fmt.Sprintf("%s, at most %d, or %s", variablesLegal, maxVariables, none)
}
