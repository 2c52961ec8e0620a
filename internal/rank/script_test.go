package rank

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// TestRank runs the scripts of testdata: calls ask a rank for slots while time passes, and are
// told what the script says, and nothing else. A file is about one subject; each case in it,
// from "-- its name --", has a rank of its own, whose queue holds 100 calls.
//
//	rank queue.length=10               other options; some may change later
//	lane admin reserve=1
//	workers 5 5 5:1-40                 w1 to w3, with five slots each; those of w3 adapt
//	callers a b weight=3               a1, a2 and so on are calls of a; others are of nobody
//	method short 20ms 30               30 of its calls (or 20) have taken 20 ms
//	a1 asks short lane=admin           and other fields of Request; times are from now on
//	a2..9 ask -> a2..5 granted, 4 queued
//	after 10ms a1 ends -> a6 granted w1
//	a2 ends refused until=1s           its worker has refused it, and the slot stays busy
//	a leaves                           all of its calls are cancelled, or are no longer in the queue
//	b1 asks for=20ms again             ends by itself, then asks again; what it is told is not looked at
//	status waiting=3 w1.ghosts=2 a.running=1..2
//
// A line may begin with "after D" or "at T": then time passes, and the rank has its Tick
// whenever it wants one. "#" begins a comment, ";" is between two things that are done, and
// what is between "repeat 9" and "done" is repeated; $i counts.
func TestRank(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	repeat, comment := regexp.MustCompile(`(?s)\nrepeat (\d+)\n(.*?\n)done\n`), regexp.MustCompile(` *#.*`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		testkit.Must(t, err)
		for _, part := range strings.Split(comment.ReplaceAllString(string(text), ""), "\n-- ")[1:] {
			name, body, _ := strings.Cut(part, " --")
			for m := repeat.FindStringSubmatch(body); m != nil; m = repeat.FindStringSubmatch(body) {
				all := "\n"
				for i := range int((&script{T: t}).number(m[1])) {
					all += strings.ReplaceAll(m[2], "$i", strconv.Itoa(i+1))
				}
				body = strings.Replace(body, m[0], all, 1)
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				s := &script{
					T: t, words: map[string]float64{"hold": 1, "free": 2, "finish": 3}, workers: map[string]*Endpoint{}, slow: map[*Endpoint]int{},
					methods: map[string]*Method{}, callers: map[string]*Account{}, calls: map[string]*scripted{},
				}
				s.options.QueueLength = 100
				for line := range strings.SplitSeq(body, "\n") {
					s.run(line)
				}
			})
		}
	}
}

// script is a case that runs.
type script struct {
	*testing.T
	*Rank
	line    string
	options Options
	now     time.Duration
	tick    time.Duration // when the rank wants its next Tick
	ticks   int           // so far
	workers map[string]*Endpoint
	slow    map[*Endpoint]int // how many times as long calls take there
	methods map[string]*Method
	callers map[string]*Account
	calls   map[string]*scripted
	order   []*scripted        // all calls, as they came
	ending  []*scripted        // those that run and will end by themselves
	words   map[string]float64 // what words stand for
	told    []string
}

// scripted is a call of a script.
type scripted struct {
	Ticket
	*script
	name, of string
	lease    Lease
	For      time.Duration // after which it ends by itself
	again    bool
}

// run does what a line says.
func (s *script) run(line string) {
	s.line, s.told = line, nil
	do, want, _ := strings.Cut(line, "->")
	for part := range strings.SplitSeq(do, ";") {
		words := strings.Fields(part)
		if len(words) > 1 && (words[0] == "after" || words[0] == "at") {
			s.pass(s.now*time.Duration(len(words[0])/5) + s.time(words[1]))
			words = words[2:]
		}
		if len(words) > 0 {
			s.do(words[0], words[1:])
		}
		s.settle(false)
	}
	s.expect(want)
}

