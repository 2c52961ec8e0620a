package config

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// maxVariable and maxVariableLength bound what workers get beside cabrank's own
	// environment, in bytes: each value, and its name.
	maxVariable       = 32 << 10
	maxVariableLength = 64

	variablesLegal = "names of letters, digits and _ that cabrank does not set itself"
)

// cleanVariable accepts what an environment can hold, and does not repeat what it cannot.
func cleanVariable(value string) (string, error) {
	return value, wrong("", flaw{len(value) > maxVariable, fmt.Sprintf("has %d bytes", len(value))}, flaw{strings.ContainsRune(value, 0), "has a zero byte"})
}

// variablePath names an entry, without the value where NAME=VALUE stands for a name.
func variablePath(key, name string) string {
	if name, _, found := strings.Cut(name, "="); found {
		return entryPath(key, name+"="+hidden)
	}
	return entryPath(key, name)
}

// checkVariable accepts names that shells can use and that are not taken.
func checkVariable(name string) error {
	own := []string{"PORT", "PROMETHEUS_EXPORTER_PORT", "PROMETHEUS_EXPORTER_PATH"}
	return wrong("",
		flaw{!forms["variable"].MatchString(name), "is not the name of a variable"},
		flaw{len(name) > maxVariableLength, fmt.Sprintf("is longer than %d characters", maxVariableLength)},
		flaw{name == "RAILS_MAX_THREADS", "is set by cabrank, to three times workers.slots"},
		flaw{slices.Contains(own, name) || strings.HasPrefix(name, prefix), "is set by cabrank"})
}
