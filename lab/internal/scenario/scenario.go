// Package scenario reads what `cabrank lab run` runs: a YAML file that says which ways
// to do something are compared, at which loads, how often, and which claim decides.
//
// Parse reads a file strictly, and tells all that is wrong with it: the keys are those of
// tags (package strictyaml). Builtin and Names give the scenarios that come with the
// program; they are files like any other. Scenario.Quick makes the short form of one.
//
// The words of the file:
//
//   - An arm is one way to do it: workers, what stands before them (the front), and how
//     clients connect.
//   - A load is one point: a rate, a number of callers, or calls at once; with what
//     happens meanwhile (events).
//   - A block is one run of one arm at one load. A round is one block of each.
//   - A claim names a figure, a load and two arms. The primary one decides.
//
// It starts nothing, and reads no file but its own. docs/lab-run.md explains the keys.
package scenario

import (
	"cmp"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/work"
)

// Scenario is what is compared with what.
//
// Shape: made by Parse and by Quick; nothing is missing, and every name that it uses is
// one of its own.
type Scenario struct {
	Name     string `key:"name,required"` // one word
	About    string `key:"about"`         // what it is, in a line
	Question string `key:"question"`      // what it answers
	Text     string // the file

	Method    string        `key:"method"`                     // package.Service/Method
	Data      string        `key:"data"`                       // its requests (package method)
	HTTP      HTTP          `key:"http"`                       // in place of both
	Messages  int           `key:"messages" range:"0..100000"` // in a call of a stream; 0: as in Data
	Proto     []string      `key:"proto"`                      // files, in place of reflection
	Imports   []string      `key:"import_path"`                // where they are looked up
	Metadata  []string      `key:"metadata"`                   // name:value, sent with each call
	WorkerKey string        `key:"worker_key"`                 // header or trailer that says who answered
	Seed      uint64        `key:"seed"`                       // draws arrivals, requests, order
	Rounds    int           `key:"rounds" range:"1..1000"`     // at each load that does not say otherwise
	Pause     time.Duration `key:"pause" range:"0s..24h"`      // between two blocks
	// Limit asks for the highest rate at which each arm has a smaller share of errors; 0
	// does not.
	Limit float64 `key:"limit" unit:"%" range:"0%..99%"`

	Arms  []Arm // in the order of the file, as the loads
	Loads []Load
	// Primary decides; nil if nothing is claimed. Secondary are corrected for their
	// number. Bars have to be held; a run that misses one fails.
	Primary   *result.Claim
	Secondary []result.Claim
	Bars      []result.Bar `key:"bars" items:"0..100"`
	Columns   []string     `key:"columns"` // of the table for a terminal; none: the usual ones
	IsQuick   bool         // this is a short form

	quick *Scenario
}

// HTTP is what callers ask a gateway for.
type HTTP struct {
	Path  string `key:"path,alone"` // with its query: see caller.Gateway; empty if calls are gRPC
	Ready string `key:"ready"`      // is answered with 200 when the gateway can work
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
	return find(s.Arms, func(a *Arm) bool { return a.Name == name })
}

// Load returns the load of a name, or nil.
func (s *Scenario) Load(name string) *Load {
	return find(s.Loads, func(l *Load) bool { return l.Name == name })
}

