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

// Parse reads a scenario. name is where the text is from, for errors. set has other
// numbers for some of the file's values, by name; they are put before the text of the
// scenario as a comment.
//
// Errors: strictyaml.Faults, a line for each.
func Parse(name string, text []byte, set map[string]string) (*Scenario, error) {
	root := strictyaml.Read(name, text)
	f := file{
		Scenario: Scenario{Text: string(text), Method: "cabrank.lab.v1.Worker/Work", Data: "{}", WorkerKey: "x-worker", Seed: 1, Rounds: 10},
		Workers:  Workers{Program: ProgramWorker, Count: 1, Full: FullUnlimited},
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
