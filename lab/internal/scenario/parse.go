package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cabrank/cabrank/internal/spelling"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/connectcaller"
	"github.com/cabrank/cabrank/lab/internal/result"
)

const (
	// maxFile bounds a file, in bytes.
	maxFile = 1 << 20
	// mostMessages is how many a call of a stream sends at most.
	mostMessages = 100_000
	// mostWorkers and mostProcesses bound what is started on one machine.
	mostWorkers   = 100
	mostProcesses = 64
	// defaultRounds is the least of which statistics say anything.
	defaultRounds = 10
	// defaultMethod and defaultKey are those of the program "worker".
	defaultMethod = "cabrank.lab.v1.Worker/Work"
	defaultKey    = "x-worker"
)

var oneWord = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Parse reads a scenario. name is where the text is from, for errors.
//
// Errors: one line with the name, the line and the key: what is there, and what may be.
func Parse(name string, text []byte) (*Scenario, error) { return ParseWith(name, text, nil) }

// ParseWith is Parse with other numbers for some of the file's values, by name. They
// are put before the text of the scenario as a comment.
func ParseWith(name string, text []byte, set map[string]string) (*Scenario, error) {
	r := &reader{name: name}
	s := r.scenario(text, set)
	if r.err == nil {
		r.check(s, "")
		r.checkQuick(s)
	}
	if r.err == nil {
		r.check(s.Quick(), "with --quick: ")
	}
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// document returns the one value of the file.
func (r *reader) document(text []byte) *yaml.Node {
	if len(text) > maxFile {
		r.fault(0, "", "has %d bytes, at most %d are read", len(text), maxFile)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		r.fault(0, "", "the file is empty; `cabrank lab show connections` prints one to copy")
		return nil
	} else if err != nil {
		r.syntax(err)
		return nil
	}
	if err := decoder.Decode(&second); err == nil {
		r.fault(second.Line, "", "a second YAML document begins here; want one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err)
		return nil
	}
	return document.Content[0]
}

func (r *reader) scenario(text []byte, set map[string]string) *Scenario {
	s := &Scenario{
		Text: string(text), Method: defaultMethod, Data: "{}", WorkerKey: defaultKey, Seed: 1, Rounds: defaultRounds,
	}
	node := r.document(text)
	if r.err != nil {
		return s
	}
	t := r.table(node, "")
	t.text("name", &s.Name)
	t.text("about", &s.About)
	t.text("question", &s.Question)
	s.values = t.values(set)
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(set))) {
		s.Text = fmt.Sprintf("# ran with %s=%s\n%s", name, set[name], s.Text)
	}
	r.given = s.values
	t.call(s)
	t.http(&s.HTTP)
	seed := 1
	t.whole("seed", &seed, 0, 1<<53)
	s.Seed = uint64(seed)
	t.whole("rounds", &s.Rounds, 1, result.MostRounds)
	t.share("limit", &s.Limit)
	t.duration("pause", &s.Pause)
	t.arms(s)
	t.loads(s)
	t.ownCalls(s)
	t.claims(s)
	s.quick = t.quick(s.quick.drafts)
	t.close()
	if r.err == nil && !oneWord.MatchString(s.Name) {
		r.fault(t.lines["name"], "name", "%.60q: want one word of small letters, digits and hyphens", s.Name)
	}
	return s
}

// call reads what is called.
func (t *table) call(s *Scenario) {
	t.text("method", &s.Method)
	t.text("data", &s.Data)
	t.whole("messages", &s.Messages, 0, mostMessages)
	t.texts("proto", &s.Proto)
	t.texts("import_path", &s.Imports)
	t.texts("metadata", &s.Metadata)
	t.text("worker_key", &s.WorkerKey)
	t.wantMethod(s.Method)
	for _, pair := range s.Metadata {
		if name, _, ok := strings.Cut(pair, ":"); !ok || strings.TrimSpace(name) == "" {
			t.wrong("metadata", "%.80q: want name:value", pair)
		}
	}
}

func (t *table) wantMethod(name string) {
	service, method, ok := strings.Cut(name, "/")
	if !ok || service == "" || method == "" {
		t.wrong("method", "%.80q: want package.Service/Method", name)
	}
}

// arms reads the arms; each begins as the keys workers, front and client of the top
// level say.
func (t *table) arms(s *Scenario) {
	common := Arm{
		Workers: Workers{Program: ProgramWorker, Count: 1, Full: FullUnlimited},
		Front:   Front{Kind: FrontNone},
		Client:  Client{Processes: 1},
	}
	t.ways(&common)
	list := t.list("arms")
	if len(list) == 0 {
		t.fault(t.lines["arms"], "arms", "there is none; want a list, with a name each")
		return
	}
	if len(list) > result.MostArms {
		t.wrong("arms", "there are %d; at most %d are possible", len(list), result.MostArms)
		return
	}
	for i, item := range list {
		inner := t.table(item, fmt.Sprintf("arms[%d]", i+1))
		arm := common
		inner.text("name", &arm.Name)
		inner.text("about", &arm.About)
		inner.flag("optional", &arm.Optional)
		inner.ways(&arm)
		inner.close()
		switch {
		case arm.Name == "":
			t.fault(inner.line, inner.path, "has no name")
		case s.Arm(arm.Name) != nil:
			t.fault(inner.line, inner.path, "%q is the name of another arm, too", arm.Name)
		}
		s.Arms = append(s.Arms, arm)
	}
}

