package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// row is an entry of the list of loads: one load, or several that differ in one key.
type row struct {
	Load `key:",inline"`

	Rates   []string `items:"1..200" key:"rate"`
	Callers []int    `items:"1..200" key:"callers" range:"1..100000"`
	Volleys []int    `items:"1..200" key:"at_once" range:"1..1000000"`
	Takes   product  `key:"takes"`
}

// entry is a row with what is different in the short form.
type entry struct {
	row `key:",inline"`

	Quick strictyaml.Node `key:"quick"`
}

// product is a time, or how often it is taken: 25ms, or 200x25ms.
type product time.Duration

// longest is how long anything may take.
const longest = 24 * time.Hour

// UnmarshalText reads a product.
func (p *product) UnmarshalText(text []byte) error {
	times, each, found := strings.Cut(string(text), "x")
	if !found {
		times, each = "1", times
	}
	n, err := strconv.Atoi(times)
	d, wrong := time.ParseDuration(each)
	if err != nil || wrong != nil || n < 0 || d < 0 || d > longest || n > 0 && d > 365*longest/time.Duration(n) {
		return fmt.Errorf("%.40q: want a time such as 10s, or 200x25ms", text)
	}
	*p = product(time.Duration(n) * d)
	return nil
}

// read fills a row; what n does not say stays, but for when calls start.
func (r *row) read(n strictyaml.Node, into any) bool {
	given := func(key string) bool { return n.Get(key).Given() }
	if slices.ContainsFunc([]string{"rate", "callers", "at_once", "stages"}, given) {
		r.Rates, r.Callers, r.Volleys, r.Options.Stages = nil, nil, nil, ""
	}
	right := n.Decode(into)
	if given("method") {
		checkMethod(n, r.Method)
	}
	if r.Load.Takes = time.Duration(r.Takes); given("takes") && !given("duration") {
		r.Options.Duration = min(takesLonger*r.Load.Takes, longest)
	}
	r.Events = slices.SortedStableFunc(slices.Values(r.Events), func(a, b Event) int { return int(a.At - b.At) })
	return right
}

// shorten gives a row another length, if it has no moments of its own.
func (r *row) shorten(q short) {
	o := &r.Options
	piece := func(rate string) bool { return strings.Contains(rate, ":") }
	timed := slices.ContainsFunc(r.Rates, piece) || o.Stages != "" || len(r.Events) > 0 || o.Calls > 0
	if q.Duration > 0 && !timed {
		o.Duration = q.Duration
	}
	if q.Warmup > 0 {
		o.Warmup = min(o.Warmup, q.Warmup)
	}
	r.Rounds = min(r.Rounds, q.Rounds)
}

// expand makes one load of each item of a row.
func (r *row) expand(n strictyaml.Node) (all []Load) {
	given := slices.DeleteFunc([]starts{
		{len(r.Rates), func(l *Load, i int) { l.Options.Rate = r.Rates[i] }},
		{len(r.Callers), func(l *Load, i int) { l.Options.Callers = r.Callers[i] }},
		{len(r.Volleys), func(l *Load, i int) { l.AtOnce = r.Volleys[i] }},
		{min(len(r.Options.Stages), 1), func(*Load, int) {}},
	}, func(s starts) bool { return s.items == 0 })
	if len(given) != 1 {
		n.Fault("", "does not say when calls start, or says it twice", "one of rate, at_once (open loops), callers and stages (closed loops)")
		return nil
	}
	for i := range given[0].items {
		l := r.Load
		given[0].set(&l, i)
		switch {
		case l.Name == "":
			l.Name = l.named()
		case given[0].items > 1:
			l.Name += " " + l.named()
		}
		all = append(all, l)
	}
	return all
}

// starts is a way to say when calls start: how many loads it makes, and of what.
type starts struct {
	items int
	set   func(l *Load, item int)
}