func find[T any](all []T, is func(*T) bool) *T {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
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

// Estimate is about how long the whole takes; what is simulated takes no time.
func (s *Scenario) Estimate() (sum time.Duration) {
	for i := range s.Loads {
		l := &s.Loads[i]
		for _, arm := range s.ArmsAt(l) {
			if s.Arms[arm].Front.Kind != FrontSimulated {
				sum += time.Duration(s.RoundsAt(l)) * (l.Expected() + s.Pause + s.Arms[arm].around())
			}
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
	less.Secondary = slices.DeleteFunc(slices.Clone(s.Secondary), func(c result.Claim) bool { return less.checkClaim(c) != nil })
	if s.Primary != nil && less.checkClaim(*s.Primary) != nil {
		less.Primary = nil
	}
	less.Bars = slices.DeleteFunc(slices.Clone(s.Bars), func(b result.Bar) bool { return less.Load(b.Load) == nil || less.Arm(b.Arm) == nil })
	return &less, nil
}

// examples stands in a file for the folder with the programs that come with the lab.
const examples = "{examples}"

// Places are what a file cannot know.
type Places struct {
	Examples string // the folder for {examples}: programs that come with the lab
	Cabrank  string // the program for {cabrank}
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

// Arm is one way to do it.
type Arm struct {
	Name  string `key:"name,required"`
	About string `key:"about"`
	// Optional arms are left out, with a line that says so, where the front or the
	// command is not installed.
	Optional bool    `key:"optional"`
	Workers  Workers `key:"workers"`
	Front    Front   `key:"front"`
	Client   Client  `key:"client"`
	Gateway  Gateway `key:"gateway"`
}

// Program is a worker that comes with the lab.
type Program string

// The programs. ProgramNone means a command.
const (
	ProgramNone   Program = ""
	ProgramWorker Program = "worker" // sleeps and computes as requests ask: package work
	ProgramEcho   Program = "echo"   // answers raw clients at the least cost: package rawh2
)

// Environ is what is added to an environment: NAME=value, sorted. A file has NAME: value.
type Environ []string

// Workers are the workers of an arm, all alike.
type Workers struct {
	// Program runs, or Command in Dir: words with {port}, {host}, {addr}, {slots},
	// {threads} (as many), {worker} and {index} in them, as `cabrank run` fills them in.
	Program Program  `key:"program" oneof:"worker|echo"`
	Command []string `key:"command" split:" "`
	Dir     string   `key:"dir"`
	// Try is a command that succeeds where Command can run, and Install says what to do
	// where it does not; both are empty if nothing is to be tried.
	Try     []string      `key:"try" split:" "`
	Install string        `key:"install"`
	Count   int           `key:"count,alone" range:"1..100"`               // when a block begins
	Port    int           `key:"port" range:"0..65000"`                    // of the first; 0: one that is free
	Slots   int           `key:"slots" range:"0..1000000"`                 // calls that each runs at a time
	Full    work.Full     `key:"full" oneof:"queue|keep|refuse|unlimited"` // what it does with more
	CPU     float64       `key:"cpu" range:"0..1000"`                      // cores of each, before scaling; 0: no quota
	Env     Environ       `key:"env"`
	Cores   string        `key:"cores"`                   // that all run on, as taskset counts; empty: all
	MaxAge  time.Duration `key:"max_age" range:"0s..24h"` // of connections; 0: no limit
}

// FrontKind is what stands between clients and workers.
type FrontKind string

// The fronts; docs/lab-run.md says what each is.
const (
	FrontNone       FrontKind = "none"
	FrontDNS        FrontKind = "dns"
	FrontDNAT       FrontKind = "dnat"
	FrontCabrank    FrontKind = "cabrank"
	FrontHAProxyTCP FrontKind = "haproxy-tcp"
	FrontHAProxy    FrontKind = "haproxy"
	FrontEnvoy      FrontKind = "envoy"
	FrontEnvoyWeb   FrontKind = "envoy-web" // with its filters for gRPC-Web and Connect
	FrontNginx      FrontKind = "nginx"
	// FrontSimulated has no processes: the same calls in virtual time, by Policy.
	FrontSimulated FrontKind = "simulated"
	FrontNghttpx   FrontKind = "nghttpx"
)

// Who ends TLS: the front, or a HAProxy that copies bytes to the front, which is a part of it
// to whoever counts.
const (
	TLSItself  = "itself"
	TLSHAProxy = "haproxy"
)

// Front is what clients connect to.
type Front struct {
	Kind FrontKind `key:"kind,alone" oneof:"none|dns|dnat|cabrank|haproxy-tcp|haproxy|envoy|envoy-web|nginx|nghttpx|simulated"`
	// Policy is how it chooses a worker, in its own words, such as LEAST_REQUEST;
	// empty is its default.
	Policy string   `key:"policy"`
	Flags  []string `key:"flags" split:" "`     // added to the command line of cabrank
	Env    Environ  `key:"env"`                 // added to its environment
	Starts bool     `key:"starts"`              // cabrank starts the workers, in place of being told of them
	CPU    float64  `key:"cpu" range:"0..1000"` // cores, before scaling; 0: no quota
	// TLS is who ends that of raw clients: the front itself, or a HAProxy before it, which
	// counts as a part of it; empty: they have none.
	TLS   string        `key:"tls" oneof:"itself|haproxy"`
	TTL   time.Duration `key:"ttl" range:"0s..24h"` // of the records of the name server, in whole seconds
	Cores string        `key:"cores"`               // as those of workers
}

// Client is how calls get out.
type Client struct {
	Connections caller.Strategy `key:"connections,alone"`
	// Processes is how many generators there are; more are used where descriptors ask for it.
	Processes int `key:"processes" range:"1..64"`
	// DNSInterval is how often grpc-go asks a name server at most; 0 is its default.
	DNSInterval time.Duration `key:"dns_interval" range:"0s..24h"`
	// Raw says that calls are made at the least cost; the data of the load says how many
	// connections there are: package rawh2.
	Raw   bool       `key:"raw"`
	Cores string     `key:"cores"`   // those that generators run on, as taskset counts; empty: all
	Way   caller.Way `key:",inline"` // how calls are written
}

// Gateway is a program that makes the gRPC calls for callers who speak HTTP to it. It is
// started behind the front, and ends with the block.
type Gateway struct {
	// Command runs, in Dir: words with {target} in them, which is what it has to call,
	// and {addr}, {host} and {port}, where it has to listen. PORT is in its environment.
	// It is empty if there is none. Env has the same words in it.
	Command []string `key:"command" split:" "`
	Dir     string   `key:"dir"`
	Env     Environ  `key:"env"`
}
