package config

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cabrank/cabrank/internal/scrape"
)

const (
	// maxGauges bounds the gauges with a policy of their own.
	maxGauges = 1000
	// maxGaugeName bounds their names.
	maxGaugeName = 200
)

// gaugePolicies are what becomes of gauges, by name.
func gaugePolicies() mapping[scrape.Policy] {
	return mapping[scrape.Policy]{
		max: maxGauges, legal: "names of metrics, in which * stands for any letters,", clean: checkGauge, path: entryPath,
		form: "key: policy", all: "policies", value: words[scrape.Policy]{scrape.Sum, scrape.Max, scrape.Min, scrape.Avg, scrape.Last, scrape.Each},
	}
}

func checkGauge(name string) error {
	odd := strings.IndexFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_:*", c)
	})
	if name == "" || len(name) > maxGaugeName || odd >= 0 {
		return errors.New(quote(name) + " is no name of a metric")
	}
	return nil
}

// perWorker is the word for metrics of which none is merged.
const perWorker = "per_worker"

// Gauges is how gauges of several workers are merged.
type Gauges struct {
	Policies  map[string]scrape.Policy // by name of the gauge, in which * stands for any letters
	PerWorker bool                     // nothing is merged, whatever it is
}

// gauges is the kind of *Gauges fields.
type gauges struct{ mapping[scrape.Policy] }

func (k gauges) set(field any, text string) error {
	into := field.(*Gauges)
	if into.PerWorker = text == perWorker; into.PerWorker {
		text = none
	}
	return k.mapping.set(&into.Policies, text)
}

func (k gauges) setNode(field any, node *yaml.Node, at *outline) {
	if node.Kind == yaml.ScalarNode && node.Value == perWorker {
		*field.(*Gauges) = Gauges{PerWorker: true}
		return
	}
	into := Gauges{}
	if k.mapping.setNode(&into.Policies, node, at); len(at.faults) == 0 {
		*field.(*Gauges) = into
	}
}

func (k gauges) show(field any) string {
	if field.(*Gauges).PerWorker {
		return perWorker
	}
	return k.mapping.show(&field.(*Gauges).Policies)
}

func (k gauges) lines(field any) []line { return k.mapping.lines(&field.(*Gauges).Policies) }

func (k gauges) allowed() string { return k.mapping.allowed() + ", or " + perWorker }
