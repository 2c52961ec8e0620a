package config

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// prefix is what the names of cabrank's own variables begin with.
const prefix = "CABRANK_"

// maxUnknown bounds the warnings of variables.
const maxUnknown = 20

// otherVariables are cabrank's beside those of keys: of other commands, of a process
// that takes over from another one, of the lab and of its tests.
func otherVariables() []string {
	return []string{
		"CABRANK_CONTROL", "CABRANK_TOKEN", "CABRANK_UPGRADE_FD",
		"CABRANK_LAB_NETWORK", "CABRANK_LAB_PROGRAM", "CABRANK_BIN", "CABRANK_AUTOBAHN", "CABRANK_PUSH_TOKEN",
	}
}

// workerVariable is given to each worker, with workersVariables beside it: they mean
// nothing to a cabrank that is not itself a worker or its hook.
const workerVariable = "CABRANK_WORKER"

func workersVariables() []string {
	return []string{
		"CABRANK_ADDR", workerVariable, "CABRANK_WORKER_INDEX", "CABRANK_WORKER_PID", "CABRANK_SLOTS",
		"CABRANK_THREADS", "CABRANK_METRICS_SOCKET", "CABRANK_HOOK",
	}
}

// testVariables begin the names of those that only tests have.
const testVariables = "CABRANK_TEST_"

// UnknownVariables returns a line for each variable of an environment that has
// cabrank's prefix and no meaning, at most maxUnknown. They are no faults, because
// the environment belongs to others too.
func UnknownVariables(environ []string) []string { return unknownVariables(parseEnviron(environ)) }

// namedVariables are those that the configuration names itself, with env:NAME.
func (c *Config) namedVariables() (names []string) {
	for _, source := range []string{c.Auth.Secret, c.Auth.Key, c.Socket.PushToken} {
		if name, found := strings.CutPrefix(source, "env:"); found {
			names = append(names, name)
		}
	}
	return names
}

func unknownVariables(environ map[string]string, named ...string) []string {
	known := append(otherVariables(), named...)
	if environ[workerVariable] != "" {
		known = append(known, workersVariables()...)
	}
	for _, key := range allKeys() {
		known = append(known, key.Env)
	}
	var warnings []string
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
	what := "is unknown"
	if slices.Contains(workersVariables(), name) {
		what = "is one that workers are given"
	}
	hint := ""
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
