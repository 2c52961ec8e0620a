package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/spelling"
	"github.com/cabrank/cabrank/internal/strictyaml"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/work"
)

// shortest is a time that a block takes at least.
const shortest = 100 * time.Millisecond

var oneWord = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Check looks at what is called.
func (s *Scenario) Check(n strictyaml.Node) {
	if !oneWord.MatchString(s.Name) {
		n.Fault("name", fmt.Sprintf("%.60q is not one word", s.Name), "one word of small letters, digits and hyphens")
	}
	checkMethod(n, s.Method)
	if _, err := caller.ParseMetadata(s.Metadata); err != nil {
		n.Fault("metadata", err.Error(), "")
	}
	for _, key := range []string{"method", "data", "messages", "proto", "import_path", "metadata", "worker_key"} {
		if s.HTTP.Path != "" && n.Get(key).Given() {
			n.Fault(key, "is for gRPC, and http is given; leave one of them out", "")
		}
	}
}

func checkMethod(n strictyaml.Node, method string) {
	if service, name, _ := strings.Cut(method, "/"); service == "" || name == "" {
		n.Fault("method", fmt.Sprintf("%.80q is no method", method), "package.Service/Method")
	}
}

// Check looks at the paths; of a gateway without one of its own for that, callers ask for
// theirs until it is ready.
func (h *HTTP) Check(n strictyaml.Node) {
	if !n.Get("ready").Given() {
		h.Ready = h.Path
	}
	for _, path := range []string{h.Path, h.Ready} {
		if err := caller.CheckPath(path); err != nil {
			n.Fault("", err.Error(), "")
			return
		}
	}
}

// UnmarshalStrict reads names and values.
func (e *Environ) UnmarshalStrict(n strictyaml.Node) {
	all := map[string]string{}
	n.Decode(&all)
	*e = nil
	for name, value := range all {
		*e = append(*e, name+"="+value)
	}
	sort.Strings(*e)
}

// UnmarshalStrict reads workers. What only a program knows is not passed on to a command.
func (w *Workers) UnmarshalStrict(n strictyaml.Node) {
	type plain Workers
	program, command := n.Get("program").Given(), n.Get("command").Given()
	switch {
	case program && command:
		n.Fault("command", "stands beside program; leave one of them out", "")
	case program:
		w.Command = nil
	case command:
		w.Program, w.MaxAge, w.Try, w.Install = ProgramNone, 0, nil, ""
	}
	n.Decode((*plain)(w))
	if w.Slots > 0 && w.Full == work.Unlimited && !n.Get("full").Given() {
		w.Full = work.Queue
	}
}

// UnmarshalStrict reads a front. A word is all of it.
func (f *Front) UnmarshalStrict(n strictyaml.Node) {
	type plain Front
	if n.Alone() {
		*f = Front{}
	}
	if !n.Decode((*plain)(f)) {
		return
	}
	if f.Kind != FrontCabrank && (f.Starts || len(f.Flags)+len(f.Env) > 0) {
		n.Fault("", "starts, flags and env are for the front cabrank, not for "+string(f.Kind), "")
	}
	if f.Policy != "" && slices.Contains([]FrontKind{FrontNone, FrontDNS, FrontDNAT, FrontNghttpx}, f.Kind) {
		n.Fault("policy", "the front "+string(f.Kind)+" has no policies to choose from", "")
	}
}

// Check looks at how calls are written.
func (c *Client) Check(n strictyaml.Node) {
	var err error
	if c.Way, err = caller.ParseWay(c.Way.Protocol, c.Way.Codec, c.Way.HTTP); err != nil {
		n.Fault("", err.Error(), "")
	}
}

// UnmarshalStrict reads an event.
func (e *Event) UnmarshalStrict(n strictyaml.Node) {
	type plain Event
	*e = Event{Worker: 1, Times: 1}
	n.Decode((*plain)(e))
}

