package scenario

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/result"
)

// Scenario is what is compared with what.
//
// Shape: made by Parse and by Quick; nothing is missing, and every name that it uses is
// one of its own.
type Scenario struct {
	// Name is one word; About says in a line what it is, Question what it answers.
	Name     string `key:"name,required"`
	About    string `key:"about"`
	Question string `key:"question"`
	// Text is the file.
	Text string
	// Method is package.Service/Method, Data its requests (package method).
	Method string `key:"method"`
	Data   string `key:"data"`
	// HTTP is what callers ask a gateway for, in place of Method and Data.
	HTTP HTTP `key:"http"`
	// Messages is how many messages callers send in each call of a stream; 0 for as
	// many as Data lists.
	Messages int `key:"messages" range:"0..100000"`
	// Proto are .proto files that describe the method, in place of reflection; Imports
	// are the folders in which they are looked up.
	Proto   []string `key:"proto"`
	Imports []string `key:"import_path"`
	// Metadata is sent with each call, as name:value.
	Metadata []string `key:"metadata"`
	// WorkerKey is the header or trailer that names who has answered.
	WorkerKey string `key:"worker_key"`
	// Seed draws arrivals, requests and the order of the arms.
	Seed uint64 `key:"seed"`
	// Rounds is how many blocks each arm has at each load that does not say otherwise.
	Rounds int `key:"rounds" range:"1..1000"`
	// Limit asks for the highest rate at which each arm has a smaller share of errors; 0
	// does not.
	Limit float64 `key:"limit" unit:"%" range:"0%..99%"`
	// Pause is how long nothing happens between two blocks.
	Pause time.Duration `key:"pause" range:"0s..24h"`
	// Arms and Loads are in the order of the file.
	Arms  []Arm
	Loads []Load
	// Primary decides; nil if nothing is claimed. Secondary are corrected for their
	// number.
	Primary   *result.Claim
	Secondary []result.Claim
	// Bars have to be held; a run that misses one fails.
	Bars []result.Bar `key:"bars" items:"0..100"`
	// Columns are the figures of the table for a terminal; none: those that people look
	// at first.
	Columns []string `key:"columns"`
	// IsQuick says that this is a short form.
	IsQuick bool

	quick *Scenario
}

// HTTP is what callers ask a gateway for.
type HTTP struct {
	// Path is what is asked for, with its query: see caller.Gateway. It is empty
	// if calls are gRPC.
	Path string `key:"path,alone"`
	// Ready is answered with 200 when the gateway can work.
	Ready string `key:"ready"`
}

// Claims returns all claims, the primary one first.
func (s *Scenario) Claims() []result.Claim {
	if s.Primary == nil {
		return slices.Clone(s.Secondary)
	}
	return append([]result.Claim{*s.Primary}, s.Secondary...)
}

// Arm returns the arm of a name, or nil.
func (s *Scenario) Arm(name string) *Arm {
	for i := range s.Arms {
		if s.Arms[i].Name == name {
			return &s.Arms[i]
		}
	}
	return nil
}

// Load returns the load of a name, or nil.
func (s *Scenario) Load(name string) *Load {
	for i := range s.Loads {
		if s.Loads[i].Name == name {
			return &s.Loads[i]
		}
	}
	return nil
}

// ArmsAt returns the numbers of the arms that run at a load, in the order of the file.
func (s *Scenario) ArmsAt(l *Load) (arms []int) {
	for i := range s.Arms {
		if len(l.Arms) == 0 || slices.Contains(l.Arms, s.Arms[i].Name) {
			arms = append(arms, i)
		}
	}
	return arms
}

// CallAt is what is called at a load. Requests of one method are none for another.
func (s *Scenario) CallAt(l *Load) (method, data string, messages int) {
	method, data, messages = s.Method, s.Data, s.Messages
	if l.Method != "" {
		method, data, messages = l.Method, "", 0
	}
	return method, cmp.Or(l.Data, data), cmp.Or(l.Messages, messages)
}

// RoundsAt is how many blocks each arm has at a load.
func (s *Scenario) RoundsAt(l *Load) int { return cmp.Or(l.Rounds, s.Rounds) }

// SetRounds gives every load so many rounds.
func (s *Scenario) SetRounds(n int) {
	s.Rounds = n
	s.Loads = slices.Clone(s.Loads)
	for i := range s.Loads {
		s.Loads[i].Rounds = 0
	}
}

// Blocks is how many runs there are.
func (s *Scenario) Blocks() (n int) {
	for i := range s.Loads {
		n += len(s.ArmsAt(&s.Loads[i])) * s.RoundsAt(&s.Loads[i])
	}
	return n
}

// around is about what it takes to start and stop the processes of a block: programs of
// others load their libraries first, on the CPU that they have.
func (a *Arm) around() time.Duration {
	const each = 500 * time.Millisecond
	sum := each
	if len(a.Workers.Command) > 0 {
		sum += time.Duration(float64(each) / min(cmp.Or(a.Workers.CPU, 1), 1))
	}
	if len(a.Gateway.Command) > 0 {
		sum += each
	}
	return sum
}

