package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/stats"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// whole has every key.
const whole = `
name: all-keys
about: every key
question: are they read?
method: demo.Jobs/GetJob
data: '{"id": 1}'
messages: 2
proto: [jobs.proto]
import_path: [proto]
metadata: ["a: b"]
worker_key: x-who
seed: 7
rounds: 12
limit: 1%
pause: 1s
workers:
  program: worker
  count: 3
  slots: 5
  full: refuse
  cpu: 0.25
  env: {B: 2, A: one}
  max_age: 1m
front: dns
client: {connections: round-robin, processes: 2, dns_interval: 1s}
arms:
  - name: as it is
  - name: other
    about: another way
    optional: true
    workers: {command: "ruby worker.rb --port {port}", dir: examples, count: 2, try: [ruby, -e, require "grpc"], install: gem install grpc}
    front: {kind: cabrank, policy: first, flags: --queue 10, starts: true, env: {A: "1"}, cpu: 1.5}
    client: {connections: per-call, protocol: connect, codec: json, http: 1.1}
every_load: {duration: 20s, warmup: 1s, timeout: 300ms}
loads:
  - name: steps
    rate: [100, 500/s]
    arrivals: poisson
    max_in_flight: 50
    processes: 4
  - callers: 60
    think: 10ms
    retry_at_once: true
    grace: 1s
    workers: 6
    rounds: 5
    arms: [as it is]
    method: demo.Jobs/ListJobs
    data: '{"page": 1}'
    events:
      - {at: 9s, do: roll}
      - {at: 2s, do: stop, worker: 3, for: 1500ms}
      - {at: 3s, do: slow, worker: all, for: 1s, times: 3}
      - {at: 4s, do: add}
      - {at: 5s, do: kill, worker: 7}
      - {at: 6s, do: remove}
      - {at: 7s, do: burst, for: 1s, more: 100}
  - at_once: 10
    every: 1s
    quick: {at_once: [5, 6]}
  - stages: 30s:30,1m:60,20s:0
    duration: 0s
    quick: {stages: "1s:30"}
primary: {figure: p99, load: steps 100/s, base: as it is, other: other, margin: 5%}
secondary:
  - {figure: errors, load: 10 at once, base: as it is, other: other}
quick: {rounds: 3, duration: 2s, warmup: 500ms, loads: [steps 100/s, 5 at once, 60 callers, "stages 1s:30"]}
`

func parsed(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse("x.yml", []byte(text), nil)
	testkit.Must(t, err)
	return s
}

func TestParse(t *testing.T) {
	s := parsed(t, whole)
	if s.Name != "all-keys" || s.Method != "demo.Jobs/GetJob" || s.Seed != 7 || s.Rounds != 12 || s.Pause != time.Second || s.Limit != 0.01 ||
		s.WorkerKey != "x-who" || s.Messages != 2 || s.Metadata[0] != "a: b" || s.Proto[0] != "jobs.proto" {
		t.Errorf("read as %+v", s)
	}
	a := s.Arms[0]
	if a.Workers.Count != 3 || a.Workers.Slots != 5 || a.Workers.Full != "refuse" || a.Workers.CPU != 0.25 ||
		!slices.Equal(a.Workers.Env, []string{"A=one", "B=2"}) || a.Workers.MaxAge != time.Minute {
		t.Errorf("the first arm: %+v", a)
	}
	testkit.Want(t, a.Client == (Client{Connections: caller.RoundRobin, Processes: 2, DNSInterval: time.Second}) && a.Front.Kind == FrontDNS,
		"the first arm: %+v", a)
	b := s.Arms[1]
	if !b.Optional || b.Workers.Program != ProgramNone || len(b.Workers.Command) != 4 || b.Workers.Count != 2 || !b.Front.Starts ||
		b.Client.Way != (caller.Way{Protocol: "connect", Codec: "json", HTTP: "1.1"}) || b.Front.CPU != 1.5 || b.Client.Connections != caller.PerCall || b.Client.Processes != 2 {
		t.Errorf("the second arm: %+v", b)
	}
	testkit.Equal(t, strings.Join(loadNames(s.Loads), ", "), "steps 100/s, steps 500/s, 60 callers, 10 at once, stages 30s:30,1m:60,20s:0",
		"loads")
	testkit.Want(t, len(s.ArmsAt(&s.Loads[2])) == 1 && len(s.ArmsAt(&s.Loads[0])) == 2 && s.Blocks() == 8*12+5, "%d blocks", s.Blocks())
	if method, data, messages := s.CallAt(&s.Loads[2]); method != "demo.Jobs/ListJobs" || data != `{"page": 1}` || messages != 0 {
		t.Errorf("a load of its own calls %s with %s, %d messages", method, data, messages)
	}
	if method, data, messages := s.CallAt(&s.Loads[0]); method != s.Method || data != s.Data || messages != 2 {
		t.Errorf("another one calls %s with %s, %d messages", method, data, messages)
	}
	testkit.Want(t, s.Primary.Margin == 0.05 && len(s.Claims()) == 2, "claims: %+v", s.Claims())
}

