package scenario

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// draft is an entry of the list of loads: one load, or a row of them.
type draft struct {
	load Load
	// rates, callers and volleys have an item for each load of a row.
	rates, callers, volleys []string
	short                   *draft // with --quick
}

// loads reads the loads, and how they are with --quick.
func (t *table) loads(s *Scenario) {
	list := t.list("loads")
	if len(list) == 0 {
		t.fault(t.lines["loads"], "loads", "there is none; want a list")
		return
	}
	common := draft{}
	if node := t.take("every_load"); node != nil {
		inner := t.table(node, "every_load")
		inner.load(&common)
		inner.close()
	}
	for i, item := range list {
		inner := t.table(item, fmt.Sprintf("loads[%d]", i+1))
		d := common
		inner.load(&d)
		if node := inner.take("quick"); node != nil {
			short := d
			quick := inner.table(node, inner.at("quick"))
			quick.load(&short)
			quick.close()
			d.short = &short
		}
		inner.close()
		s.Loads = append(s.Loads, t.row(&d, inner)...)
		s.quick.drafts = append(s.quick.drafts, d)
	}
	if len(s.Loads) > result.MostLoads {
		t.wrong("loads", "there are %d; at most %d are possible", len(s.Loads), result.MostLoads)
	}
	seen := map[string]bool{}
	for _, l := range s.Loads {
		if seen[l.Name] {
			t.wrong("loads", "two are called %q; give one of them another name", l.Name)
		}
		seen[l.Name] = true
	}
}

// ownCalls holds the loads that call something else against arms that cannot.
func (t *table) ownCalls(s *Scenario) {
	for i := range s.Loads {
		l := &s.Loads[i]
		if l.Method == "" && l.Data == "" && l.Messages == 0 {
			continue
		}
		if s.HTTP.Path != "" {
			t.wrong("loads", "%q has a method, data or messages of its own, which are for gRPC, and http is given", l.Name)
		}
		for _, arm := range s.ArmsAt(l) {
			if s.Arms[arm].Front.Kind == FrontSimulated {
				t.wrong("loads", "%q has a method, data or messages of its own, which the simulated arm %q does not know", l.Name, s.Arms[arm].Name)
			}
		}
	}
}

// row makes the loads of an entry.
func (t *table) row(d *draft, inner *table) []Load {
	all, err := d.expand()
	if err != nil {
		t.fault(inner.line, inner.path, "%v", err)
	}
	return all
}

// load reads one entry; what it does not say stays.
func (t *table) load(d *draft) {
	l := &d.load
	o := &l.Options
	t.text("name", &l.Name)
	t.text("about", &l.About)
	t.text("method", &l.Method)
	if l.Method != "" {
		t.wantMethod(l.Method)
	}
	t.text("data", &l.Data)
	t.whole("messages", &l.Messages, 0, mostMessages)
	if t.starts() {
		d.rates, d.callers, d.volleys, o.Stages = nil, nil, nil, ""
	}
	t.texts("rate", &d.rates)
	t.texts("callers", &d.callers)
	t.texts("at_once", &d.volleys)
	t.whole("calls", &o.Calls, 1, 1_000_000_000)
	t.takes(l)
	t.text("stages", &o.Stages)
	t.duration("every", &l.Every)
	t.word("arrivals", &o.Arrivals, []string{"constant", "poisson"})
	t.duration("think", &o.Think)
	t.flag("retry_at_once", &o.RetryAtOnce)
	t.duration("duration", &o.Duration)
	t.duration("warmup", &o.Warmup)
	t.duration("timeout", &o.Timeout)
	t.duration("grace", &o.Grace)
	t.whole("max_in_flight", &o.Most, 1, 1_000_000)
	t.whole("rounds", &l.Rounds, 1, result.MostRounds)
	t.whole("workers", &l.Workers, 1, mostWorkers)
	t.whole("processes", &l.Processes, 1, mostProcesses)
	t.texts("arms", &l.Arms)
	if list := t.list("events"); list != nil {
		l.Events = t.events(list)
	}
}

// takes reads how long a given number of calls takes, and with it how long it may take.
func (t *table) takes(l *Load) {
	text, ok := t.scalar("takes")
	if !ok {
		return
	}
	var err error
	if l.Takes, err = product(text); err != nil {
		t.wrong("takes", "%v", err)
		return
	}
	if t.value["duration"] == nil {
		l.Options.Duration = min(takesLonger*l.Takes, longest)
	}
}

// starts reports whether an entry says of itself when calls start.
func (t *table) starts() bool {
	for _, key := range []string{"rate", "callers", "at_once", "stages"} {
		if t.value[key] != nil {
			return true
		}
	}
	return false
}

