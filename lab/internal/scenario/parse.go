package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/strictyaml"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/work"
)

// file is what stands in one. What the top level has of an arm is where each arm begins.
type file struct {
	Scenario `key:",inline"`

	Values    strictyaml.Node   `key:"values"` // filled in before
	Workers   Workers           `key:"workers"`
	Front     Front             `key:"front"`
	Client    Client            `key:"client"`
	Gateway   Gateway           `key:"gateway"`
	Arms      []strictyaml.Node `key:"arms,required" items:"1..100"`
	EveryLoad strictyaml.Node   `key:"every_load"`
	Loads     []strictyaml.Node `key:"loads,required" items:"1..200"`
	Primary   strictyaml.Node   `key:"primary"`
	Secondary []strictyaml.Node `key:"secondary" items:"0..999"`
	Short     short             `key:"quick"`
}

// short is what changes with --quick.
type short struct {
	Rounds   int           `key:"rounds" range:"1..1000"`
	Duration time.Duration `key:"duration" range:"0s..24h"`
	Warmup   time.Duration `key:"warmup" range:"0s..24h"`
	Arms     []string      `key:"arms"`
	Loads    []string      `key:"loads"`
}

// Parse reads a scenario. name is where the text is from, for errors. set has other numbers for
// some of the file's values, by name; they are put before the text of the scenario as a comment.
//
// Errors: strictyaml.Faults, a line for each.
func Parse(name string, text []byte, set map[string]string) (*Scenario, error) {
	root := strictyaml.Read(name, text)
	f := file{
		Scenario: Scenario{Text: string(text), Method: "cabrank.lab.v1.Worker/Work", Data: "{}", WorkerKey: "x-worker", Seed: 1, Rounds: 10},
		Workers:  Workers{Program: ProgramWorker, Count: 1, Full: work.Unlimited},
		Front:    Front{Kind: FrontNone},
		Client:   Client{Connections: caller.Single, Processes: 1},
		Short:    short{Rounds: 2},
	}
	if root.Err() == nil && !root.Given() {
		root.Fault("", "the file is empty; `cabrank lab show connections` prints one to copy", "")
	}
	f.fillIn(root, set)
	root.Decode(&f)
	f.join(root)
	if err := root.Err(); err != nil {
		return nil, err
	}
	return &f.Scenario, nil
}

// fillIn puts the numbers that have names in a file where these stand: {name}.
func (f *file) fillIn(root strictyaml.Node, set map[string]string) {
	values := map[string]int{}
	root.Get("values").Decode(&values, `range:"0..999999999"`)
	var pairs []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(set))) {
		number, err := strconv.Atoi(set[name])
		if _, known := values[name]; !known {
			root.Fault("", noSuch("value", name, slices.Sorted(maps.Keys(values))).Error(), "")
		} else if err != nil || number < 0 || len(set[name]) > 9 {
			root.Fault("", fmt.Sprintf("%s=%.40s: want a whole number of up to 9 digits", name, set[name]), "")
		}
		f.Text = fmt.Sprintf("# ran with %s=%s\n%s", name, set[name], f.Text)
		pairs = append(pairs, "{"+name+"}", set[name])
	}
	for name, number := range values { // of two that are alike the first counts
		pairs = append(pairs, "{"+name+"}", strconv.Itoa(number))
	}
	root.Replace(strings.NewReplacer(pairs...).Replace)
}

// join makes the arms, the loads with their short form, and the claims.
func (f *file) join(root strictyaml.Node) {
	s := &f.Scenario
	right := root.Err() == nil // only then parts can be held against each other
	for _, n := range f.Arms {
		arm := Arm{Workers: f.Workers, Front: f.Front, Client: f.Client, Gateway: f.Gateway}
		if n.Decode(&arm) && right {
			if err := arm.check(s); err != nil {
				n.Fault("", fmt.Sprintf("arm %q: %v", arm.Name, err), "")
			}
		}
		s.Arms = append(s.Arms, arm)
	}
	shorter := f.loads(root.Err() == nil)
	right = root.Err() == nil
	for _, n := range slices.Concat([]strictyaml.Node{f.Primary}, f.Secondary) {
		c := result.Claim{Primary: n == f.Primary}
		if !n.Given() || !n.Decode(&c) {
			continue
		}
		if err := s.checkClaim(c); right && err != nil {
			n.Fault("", err.Error(), "")
		}
		if c.Primary {
			s.Primary = &c
		} else {
			s.Secondary = append(s.Secondary, c)
		}
	}
	if root.Err() == nil {
		s.checkBars(root)
		f.shortForm(root.Get("quick"), shorter)
	}
}

// loads makes the loads, and returns those of the short form.
func (f *file) loads(right bool) (shorter []Load) {
	var common row
	common.read(f.EveryLoad, &common)
	for _, n := range f.Loads {
		one := entry{row: common}
		if !one.read(n, &one) {
			continue
		}
		brief := one.row
		brief.shorten(f.Short)
		if !f.check(n, "", one.expand(n), right, &f.Scenario.Loads) {
			continue
		}
		if one.Quick.Given() && brief.read(one.Quick, &brief) {
			n = one.Quick
		}
		f.check(n, "with --quick: ", brief.expand(n), right, &shorter)
	}
	return shorter
}

// check holds the loads of an entry against the rest, and appends them.
func (f *file) check(n strictyaml.Node, when string, all []Load, right bool, into *[]Load) bool {
	for _, l := range all {
		err := l.check(&f.Scenario)
		if slices.Contains(loadNames(*into), l.Name) {
			err = errors.New("it is the name of another load, too")
		} else if len(*into) == result.MostLoads {
			err = fmt.Errorf("at most %d loads are possible", result.MostLoads)
		}
		if right && err != nil {
			n.Fault("", fmt.Sprintf("%sload %q: %v", when, l.Name, err), "")
			return false
		}
		*into = append(*into, l)
	}
	return len(all) > 0
}

// shortForm is what there is of the scenario with --quick.
func (f *file) shortForm(n strictyaml.Node, loads []Load) {
	quick := f.Scenario
	quick.IsQuick, quick.Rounds, quick.Loads = true, min(f.Short.Rounds, f.Rounds), nil
	for _, l := range loads {
		if len(f.Short.Loads) == 0 || slices.Contains(f.Short.Loads, l.Name) {
			quick.Loads = append(quick.Loads, l)
		}
	}
	for _, name := range f.Short.Loads {
		if quick.Load(name) == nil {
			n.Fault("loads", noSuch("load", name, loadNames(loads)).Error(), "")
		}
	}
	arms := f.Short.Arms
	if len(arms) == 0 {
		arms = armNames(&quick)
	}
	var err error
	if f.quick, err = quick.Only(arms); err != nil {
		n.Fault("arms", err.Error(), "")
	}
}

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