func TestQuick(t *testing.T) {
	s := parsed(t, whole).Quick()
	testkit.Equal(t, strings.Join(loadNames(s.Loads), ", "), "steps 100/s, 60 callers, 5 at once, stages 1s:30", "loads")
	testkit.Want(t, s.Rounds == 3 && s.IsQuick && s.Primary != nil && len(s.Secondary) == 0, "%d rounds, claims %+v", s.Rounds, s.Claims())
}

func TestOnly(t *testing.T) {
	s, err := parsed(t, whole).Only([]string{"other"})
	if err != nil || len(s.Arms) != 1 || len(s.Claims()) != 0 || strings.Join(loadNames(s.Loads), ", ") != "steps 100/s, steps 500/s, 10 at once, stages 30s:30,1m:60,20s:0" {
		t.Errorf("%v, %d arms, claims %+v, loads %s", err, len(s.Arms), s.Claims(), strings.Join(loadNames(s.Loads), ", "))
	}
	if s, err := parsed(t, whole).Only([]string{"other", "as it is"}); err != nil || len(s.Claims()) != 2 || len(s.Loads) != 5 {
		t.Errorf("%v, of all arms %d loads are left", err, len(s.Loads))
	}
	_, err = parsed(t, whole).Only([]string{"another"})
	testkit.RefusedBy(t, err, `there is no arm "another"; did you mean other? There are: as it is, other`)
}

// fault is a change of a scenario's text, and what is said of it.
type fault struct{ old, other, want string }

func (f fault) check(t *testing.T, good string) {
	t.Helper()
	text := strings.Replace(good, f.old, f.other, 1)
	testkit.Need(t, text != good, "%q is not in the text", f.old)
	_, err := Parse("x.yml", []byte(text), nil)
	testkit.Want(t, err != nil && strings.Contains(err.Error()+"\n", f.want), "%q for %q: %v, want %s", f.other, f.old, err, f.want)
}