// ways reads what an arm is made of.
func (t *table) ways(arm *Arm) {
	if node := t.take("workers"); node != nil {
		t.workers(node, &arm.Workers)
	}
	if node := t.take("front"); node != nil {
		t.front(node, &arm.Front)
	}
	if node := t.take("client"); node != nil {
		t.client(node, &arm.Client)
	}
	if node := t.take("gateway"); node != nil {
		t.gateway(node, &arm.Gateway)
	}
}

// workers reads a number of workers, or keys.
func (t *table) workers(node *yaml.Node, w *Workers) {
	if node.Kind == yaml.ScalarNode {
		t.whole("workers", &w.Count, 1, mostWorkers)
		return
	}
	inner := t.table(node, t.at("workers"))
	program, command := string(w.Program), []string(nil)
	inner.word("program", &program, []string{string(ProgramWorker)})
	inner.command("command", &command)
	switch {
	case command != nil && inner.value["program"] != nil:
		inner.wrong("command", "stands beside program; leave one of them out")
	case command != nil:
		// What only the program knows is not passed on to a command.
		w.Program, w.Command, w.MaxAge, w.Slow = ProgramNone, command, 0, Slow{}
		w.Try, w.Install = nil, ""
	case inner.value["program"] != nil:
		w.Program, w.Command = Program(program), nil
	}
	inner.text("dir", &w.Dir)
	inner.command("try", &w.Try)
	inner.text("install", &w.Install)
	inner.whole("count", &w.Count, 1, mostWorkers)
	inner.whole("slots", &w.Slots, 0, 1_000_000)
	full := string(w.Full)
	if w.Slots > 0 && w.Full == FullUnlimited {
		full = string(FullQueue)
	}
	inner.word("full", &full, []string{string(FullQueue), string(FullKeep), string(FullRefuse), string(FullUnlimited)})
	w.Full = Full(full)
	inner.number("cpu", &w.CPU, 0, 1000)
	inner.environment("env", &w.Env)
	inner.duration("max_age", &w.MaxAge)
	if slow := inner.take("slow"); slow != nil {
		inner.slow(slow, &w.Slow)
	}
	inner.close()
}

func (t *table) slow(node *yaml.Node, s *Slow) {
	inner := t.table(node, t.at("slow"))
	*s = Slow{Worker: 1, Times: 1}
	inner.whole("worker", &s.Worker, 1, mostWorkers)
	inner.duration("by", &s.By)
	inner.number("times", &s.Times, 1, 10_000)
	inner.close()
	if s.By == 0 && s.Times == 1 {
		t.fault(inner.line, inner.path, "how slow? give by, such as 200ms, or times, such as 10")
	}
}

// front reads the kind of a front, or keys.
func (t *table) front(node *yaml.Node, f *Front) {
	kind := string(f.Kind)
	if node.Kind == yaml.ScalarNode {
		t.word("front", &kind, fronts())
		*f = Front{Kind: FrontKind(kind)}
		return
	}
	inner := t.table(node, t.at("front"))
	inner.word("kind", &kind, fronts())
	f.Kind = FrontKind(kind)
	inner.text("policy", &f.Policy)
	inner.command("flags", &f.Flags)
	inner.environment("env", &f.Env)
	inner.flag("starts", &f.Starts)
	inner.number("cpu", &f.CPU, 0, 1000)
	inner.duration("ttl", &f.TTL)
	inner.close()
	if f.Kind != FrontCabrank && (f.Starts || len(f.Flags)+len(f.Env) > 0) {
		t.fault(inner.line, inner.path, "starts, flags and env are for the front cabrank, not for %s", f.Kind)
	}
}

// client reads how calls share connections, or keys.
func (t *table) client(node *yaml.Node, c *Client) {
	inner, key := t, "client"
	if node.Kind != yaml.ScalarNode {
		inner, key = t.table(node, t.at("client")), "connections"
	}
	text := c.Connections.String()
	inner.text(key, &text)
	var err error
	if c.Connections, err = caller.ParseStrategy(text); err != nil {
		inner.fault(inner.lines[key], "", "%v", err)
	}
	if inner == t {
		return
	}
	inner.whole("processes", &c.Processes, 1, mostProcesses)
	inner.duration("dns_interval", &c.DNSInterval)
	inner.way(&c.Way)
	inner.close()
}

// way reads how calls are written.
func (t *table) way(w *connectcaller.Way) {
	var err error
	protocol, codec, version := w.Protocol, w.Codec, w.HTTP
	t.word("protocol", &protocol, connectcaller.Protocols())
	t.word("codec", &codec, connectcaller.Codecs())
	t.word("http", &version, connectcaller.Versions())
	if *w, err = connectcaller.ParseWay(protocol, codec, version); err != nil {
		t.fault(t.line, t.path, "%v", err)
	}
}

