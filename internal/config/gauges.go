package config

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
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

// perWorker is the word for metrics of which none is merged.
const perWorker = "per_worker"

// gauges is the kind of metrics.gauges, which decides two fields of *Metrics.
type gauges struct{ mapping[string] }

func (k gauges) set(field any, text string) error {
	metrics := field.(*Metrics)
	if metrics.PerWorker = text == perWorker; metrics.PerWorker {
		text = none
	}
	return k.mapping.set(&metrics.Gauges, text)
}

func (k gauges) setNode(field any, node *yaml.Node, at *outline) {
	metrics := field.(*Metrics)
	if metrics.PerWorker = node.Kind == yaml.ScalarNode && node.Value == perWorker; metrics.PerWorker {
		metrics.Gauges = nil
		return
	}
	k.mapping.setNode(&metrics.Gauges, node, at)
}

func (k gauges) show(field any) string {
	if field.(*Metrics).PerWorker {
		return perWorker
	}
	return k.mapping.show(&field.(*Metrics).Gauges)
}

func (k gauges) lines(field any) []line { return k.mapping.lines(&field.(*Metrics).Gauges) }

func (k gauges) allowed() string { return k.mapping.allowed() + ", or " + perWorker }

func (gauges) take(to, from any) {
	a, b := to.(*Metrics), from.(*Metrics)
	a.Gauges, a.PerWorker = b.Gauges, b.PerWorker
}
