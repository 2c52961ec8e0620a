package config

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
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
func checkVariable(name string) (string, error) {
	own := []string{"PORT", "PROMETHEUS_EXPORTER_PORT", "PROMETHEUS_EXPORTER_PATH"}
	return name, wrong("",
		flaw{!forms["variable"].MatchString(name), "is not the name of a variable"},
		flaw{len(name) > maxVariableLength, fmt.Sprintf("is longer than %d characters", maxVariableLength)},
		flaw{name == "RAILS_MAX_THREADS", "is set by cabrank, to three times workers.slots"},
		flaw{slices.Contains(own, name) || strings.HasPrefix(name, prefix), "is set by cabrank"})
}

const (
	// prefix is what the names of cabrank's own variables begin with, testVariables those that
	// only tests have.
	prefix        = "CABRANK_"
	testVariables = "CABRANK_TEST_"

	// otherVariables are cabrank's beside those of keys: of other commands, of a process that
	// takes over from another one, of the lab and of its tests.
	otherVariables = "CABRANK_CONTROL CABRANK_TOKEN CABRANK_PUSH_TOKEN CABRANK_UPGRADE_FD " +
		"CABRANK_LAB_NETWORK CABRANK_LAB_PROGRAM CABRANK_BIN CABRANK_AUTOBAHN"

	// workerVariable is given to each worker, with workersVariables beside it: they mean
	// nothing to a cabrank that is not itself a worker or its hook.
	workerVariable   = "CABRANK_WORKER"
	workersVariables = workerVariable + " CABRANK_ADDR CABRANK_WORKER_INDEX CABRANK_WORKER_PID CABRANK_SLOTS " +
		"CABRANK_THREADS CABRANK_METRICS_SOCKET CABRANK_HOOK"

	maxUnknown = 20 // warnings of variables
)

// unknownVariables returns a line for each variable of an environment that has
// cabrank's prefix and no meaning, at most maxUnknown. They are no faults, because
// the environment belongs to others too.
func (c *Config) unknownVariables(environ map[string]string) (warnings []string) {
	known := strings.Fields(otherVariables)
	if environ[workerVariable] != "" {
		known = append(known, strings.Fields(workersVariables)...)
	}
	for _, source := range []string{c.Auth.Secret, c.Auth.Key, c.Socket.PushToken} {
		known = append(known, strings.TrimPrefix(source, "env:")) // which the configuration names itself
	}
	for _, key := range allKeys() {
		known = append(known, key.Env)
	}
	for name, value := range environ {
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, testVariables) || slices.Contains(known, name) ||
			forms["service link"].MatchString(name) || strings.HasSuffix(name, "_PORT") && forms["port link"].MatchString(value) {
			continue
		}
		warnings = append(warnings, unknownVariable(name))
	}
	sort.Strings(warnings)
	if more := len(warnings) - maxUnknown + 1; more > 1 {
		warnings = append(warnings[:maxUnknown-1], fmt.Sprintf("%d more variables that begin with %s are unknown and have no effect", more, prefix))
	}
	return warnings
}

func unknownVariable(name string) string {
	what, hint := "is unknown", ""
	if slices.Contains(strings.Fields(workersVariables), name) {
		what = "is one that workers are given"
	}
	if now := whereMoved(name); now != "" {
		return "variable " + name + " has no effect: " + now
	}
	if len(name) > maxVariableLength {
		name = name[:maxVariableLength] + "..."
	} else if meant := meantVariable(name); meant != "" {
		hint = "; did you mean " + meant + "?"
	}
	return fmt.Sprintf("variable %s %s and has no effect%s", strings.Trim(strconv.Quote(name), `"`), what, hint)
}
