package config

import (
	"github.com/cabrank/cabrank/internal/scrape"
	"github.com/cabrank/cabrank/internal/strictyaml"
)

// maxGauges bounds the gauges with a policy of their own.
const maxGauges = 1000

// gaugePolicies are what becomes of gauges, by name.
func gaugePolicies() mapping {
	return mapping{
		max: maxGauges, legal: "names of metrics, in which * stands for any letters,", clean: named("gauge", "%s is no name of a metric"), path: entryPath,
		form: "key: policy", all: "policies", value: words(scrape.Sum, scrape.Max, scrape.Min, scrape.Avg, scrape.Last, scrape.Each),
	}
}

// perWorker is the word for metrics of which none is merged.
const perWorker = "per_worker"

// Gauges is how gauges of several workers are merged.
type Gauges struct {
	Policies  map[string]scrape.Policy // by name of the gauge, in which * stands for any letters
	PerWorker bool                     // nothing is merged, whatever it is
}

// gauges is the kind of *Gauges fields.
type gauges struct{ nested }

func (k gauges) setNode(field any, n strictyaml.Node, at places) {
	into := field.(*Gauges)
	if into.PerWorker = n.Alone() && n.Value() == perWorker; into.PerWorker {
		into.Policies = nil
		return
	}
	k.nested.setNode(&into.Policies, n, at)
}

func (k gauges) show(field any) string {
	if field.(*Gauges).PerWorker {
		return perWorker
	}
	return k.nested.show(&field.(*Gauges).Policies)
}

func (k gauges) linesOf(field any) []line { return k.nested.linesOf(&field.(*Gauges).Policies) }

func (k gauges) allowed() string { return k.legal + ", or " + perWorker }