func TestFaults(t *testing.T) {
	for _, c := range []fault{
		{"seed: 7", "sed: 7", `x.yml:12: sed: unknown key; did you mean seed?`},
		{"  slots: 5", "  slotz: 5", `x.yml:19: workers.slotz: unknown key; did you mean slots?`},
		{"rounds: 12", "rounds: 0", `x.yml:13: rounds: "0" is out of range; allowed: 1 to 1000`},
		{"pause: 1s", "pause: 1", `x.yml:15: pause: "1" has no unit, as in 1s; allowed: 0s to 24h`},
		{"front: dns", "front: dsn", `x.yml:24: front: "dsn" is unknown; did you mean dns? allowed: none, dns, dnat, cabrank, haproxy-tcp,`},
		{"full: refuse", "full: refuze", `x.yml:20: workers.full: "refuze" is unknown; did you mean refuse? allowed: queue, keep, refuse, unlimited`},
		{"name: all-keys", "name: All keys", `x.yml:2: name: "All keys" is not one word; allowed: one word of small letters, digits and hyphens`},
		{"method: demo.Jobs/GetJob", "method: GetJob", `x.yml:5: method: "GetJob" is no method; allowed: package.Service/Method`},
		{"connections: per-call", "connections: per-cal", `connections "per-cal": want single, per-call, round-robin or a number`},
		{"protocol: connect", "protocol: conect", `x.yml:33: arms[2].client.protocol: "conect" is unknown; did you mean connect? allowed: grpc, connect, grpc-web`},
		{"protocol: connect", "protocol: grpc", `arms[2].client: http 1.1: gRPC needs HTTP/2`},
		{"connections: per-call", "connections: round-robin", `arm "other": connections round-robin: grpc-go alone has it, and calls are Connect with JSON over HTTP/1.1`},
		{"processes: 2, dns", "codec: json, dns", `arm "as it is": front: dns takes plain gRPC alone, and calls are gRPC with JSON over HTTP/2`},
		{"  - name: other", "  - name: as it is", `x.yml:28: arms[2]: arm "as it is": it is the name of another arm, too`},
		{"method: demo.Jobs/ListJobs", "method: ListJobs", `x.yml:48: loads[2].method: "ListJobs" is no method; allowed: package.Service/Method`},
		{"front: dns", "front: simulated", `load "60 callers": it has a method, data or messages of its own, which the simulated arm "as it is" does not know`},
		{"margin: 5%", "margin: 0.05", `x.yml:64: primary.margin: "0.05" is not a share such as 5%; allowed: 0% to 99%`},
		{"figure: errors,", "figure: erors,", `x.yml:66: secondary[1]: there is no figure "erors"; did you mean errors? There are: p50, p90, p95,`},
		{"load: 10 at once, base", "load: 11 at once, base", `x.yml:66: secondary[1]: there is no load "11 at once"; did you mean 10 at once? There are: steps 100/s,`},
		{"arms: [as it is]", "arms: [as it was]", `x.yml:41: loads[2]: load "60 callers": there is no arm "as it was"; did you mean as it is? There are: as it is, other`},
		{"do: kill, worker: 7", "do: kill, worker: 8", `there is no worker 8 in arm "as it is", which has 7 then`},
		{"at: 9s, do: roll", "at: 29s, do: roll", `roll at 29s: the counted part ends at 20s`},
		{"do: stop, worker: 3, for: 1500ms", "do: stop, worker: 3", `stop at 2s: for how long? give for`},
		{"do: roll", "do: rol", `x.yml:51: loads[2].events[1].do: "rol" is unknown; did you mean roll? allowed: stop, kill, slow, add, remove, roll, burst`},
		{"for: 1s, more: 100", "for: 1s", `burst at 7s: how many more`},
		{"times: 3", "times: 1", `slow at 3s: how slow?`},
		{"rate: [100, 500/s]", "rate: [100, 500/x]", `load "steps 500/x": rate "500/x": "500/x" is not a rate from 0 to`},
		{"callers: 60", "callers: 60\n    rate: 5", `loads[2]: does not say when calls start, or says it twice; allowed: one of rate, at_once (open loops), callers and stages (closed loops)`},
		{"every: 1s", "every: 21s", `load "10 at once": every 21s: want a time from 1ms to the duration, 20s`},
		{"every: 1s", "every: 999us", `load "10 at once": every 999µs: want a time from 1ms to the duration, 20s`},
		{"every: 1s", "every: 1ms\n    duration: 101s", `load "10 at once": every 1ms: these are 101000 times in 1m41s, at most 100000 are possible`},
		{"quick: {rounds", "quick: {arms: [x], rounds", `quick.arms: there is no arm "x"`},
		{"loads: [steps 100/s", "loads: [stepz", `x.yml:67: quick.loads: there is no load "stepz"; there are: steps 100/s`},
		{`quick: {stages: "1s:30"}`, `quick: {stages: "1s:x"}`, `x.yml:63: loads[4].quick: with --quick: load "stages 1s:x": stages "1s:x": "x" is not a number of callers`},
		{"max_in_flight: 50", "max_in_flight: 50\n    name: y", `x.yml:40: loads[1].name: is set twice, first on line 36`},
		{"    optional: true", "    optional: maybe", `x.yml:30: arms[2].optional: "maybe" is neither true nor false; allowed: true or false`},
		{"dir: examples", "max_age: 1s", `arm "other": max_age is for program: worker`},
		{"kind: cabrank", "kind: nginx", `arms[2].front: starts, flags and env are for the front cabrank, not for nginx`},
		{"kind: cabrank", "kind: dns", `arms[2].front.policy: the front dns has no policies to choose from`},
		{"  slots: 5", "  slots: 0", `full: refuse is for workers with slots; give slots`},
		{`metadata: ["a: b"]`, "metadata: [{a: b}]", `x.yml:10: metadata[1]: is a list or has keys; allowed: text`},
		{"seed: 7", "seed: 7\n\tx: 1", `x.yml:13: is not valid YAML, here or below: a line begins with a tab`},
	} {
		c.check(t, whole)
	}
	for text, want := range map[string]string{
		"":                           "x.yml: the file is empty",
		"# nothing":                  "x.yml: the file is empty",
		"a\n---\nb":                  "x.yml:2: a second YAML document begins here",
		"- 1":                        "x.yml:1: is not of the form key: value; allowed: keys: about, arms, ",
		"name: a\nloads: [1]":        "x.yml: arms: is missing",
		"name: a\narms: [{name: b}]": "x.yml: loads: is missing",
		"&a [*a]":                    "x.yml:1: ",
	} {
		_, err := Parse("x.yml", []byte(text), nil)
		testkit.Want(t, err != nil && strings.HasPrefix(err.Error(), want), "%q: %v, want %s", text, err, want)
	}
}

