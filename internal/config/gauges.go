package config

import (
	"errors"
	"strings"
)

const (
	// maxGauges bounds the gauges with a policy of their own.
	maxGauges = 1000
	// maxGaugeName bounds their names.
	maxGaugeName = 200
)

// gaugePolicies are what becomes of gauges, by name.
func gaugePolicies() mapping[string] {
	return mapping[string]{
		maxGauges, "names of metrics, in which * stands for any letters,", cleanGauge, entryPath,
		"policy", "policies", oneOf{words: []string{"sum", "max", "min", "avg", "last", "each"}},
	}
}

func cleanGauge(name string) (string, error) {
	odd := strings.IndexFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_:*", c)
	})
	if name == "" || len(name) > maxGaugeName || odd >= 0 {
		return "", errors.New(quote(name) + " is no name of a metric")
	}
	return name, nil
}