func (s *script) fail(what string, args ...any) {
	s.Helper()
	s.Fatalf("at %v: %s\n\t%s; told: %.500s", s.now, s.line, fmt.Sprintf(what, args...), strings.Join(s.told, ", "))
}

// pass lets time go by: calls end, and the rank has its Ticks.
func (s *script) pass(then time.Duration) {
	for {
		s.settle(false)
		next, ends := cmp.Or(s.tick, then+1), (*scripted)(nil)
		for _, c := range s.ending {
			if at := c.lease.At() + c.For*time.Duration(max(s.slow[c.lease.Endpoint()], 1)); at < next {
				next, ends = at, c
			}
		}
		if next > then {
			break
		}
		s.now = max(s.now, next)
		if ends == nil {
			s.settle(true)
		} else if ends.end(nil); ends.again {
			ends.Request.Arrived = s.now
			ends.answered(s.Acquire(&ends.Ticket, ends, s.now))
		}
	}
	s.now = then
}

// settle gives the rank a Tick, if it is due or the rank asks for one.
func (s *script) settle(due bool) {
	for ; due || s.Rank != nil && woken(s.Rank); due = false {
		notices, next := s.Tick(s.now, nil)
		s.tick = next
		s.ticks++
		deliver(notices)
	}
}

// expect compares what calls were told with a list like "a1..2 granted w1, 5 queued", in its order.
func (s *script) expect(want string) {
	left := s.told
	for item := range strings.SplitSeq(want, ",") {
		who, what, _ := strings.Cut(strings.TrimSpace(item), " ")
		least, most, list := 0, 0, []string(nil)
		switch n, _ := fmt.Sscanf(who, "%d..%d", &least, &most); {
		case n == 1:
			most = least
		case who == "any":
			most = len(left)
		case who == "granted" || who == "queued" || who == "refused": // the only one
			what, least, most = who+" "+what, 1, 1
		case n == 0 && who != "":
			list = names(who)
			least, most = len(list), len(list)
		}
		for n := range most {
			if len(left) == 0 || len(list) > 0 && !strings.HasPrefix(left[0], list[n]+" ") || !strings.Contains(left[0]+" ", " "+what) {
				if n < least {
					s.fail("not %s", item)
				}
				break
			}
			left = left[1:]
		}
	}
	if len(left) > 0 {
		s.fail("more than that: %d", len(left))
	}
}

// names reads names like a2..4.
func names(text string) (all []string) {
	first, last, _ := strings.Cut(text, "..")
	of := strings.TrimRight(first, "0123456789")
	from, _ := strconv.Atoi(first[len(of):])
	to, _ := strconv.Atoi(last)
	for all = []string{first}; from < to; all = append(all, of+strconv.Itoa(from)) {
		from++
	}
	return all
}

// number reads a number, a time in nanoseconds, or a word that stands for a number.
func (s *script) number(text string) float64 {
	d, wrong := time.ParseDuration(text)
	n, ok := s.words[text]
	if n += float64(d); wrong != nil && !ok {
		if n, wrong = strconv.ParseFloat(text, 64); wrong != nil {
			s.fail("%s is no number", text)
		}
	}
	return n
}

func (s *script) time(text string) time.Duration { return time.Duration(s.number(text)) }

// field is the field that has this name, or nearly so: queue.length is QueueLength.
func field(name string, structs ...any) (f reflect.Value) {
	name = strings.NewReplacer(".", "", "_", "").Replace(name)
	for i := 0; i < len(structs) && !f.IsValid(); i++ {
		f = reflect.Indirect(reflect.ValueOf(structs[i])).FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
	}
	return f
}

// set sets the fields that words like name=value are about, and returns the other words.
func (s *script) set(words []string, structs ...any) (rest []string) {
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		switch f := field(name, structs...); {
		case !ok:
			rest = append(rest, word)
		case name == "avoid":
			f.Set(reflect.ValueOf(s.workers[value]))
		case name == "deadline" || name == "until":
			f.SetInt(int64(s.now + s.time(value)))
		default:
			f.Set(reflect.ValueOf(s.number(value)).Convert(f.Type()))
		}
	}
	return rest
}