// A file is read to its end, whatever is wrong with a part of it.
func TestFaultsTogether(t *testing.T) {
	text := strings.NewReplacer("rounds: 12", "rounds: 0", "full: refuse", "full: refuze", "callers: 60", "callers: sixty", "margin: 5%", "margin: 5").Replace(whole)
	want := []string{"x.yml:13: rounds: ", "x.yml:20: workers.full: ", "x.yml:41: loads[2].callers: ", "x.yml:64: primary.margin: "}
	_, err := Parse("x.yml", []byte(text), nil)
	testkit.Need(t, err != nil, "no fault")
	lines := strings.Split(err.Error(), "\n")
	testkit.Want(t, slices.EqualFunc(lines, want, strings.HasPrefix), "got\n%v", err)
}

// A volley is due at one moment, and none loses a call to another.
func TestVolleys(t *testing.T) {
	l := Load{AtOnce: 15000, Every: 2 * time.Second, Options: traffic.Options{Duration: 20 * time.Second, Warmup: time.Second}}
	p, err := l.Plan(1)
	testkit.Must(t, err)
	testkit.Want(t, p.Duration() == 20*time.Second && p.Most >= 15000, "lasts %v, at most %d under way", p.Duration(), p.Most)
	area := p.Rate.Area()
	testkit.Want(t, area >= 149_998 && area <= 150_001, "%v calls, want 150000", area)
	x, unit := l.Place()
	testkit.Want(t, x == 15000 && unit == "calls at once", "at %v %s", x, unit)
}

// A burst is added where it is, also within a ramp.
func TestBurst(t *testing.T) {
	l := Load{
		Options: traffic.Options{Rate: "10s:0..100,10s:50"},
		Events:  []Event{{At: 5 * time.Second, Do: DoBurst, For: 10 * time.Second, More: 1000}},
	}
	p, err := l.Plan(1)
	testkit.Must(t, err)
	testkit.Equal(t, p.Rate.String(), "5s:0..50,5s:1050..1100,5s:1050,5s:50", "the rate")
}

func TestBuiltin(t *testing.T) {
	for _, name := range Names() {
		s, err := Builtin(name, nil)
		testkit.Must(t, err)
		testkit.Want(t, s.Name == name && s.About != "" && s.Question != "",
			"%s: called %q, about %q, question %q", name, s.Name, s.About, s.Question)
		t.Logf("%s: %v, with --quick %v", name, s.Estimate(), s.Quick().Estimate())
		most := 25 * time.Minute // what a person waits for
		if name == "protocols" { // which has minutes of somebody else's stages
			most = time.Hour
		}
		testkit.Want(t, s.Estimate() <= most, "%s takes %v, at most %v are allowed", name, s.Estimate(), most)
		for _, c := range s.Claims() {
			if n := s.RoundsAt(s.Load(c.Load)); n < stats.MinPairs {
				t.Errorf("%s claims something of %s at %s, where %d rounds give no verdict", name, c.Figure, c.Load, n)
			}
		}
	}
	_, err := Builtin("conections", nil)
	testkit.Refused(t, err, "did you mean connections?")
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("x.yml", []byte(text), nil)
		if err != nil {
			n := strings.Count(err.Error(), "\n")
			testkit.Want(t, n <= 19, "%d lines: %q", n+1, err)
			return
		}
		for _, one := range []*Scenario{s, s.Quick()} {
			testkit.Want(t, one.Estimate() > 0 && one.Blocks() > 0, "%d blocks in %v", one.Blocks(), one.Estimate())
		}
	})
}