// expand makes one load of each item of a row.
func (d *draft) expand() (all []Load, err error) {
	base := d.load
	rows := [][]string{d.rates, d.callers, d.volleys}
	given := slices.DeleteFunc(slices.Clone(rows), func(row []string) bool { return len(row) == 0 })
	if len(given) == 0 && base.Options.Stages != "" {
		given = [][]string{{base.Options.Stages}}
	} else if len(given) != 1 || base.Options.Stages != "" {
		return nil, fmt.Errorf("give one of rate, at_once (open loops), callers and stages (closed loops)")
	}
	for _, item := range given[0] {
		l := base
		switch {
		case len(d.rates) > 0:
			l.Options.Rate = item
		case len(d.callers) > 0:
			err = wholeOf("callers", item, &l.Options.Callers, 100_000)
		case len(d.volleys) > 0:
			err = wholeOf("at_once", item, &l.AtOnce, 1_000_000)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case base.Name == "":
			l.Name = l.named()
		case len(given[0]) > 1:
			l.Name = base.Name + " " + l.named()
		}
		all = append(all, l)
	}
	return all, nil
}

func wholeOf(key, text string, into *int, most int) error {
	var n int
	if _, err := fmt.Sscanf(text+"\n", "%d\n", &n); err != nil || n < 1 || n > most {
		return fmt.Errorf("%s %.40q: want a whole number from 1 to %d", key, text, most)
	}
	*into = n
	return nil
}

// events reads what happens during a load.
func (t *table) events(list []*yaml.Node) (all []Event) {
	for i, node := range list {
		inner := t.table(node, fmt.Sprintf("%s[%d]", t.at("events"), i+1))
		e := Event{Worker: 1, Times: 1}
		inner.duration("at", &e.At)
		do := ""
		inner.word("do", &do, events())
		e.Do = Do(do)
		inner.event(&e)
		inner.close()
		if e.Do == "" {
			t.fault(inner.line, inner.path, "do what? want do: %s", either(events()))
		}
		all = append(all, e)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].At < all[j].At })
	return all
}

func (t *table) event(e *Event) {
	if text, ok := t.scalar("worker"); ok && text == "all" {
		e.Worker = 0
	} else if ok {
		t.whole("worker", &e.Worker, 1, mostWorkers)
	}
	t.duration("for", &e.For)
	t.duration("by", &e.By)
	t.number("times", &e.Times, 1, 10_000)
	t.number("more", &e.More, 0, traffic.MostRate)
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
	for _, e := range l.Events { // before the plan, which has their bursts
		quiet := *l
		quiet.Events = nil
		p, err := quiet.Plan(0)
		if err != nil {
			return err
		}
		if err := e.check(l, p); err != nil {
			return err
		}
	}
	p, err := l.Plan(0)
	switch {
	case err != nil:
		return err
	case p.Duration() < shortest:
		return fmt.Errorf("it lasts %v; want %v or more", p.Duration(), shortest)
	}
	for _, name := range l.Arms {
		if s.Arm(name) == nil {
			return fmt.Errorf("there is no arm %q; there are: %s", name, names(s.Arms, func(a Arm) string { return a.Name }))
		}
	}
	return l.checkWorkers(s)
}

// checkWorkers holds the events against the workers of each arm.
func (l *Load) checkWorkers(s *Scenario) error {
	for _, i := range s.ArmsAt(l) {
		w := s.Arms[i].Workers
		count := w.Count
		if l.Workers > 0 {
			count = l.Workers
		}
		for _, e := range l.Events {
			if e.Do == DoAdd {
				count++
			}
			if e.Worker > count {
				return fmt.Errorf("%s at %v: there is no worker %d in arm %q, which has %d then", e.Do, e.At, e.Worker, s.Arms[i].Name, count)
			}
			if e.Do == DoSlow && w.Program != ProgramWorker {
				return fmt.Errorf("%s at %v: arm %q does not have program: %s", e.Do, e.At, s.Arms[i].Name, ProgramWorker)
			}
		}
		if w.Slow.Worker > count {
			return fmt.Errorf("worker %d of arm %q is slow, and there are %d", w.Slow.Worker, s.Arms[i].Name, count)
		}
	}
	return nil
}

// shorten gives a load another length, if it has no moments of its own.
func (l *Load) shorten(duration, warmup time.Duration) {
	timed := strings.Contains(l.Options.Rate, ":") || l.Options.Stages != "" || len(l.Events) > 0 || l.Options.Calls > 0
	if duration > 0 && !timed {
		l.Options.Duration = duration
	}
	if warmup > 0 && l.Options.Warmup > warmup {
		l.Options.Warmup = warmup
	}
}