// do does one thing.
func (s *script) do(subject string, words []string) {
	if s.Rank == nil && subject != "rank" && subject != "lane" {
		s.Rank = New(s.options)
	}
	switch e, a := s.workers[subject], s.callers[subject]; {
	case subject == "rank":
		if s.options.Order, s.options.Admit = nil, nil; slices.Contains(s.set(words, &s.options), "plain") {
			s.options.Order, s.options.Admit = FIFO, BoundedLength
		}
		if s.Rank != nil {
			deliver(s.Configure(s.options, s.now, nil))
		}
	case subject == "lane":
		s.options.Lanes = append(s.options.Lanes, LaneOptions{Name: words[0]})
		s.set(words, &s.options.Lanes[len(s.options.Lanes)-1])
		s.words[words[0]] = float64(len(s.options.Lanes))
	case subject == "workers":
		for _, slots := range words {
			o, name := EndpointOptions{OnCancel: Free}, fmt.Sprint("w", len(s.workers)+1)
			_, _ = fmt.Sscanf(slots, "%d:%d-%d", &o.Slots, &o.Least, &o.Most)
			s.workers[name] = s.Add(name, o)
			deliver(s.SetReady(s.workers[name], true, s.now, nil))
		}
	case subject == "callers":
		var terms Terms
		for _, name := range s.set(words, &terms) {
			s.callers[name] = s.Open(name, terms)
		}
	case subject == "method" || subject == "unnamed": // which may not exist
		m := cmp.Or(s.methods[words[0]], map[string]*Method{"method": s.Method(words[0]), "unnamed": s.Unnamed()}[subject])
		s.methods[words[0]] = m
		for n := 0; len(words) > 1 && n < int(s.number(append(words, "20")[2])); n++ {
			m.observe(s.time(words[1]), s.now)
		}
	case subject == "outage":
		deliver(s.SetOutage(words[0] == "begins", s.now, nil))
	case subject == "status":
		for _, word := range words {
			s.status(word)
		}
	case e != nil:
		s.turn(e, words)
	case a != nil && words[0] == "closes":
		s.Close(a)
	case a != nil && words[0] == "has": // other terms
		terms := a.terms
		s.set(words, &terms)
		s.Retune(func(key string) Terms {
			return map[bool]Terms{true: terms, false: s.accounts[key].terms}[key == subject]
		}, s.now)
	default:
		for _, c := range s.some(subject, words[0] == "leaves") {
			c.do(words[0], words[1:])
		}
	}
}

// turn does something to a worker.
func (s *script) turn(e *Endpoint, words []string) {
	switch words[0] {
	case "up", "down":
		deliver(s.SetReady(e, words[0] == "up", s.now, nil))
	case "goes":
		s.Remove(e, s.now)
	case "ends": // with its handlers
		deliver(s.EndPauses(e, s.now, nil))
	case "slow":
		s.slow[e] = int(s.number(words[1]))
	}
}

// some are the calls that are named, or all calls of a that run, or that wait as well.
func (s *script) some(subject string, wait bool) (calls []*scripted) {
	if subject == strings.TrimRight(subject, "0123456789") {
		return slices.DeleteFunc(slices.Clone(s.order), func(c *scripted) bool {
			return c.of != subject || c.state == idle || c.state == waiting && !wait
		})
	}
	for _, name := range names(subject) {
		if s.calls[name] == nil {
			s.calls[name] = &scripted{script: s, name: name, of: strings.TrimRight(name, "0123456789")}
			s.order = append(s.order, s.calls[name])
		}
		calls = append(calls, s.calls[name])
	}
	return calls
}