const rawText = `
name: x
workers: {program: echo, cores: 1}
client: {raw: true, cores: "0,1"}
arms: [{name: a}, {name: b, front: {kind: cabrank, cores: 0}}]
loads: [{name: l, rate: 10, duration: 1s, data: '{"connections": 2}'}, {name: m, rate: 10, duration: 1s}]
columns: [p50]
bars:
  - {figure: p50, load: l, arm: b, over: a, less: true, most: 1e-3}
  - {figure: errors, load: m, arm: b, least: 0}
quick: {loads: [l]}
`

func TestBars(t *testing.T) {
	s, err := Parse("x.yml", []byte(rawText), nil)
	testkit.Must(t, err)
	a := s.Arms[1]
	if len(s.Bars) != 2 || *s.Bars[0].Most != 1e-3 || !s.Bars[0].Less || s.Bars[0].Over[0] != "a" || *s.Bars[1].Least != 0 || len(s.Columns) != 1 {
		t.Errorf("got %+v, %v", s.Bars, s.Columns)
	}
	if !a.Client.Raw || a.Client.Cores != "0,1" || a.Front.Cores != "0" || a.Workers.Cores != "1" || a.Workers.Program != ProgramEcho {
		t.Errorf("got %+v", a)
	}
	q := s.Quick()
	testkit.Want(t, len(q.Bars) == 1, "with --quick: %+v", q.Bars)
	one, err := s.Only([]string{"a"})
	testkit.Want(t, err == nil && len(one.Bars) == 0, "of one arm: %+v, %v", one, err)
}

func TestBarsRefused(t *testing.T) {
	for _, c := range []fault{
		{"p50, load", "p55, load", "no such figure"},
		{"most: 1e-3", "most: x", "most"},
		{", most: 1e-3", "", "give most or least"},
		{"over: a", "over: c", `arm "c" does not run`},
		{"[p50]", "[p55]", "no such figure"},
		{"program: echo", "program: worker", "go together"},
		{"raw: true, ", "", "go together"},
		{`{"connections": 2}`, `{"connections": 0}`, "0 connections"},
		{"duration: 1s}", "duration: 1s, timeout: 1s}", "no timeout"},
	} {
		c.check(t, rawText)
	}
}

// What only the machine knows is filled in where files and commands are named, and the
// scenario itself stays as it is.
func TestPlaced(t *testing.T) {
	s := parsed(t, `
name: placed
method: demo.Jobs/GetJob
proto: ["{examples}/jobs/jobs.proto"]
workers:
  command: ["{cabrank}", run, --, ruby, "{examples}/jobs/ruby/worker.rb", "{addr}"]
  try: [ruby, -e, require "grpc"]
  install: gem install grpc
  env: {LIB: "{examples}"}
  dir: "{examples}"
arms: [{name: a}, {name: b, workers: {command: [true]}}]
loads: [{callers: 1, duration: 1s}]
`)
	placed := s.Placed(Places{Examples: "/tmp/x", Cabrank: "/bin/cabrank"})
	w := placed.Arms[0].Workers
	testkit.Want(t, slices.Equal(w.Command, []string{"/bin/cabrank", "run", "--", "ruby", "/tmp/x/jobs/ruby/worker.rb", "{addr}"}),
		"command %q", w.Command)
	testkit.Want(t, w.Dir == "/tmp/x" && slices.Equal(w.Env, []string{"LIB=/tmp/x"}) && placed.Proto[0] == "/tmp/x/jobs/jobs.proto",
		"%+v, %q", w, placed.Proto)
	testkit.Want(t, s.Arms[0].Workers.Dir == "{examples}" && s.NeedsExamples(), "the scenario has changed: %+v", s.Arms[0].Workers)
	// Another command is not tried by what belongs to the first.
	other := placed.Arms[1].Workers
	testkit.Want(t, other.Try == nil && other.Install == "", "%+v", other)
}

func TestTryAndInstallBelongTogether(t *testing.T) {
	_, err := Parse("x.yml", []byte(`
name: x
arms: [{name: a, workers: {command: [true], try: [ruby]}}]
loads: [{callers: 1, duration: 1s}]
`), nil)
	want := `x.yml:3: arms[1]: arm "a": try is a command, and install says what to do where it fails: give both or none`
	testkit.Want(t, err != nil && err.Error() == want, "got %v, want %s", err, want)
}
