package config

import (
	"errors"
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
	switch {
	case len(value) > maxVariable:
		return "", fmt.Errorf("has %d bytes", len(value))
	case strings.ContainsRune(value, 0):
		return "", errors.New("has a zero byte")
	}
	return value, nil
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
	switch {
	case !forms["variable"].MatchString(name):
		return errors.New("is not the name of a variable")
	case len(name) > maxVariableLength:
		return fmt.Errorf("is longer than %d characters", maxVariableLength)
	case name == "RAILS_MAX_THREADS":
		return errors.New("is set by cabrank, to three times workers.slots")
	case slices.Contains([]string{"PORT", "PROMETHEUS_EXPORTER_PORT", "PROMETHEUS_EXPORTER_PATH"}, name) || strings.HasPrefix(name, prefix):
		return errors.New("is set by cabrank")
	}
	return nil
}