// Estimate is about how long the whole takes.
func (s *Scenario) Estimate() (sum time.Duration) {
	for i := range s.Loads {
		l := &s.Loads[i]
		for _, arm := range s.ArmsAt(l) {
			sum += time.Duration(s.RoundsAt(l)) * (l.Expected() + s.Pause + s.Arms[arm].around())
		}
	}
	return sum
}

// Quick returns the short form: fewer rounds, arms and loads, and shorter ones, as the
// file says. Claims on what is not in it are left out.
func (s *Scenario) Quick() *Scenario {
	if s.quick == nil {
		return s
	}
	quick := *s.quick
	return &quick
}

// has reports whether all that a claim names is there.
func (s *Scenario) has(c result.Claim) bool { return s.checkClaim(c) == nil }

// Only returns the scenario with some of its arms. Loads at which none of them runs, and
// claims on others, are left out.
//
// Errors: an arm that there is not; no load is left.
func (s *Scenario) Only(arms []string) (*Scenario, error) {
	less := *s
	less.Arms, less.Loads = nil, nil
	for _, name := range arms {
		if s.Arm(name) == nil {
			return nil, noSuch("arm", name, armNames(s))
		}
	}
	for _, a := range s.Arms {
		if slices.Contains(arms, a.Name) {
			less.Arms = append(less.Arms, a)
		}
	}
	for _, l := range s.Loads {
		all := len(l.Arms) == 0
		l.Arms = slices.DeleteFunc(slices.Clone(l.Arms), func(name string) bool { return less.Arm(name) == nil })
		if all || len(l.Arms) > 0 {
			less.Loads = append(less.Loads, l)
		}
	}
	if len(less.Loads) == 0 {
		return nil, fmt.Errorf("%s: there is no load for it", strings.Join(arms, ", "))
	}
	less.Secondary = slices.DeleteFunc(slices.Clone(s.Secondary), func(c result.Claim) bool { return !less.has(c) })
	if s.Primary != nil && !less.has(*s.Primary) {
		less.Primary = nil
	}
	less.keepBars()
	return &less, nil
}

// examples stands in a file for the folder with the programs that come with the lab.
const examples = "{examples}"

// Places are what a file cannot know.
type Places struct {
	// Examples is the folder for {examples}: programs that come with the lab.
	Examples string
	// Cabrank is the program for {cabrank}: this one.
	Cabrank string
}

// NeedsExamples reports whether {examples} stands anywhere in the file.
func (s *Scenario) NeedsExamples() bool { return strings.Contains(s.Text, examples) }

// Placed returns the scenario with the places filled in: in commands and what is tried
// before them, in their folders and environment, in the flags of fronts, and in the
// names of .proto files and of their folders.
func (s *Scenario) Placed(p Places) *Scenario {
	fill := strings.NewReplacer(examples, p.Examples, "{cabrank}", p.Cabrank)
	each := func(texts []string) (filled []string) {
		for _, text := range texts {
			filled = append(filled, fill.Replace(text))
		}
		return filled
	}
	placed := *s
	placed.Proto, placed.Imports, placed.Arms = each(s.Proto), each(s.Imports), nil
	for _, a := range s.Arms {
		w := &a.Workers
		w.Command, w.Try, w.Env, w.Dir = each(w.Command), each(w.Try), each(w.Env), fill.Replace(w.Dir)
		a.Front.Flags, a.Front.Env = each(a.Front.Flags), each(a.Front.Env)
		g := &a.Gateway
		g.Command, g.Env, g.Dir = each(g.Command), each(g.Env), fill.Replace(g.Dir)
		placed.Arms = append(placed.Arms, a)
	}
	return &placed
}

//go:embed files/*.yml
var files embed.FS

const suffix = ".yml"

// Names are the names of the scenarios that come with the program, sorted.
func Names() (all []string) {
	entries, _ := files.ReadDir("files") // it is in the program
	for _, e := range entries {
		all = append(all, strings.TrimSuffix(e.Name(), suffix))
	}
	slices.Sort(all)
	return all
}

// Text returns the file of a scenario that comes with the program.
//
// Errors: one line that lists what there is.
func Text(name string) ([]byte, error) {
	text, err := files.ReadFile(path.Join("files", name+suffix))
	if err != nil {
		return nil, fmt.Errorf("%w (`cabrank lab list`; a file ends in %s)", noSuch("scenario", name, Names()), suffix)
	}
	return text, nil
}

// Builtin returns a scenario that comes with the program, with other values: see Parse.
//
// Errors: as those of Text and Parse.
func Builtin(name string, set map[string]string) (*Scenario, error) {
	text, err := Text(name)
	if err != nil {
		return nil, err
	}
	return Parse(name+suffix, text, set)
}