// claims reads what is compared.
func (t *table) claims(s *Scenario) {
	if node := t.take("primary"); node != nil {
		claim := t.claim(node, "primary")
		s.Primary = &claim
	}
	for i, node := range t.list("secondary") {
		s.Secondary = append(s.Secondary, t.claim(node, fmt.Sprintf("secondary[%d]", i+1)))
	}
	if n := len(s.Claims()); n > result.MostClaims {
		t.wrong("secondary", "there are %d claims; at most %d are possible", n, result.MostClaims)
	}
}

func (t *table) claim(node *yaml.Node, path string) (c Claim) {
	inner := t.table(node, path)
	for _, key := range []struct {
		name string
		into *string
	}{{"figure", &c.Figure}, {"load", &c.Load}, {"base", &c.Base}, {"other", &c.Other}} {
		inner.text(key.name, key.into)
		if *key.into == "" {
			t.fault(inner.line, path, "%s is missing", key.name)
		}
	}
	if _, known := result.Known(c.Figure); !known && c.Figure != "" {
		all := strings.Split(names(result.All(), func(f result.Info) string { return f.Name }), ", ")
		meant := spelling.Nearest(c.Figure, all)
		if meant != "" {
			meant = " did you mean " + meant + "?"
		}
		inner.wrong("figure", "%.60q: there is no such figure;%s There are %s", c.Figure, meant, strings.Join(all, ", "))
	}
	inner.share("margin", &c.Margin)
	inner.close()
	return c
}

// shortest is a time that a block takes at least.
const shortest = 100 * time.Millisecond

// check holds the parts against each other.
func (r *reader) check(s *Scenario, when string) {
	r.checkArms(s, when)
	for i := range s.Loads {
		l := &s.Loads[i]
		if err := l.check(s); err != nil {
			r.fault(0, "", "%sload %q: %v", when, l.Name, err)
		}
	}
	for _, c := range s.Claims() {
		if err := c.check(s); err != nil {
			r.fault(0, "", "%sthe claim on %s at %q: %v", when, c.Figure, c.Load, err)
		}
	}
}

func (r *reader) checkArms(s *Scenario, when string) {
	if len(s.Arms) == 0 || len(s.Loads) == 0 {
		r.fault(0, "", "%sthere is no arm or no load", when)
	}
	for i := range s.Arms {
		err := s.Arms[i].check()
		if err == nil {
			err = s.Arms[i].checkGateway(s.HTTP)
		}
		if err != nil {
			r.fault(0, "", "%sarm %q: %v", when, s.Arms[i].Name, err)
		}
	}
}

func (a *Arm) check() error {
	w := a.Workers
	switch {
	case w.Program == ProgramNone && len(w.Command) == 0:
		return errors.New("its command is empty")
	case (len(w.Try) > 0) != (w.Install != ""):
		return errors.New("try is a command, and install says what to do where it fails: give both or none")
	case w.Program != ProgramWorker && (w.MaxAge > 0 || w.Slow.Worker > 0):
		return fmt.Errorf("max_age and slow are for program: %s", ProgramWorker)
	case w.Slow.Worker > w.Count:
		return fmt.Errorf("worker %d is slow, and there are %d", w.Slow.Worker, w.Count)
	case w.Full != FullUnlimited && w.Slots == 0:
		return fmt.Errorf("full: %s is for workers with slots; give slots", w.Full)
	}
	return a.checkWay()
}

// checkWay holds how calls are written against what they meet.
func (a *Arm) checkWay() error {
	w := a.Client.Way
	switch {
	case w.Plain():
		return nil
	case a.Front.Kind == FrontDNS, a.Front.Kind == FrontSimulated:
		return fmt.Errorf("front: %s takes plain gRPC alone, and calls are %s", a.Front.Kind, w)
	case len(a.Gateway.Command) > 0:
		return fmt.Errorf("callers speak HTTP to its gateway, not %s; leave protocol, codec and http out", w)
	}
	return w.Check(a.Client.Connections)
}

func (c Claim) check(s *Scenario) error {
	load := s.Load(c.Load)
	switch {
	case load == nil:
		return fmt.Errorf("there is no such load; there are: %s", names(s.Loads, func(l Load) string { return l.Name }))
	case c.Base == c.Other:
		return fmt.Errorf("base and other are the same arm, %q", c.Base)
	}
	for _, name := range []string{c.Base, c.Other} {
		if s.Arm(name) == nil {
			return fmt.Errorf("there is no arm %q; there are: %s", name, names(s.Arms, func(a Arm) string { return a.Name }))
		}
		if len(load.Arms) > 0 && !slices.Contains(load.Arms, name) {
			return fmt.Errorf("arm %q does not run at this load", name)
		}
	}
	return nil
}

func names[T any](all []T, name func(T) string) string {
	var list []string
	for _, one := range all {
		list = append(list, name(one))
	}
	return strings.Join(list, ", ")
}