// do has a call do something.
func (c *scripted) do(verb string, words []string) {
	switch strings.TrimSuffix(verb, "s") {
	case "ask":
		c.reads(words)
		c.answered(c.Acquire(&c.Ticket, c, c.now))
	case "hedge":
		c.reads(words)
		if l, ok := c.AcquireFree(&c.Ticket, c.now); ok {
			c.Granted(l)
		}
	case "rejoin":
		l, v := c.Rejoin(&c.Ticket, c, c.now)
		c.answered(l, v, DeadlineExceeded)
	case "stream": // its answer goes on
		c.GoesOn(c.lease, c.now)
	case "end":
		c.end(words)
	case "leave":
		if !c.Leave(&c.Ticket) {
			c.end([]string{"cancelled"})
		}
	default:
		c.fail("nobody can %s", verb)
	}
}

// reads makes the request of a call.
func (c *scripted) reads(words []string) {
	c.Request, c.For, c.again = Request{Account: c.callers[c.of], Arrived: c.now}, 0, false
	for _, word := range c.set(words, &c.Request, c) {
		if c.again = word == "again"; !c.again {
			c.Request.Method = c.methods[word]
		}
	}
}

// end releases the lease of a call.
func (c *scripted) end(words []string) {
	if !c.lease.active() {
		c.fail("%s has no slot", c.name)
	}
	var busy struct{ Until time.Duration }
	how := strings.Join(c.set(words, &busy), "")
	o := slices.Index(strings.Fields("ok failed refused cancelled faulty not_sent maybe_refused lost"), how)
	c.ending = slices.DeleteFunc(c.ending, func(x *scripted) bool { return x == c })
	deliver(c.ReleaseAt(c.lease, OK+Outcome(max(o, 0)), busy.Until, c.now, nil))
}

func (c *scripted) answered(l Lease, v Reply, r Reason) {
	switch v {
	case Granted:
		c.Granted(l)
	case Queued:
		c.tell("queued")
	case Refused:
		c.Refused(r)
	}
}

// Granted implements Waiter.
func (c *scripted) Granted(l Lease) {
	if c.lease = l; c.For > 0 {
		c.ending = append(c.ending, c)
	}
	c.tell("granted " + l.Endpoint().Name())
}

// Refused implements Waiter.
func (c *scripted) Refused(r Reason) { c.tell("refused " + r.String()) }

func (c *scripted) tell(what string) {
	if !c.again {
		c.told = append(c.told, c.name+" "+what)
	}
}

// status compares a value, as in waiting=3, or w1.ghosts=1..2.
func (s *script) status(word string) {
	name, want, _ := strings.Cut(word, "=")
	of, what, dot := strings.Cut(name, ".")
	if !dot {
		of, what = "", name
	}
	seen := map[string][]any{"": {s.Use(s.now), s.Snapshot(), struct {
		Wanted                  bool
		Overloaded, Long, Ticks int
		QueueTime               time.Duration
	}{s.Wanted(), s.Overloaded(), s.LongCalls(s.now), s.ticks, s.QueueTime()}}}
	for i, e := range s.Snapshot().Endpoints {
		seen[e.Name] = []any{e, s.endpoints[i]}
	}
	for _, l := range s.lanes {
		seen[l.name] = []any{l}
	}
	for name, m := range s.methods {
		seen[name] = []any{m.Estimate()}
	}
	for name, a := range s.callers {
		seen[name] = []any{a}
	}
	if c := s.calls[of]; c != nil {
		seen[of] = []any{struct{ Reclaims bool }{s.Reclaims(c.lease, s.now)}}
	}
	n, decided := s.Decisions()[name]
	got := fmt.Sprint(n)
	if !decided {
		got = fmt.Sprint(field(what, seen[of]...))
	}
	least, most, _ := strings.Cut(want, "..")
	if got != want && (s.number(got) < s.number(least) || s.number(got) > s.number(cmp.Or(most, least))) {
		s.fail("%s is %s", name, got)
	}
}