// check holds the parts of an arm against each other, and the arm against those before it.
func (a *Arm) check(s *Scenario) error {
	w, http := a.Workers, s.HTTP.Path != ""
	switch {
	case s.Arm(a.Name) != nil:
		return errors.New("it is the name of another arm, too")
	case w.Program == ProgramNone && len(w.Command) == 0:
		return errors.New("its command is empty")
	case (len(w.Try) > 0) != (w.Install != ""):
		return errors.New("try is a command, and install says what to do where it fails: give both or none")
	case w.Program != ProgramWorker && w.MaxAge > 0:
		return fmt.Errorf("max_age is for program: %s", ProgramWorker)
	case w.Full != work.Unlimited && w.Slots == 0:
		return fmt.Errorf("full: %s is for workers with slots; give slots", w.Full)
	case http && len(a.Gateway.Command) == 0:
		return errors.New("callers speak HTTP: to whom? give gateway, with a command")
	case !http && len(a.Gateway.Command) > 0:
		return errors.New("it has a gateway, and calls are gRPC; give http, such as /fibonacci?n=1")
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

// noSuch says that there is nothing of a name, what was meant, and what there is.
func noSuch(what, name string, all []string) error {
	text := fmt.Sprintf("there is no %s %.80q", what, name)
	if near := spelling.Nearest(name, all); near != "" {
		text += "; did you mean " + near + "?"
	}
	if len(all) == 0 {
		return errors.New(text + ": it has none")
	}
	return errors.New(strings.Replace(text+"; there are: "+strings.Join(all, ", "), "?; there", "? There", 1))
}

// checkClaim holds a claim against the arms and loads.
func (s *Scenario) checkClaim(c result.Claim) error {
	load, figures := s.Load(c.Load), names(result.All(), func(f result.Info) string { return f.Name })
	switch {
	case !slices.Contains(figures, c.Figure):
		return noSuch("figure", c.Figure, figures)
	case load == nil:
		return noSuch("load", c.Load, loadNames(s.Loads))
	case c.Base == c.Other:
		return fmt.Errorf("base and other are the same arm, %q", c.Base)
	}
	for _, name := range []string{c.Base, c.Other} {
		if s.Arm(name) == nil {
			return noSuch("arm", name, armNames(s))
		}
		if len(load.Arms) > 0 && !slices.Contains(load.Arms, name) {
			return fmt.Errorf("arm %q does not run at this load", name)
		}
	}
	return nil
}

func armNames(s *Scenario) []string { return names(s.Arms, func(a Arm) string { return a.Name }) }

func loadNames(all []Load) []string { return names(all, func(l Load) string { return l.Name }) }

func names[T any](all []T, name func(T) string) (list []string) {
	for _, one := range all {
		list = append(list, name(one))
	}
	return list
}

// check holds an event against its load.
func (e Event) check(l *Load, p traffic.Plan) error {
	switch {
	case e.At >= p.Duration():
		return fmt.Errorf("%s at %v: the counted part ends at %v", e.Do, e.At, p.Duration())
	case (e.Do == DoStop || e.Do == DoSlow || e.Do == DoBurst) && e.For <= 0:
		return fmt.Errorf("%s at %v: for how long? give for", e.Do, e.At)
	case e.Do == DoSlow && e.By == 0 && e.Times == 1:
		return fmt.Errorf("slow at %v: how slow? give by, such as 200ms, or times, such as 10", e.At)
	case e.Do == DoBurst && e.More <= 0:
		return fmt.Errorf("burst at %v: how many more calls per second, or callers? give more", e.At)
	case e.Do == DoBurst && (l.AtOnce > 0 || e.At+e.For > p.Duration()):
		return fmt.Errorf("burst at %v: it has to end with the load, and goes with rate, callers and stages", e.At)
	}
	return nil
}

// check holds a load against the rest of the scenario.
func (l *Load) check(s *Scenario) error {
	quiet := *l
	quiet.Events = nil
	p, err := quiet.Plan(0)
	for _, e := range l.Events { // before the plan that has their bursts
		if err == nil {
			err = e.check(l, p)
		}
	}
	if err == nil {
		p, err = l.Plan(0)
	}
	switch {
	case err != nil:
		return err
	case p.Duration() < shortest:
		return fmt.Errorf("it lasts %v; want %v or more", p.Duration(), shortest)
	}
	for _, name := range l.Arms {
		if s.Arm(name) == nil {
			return noSuch("arm", name, armNames(s))
		}
	}
	own := l.Method != "" || l.Data != "" || l.Messages != 0
	if own && s.HTTP.Path != "" {
		return errors.New("it has a method, data or messages of its own, which are for gRPC, and http is given")
	}
	_, data, _ := s.CallAt(l)
	for _, i := range s.ArmsAt(l) {
		a := &s.Arms[i]
		if own && a.Front.Kind == FrontSimulated {
			return fmt.Errorf("it has a method, data or messages of its own, which the simulated arm %q does not know", a.Name)
		}
		if err := cmp.Or(l.checkRaw(a, data), l.checkWorkers(a)); err != nil {
			return err
		}
	}
	return nil
}

func (l *Load) checkWorkers(a *Arm) error {
	count := cmp.Or(l.Workers, a.Workers.Count)
	for _, e := range l.Events {
		if slices.Contains([]Do{DoAdd, DoRemove, DoRoll}, e.Do) && slices.Contains([]FrontKind{FrontNone, FrontEnvoy, FrontEnvoyWeb, FrontNginx, FrontNghttpx}, a.Front.Kind) {
			return fmt.Errorf("%s at %v: front %s of arm %q is not told of workers that come and go", e.Do, e.At, a.Front.Kind, a.Name)
		}
		if e.Do == DoAdd {
			count++
		}
		if e.Worker > count {
			return fmt.Errorf("%s at %v: there is no worker %d in arm %q, which has %d then", e.Do, e.At, e.Worker, a.Name, count)
		}
		if e.Do == DoSlow && a.Workers.Program != ProgramWorker {
			return fmt.Errorf("%s at %v: arm %q does not have program: %s", e.Do, e.At, a.Name, ProgramWorker)
		}
	}
	return nil
}

// checkBars holds bars and columns against figures, arms and loads.
func (s *Scenario) checkBars(n strictyaml.Node) {
	for _, name := range s.Columns {
		if _, known := result.Known(name); !known {
			n.Fault("columns", fmt.Sprintf("%.60q: there is no such figure", name), "")
		}
	}
	for i, b := range s.Bars {
		load, bar := s.Load(b.Load), fmt.Sprintf("bar %d: ", i+1)
		if _, known := result.Known(b.Figure); !known {
			n.Fault("bars", fmt.Sprintf("%s%.60q: there is no such figure", bar, b.Figure), "")
		}
		if b.Most == nil && b.Least == nil {
			n.Fault("bars", bar+"what is to be held? give most or least", "")
		}
		for _, arm := range append([]string{b.Arm}, b.Over...) {
			if load == nil || s.Arm(arm) == nil || len(load.Arms) > 0 && !slices.Contains(load.Arms, arm) {
				n.Fault("bars", fmt.Sprintf("%sarm %q does not run at load %q", bar, arm, b.Load), "")
			}
		}
	}
}

// checkRaw holds a load against an arm with a raw client, or without.
func (l *Load) checkRaw(a *Arm, data string) error {
	_, err := rawh2.ParseRequest(data)
	switch {
	case a.Client.Raw != (a.Workers.Program == ProgramEcho):
		return fmt.Errorf("arm %q: a raw client and program: %s go together", a.Name, ProgramEcho)
	case !a.Client.Raw && a.Front.TLS != "":
		return fmt.Errorf("arm %q: TLS is for raw clients", a.Name)
	case !a.Client.Raw:
	case err != nil:
		return fmt.Errorf("arm %q: %w", a.Name, err)
	case a.Front.TLS != "" && slices.Contains([]FrontKind{FrontNone, FrontDNAT, FrontNghttpx}, a.Front.Kind):
		return fmt.Errorf("arm %q: front %s ends no TLS here", a.Name, a.Front.Kind)
	case l.Options.Timeout > 0 || len(l.Events) > 0 || a.Front.Starts || a.Front.Kind == FrontDNS || a.Front.Kind == FrontDNAT || a.Front.Kind == FrontSimulated:
		return fmt.Errorf("arm %q: a raw client has no timeout and no events, and calls one address; its workers are one process", a.Name)
	}
	return nil
}
