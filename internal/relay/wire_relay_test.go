package relay

import (
	"crypto/tls"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// line does what a line says.
func (w *wire) line(words []string) {
	defer func() { // of a word too few, or a field that is none
		if why := recover(); why != nil {
			w.Fatalf("%v", why)
		}
	}()
	verb, args := words[0], words[1:]
	if verb == "w1" && w.bringsW1 {
		w.rig()
	}
	switch {
	case verb == "rig": // Field=value of Options, before all else
		w.change = append(w.change, func(o *Options) { w.set(reflect.ValueOf(o).Elem(), args) })
	case verb == "rule": // the same of a stats.MethodRule, of hello unless it has a Pattern
		rule := stats.MethodRule{Pattern: hello}
		w.set(reflect.ValueOf(&rule).Elem(), args)
		w.change = append(w.change, func(o *Options) {
			o.Methods, o.RetryBudget = append(o.Methods, rule), stats.RetryBudget{PerSecond: 1000}
		})
	case verb == "lane": // NAME Field=value of Lane
		lane := Lane{LaneOptions: rank.LaneOptions{Name: args[0]}}
		w.set(reflect.ValueOf(&lane).Elem(), args[1:])
		w.change = append(w.change, func(o *Options) { o.Lanes = append(o.Lanes, lane) })
	case verb == "auth": // PATHS [TIME]: tokens allow what begins so, for so long
		w.auth = &tokens{may: args[0], ends: w.duration(append(args, "0")[1])}
		w.change = append(w.change, withTokens(w.auth))
	case len(args) > 3 && (args[1] == ">" || args[1] == "<>"): // c 1 > w1 3 call
		to, rest := args[:1], args[3:] // the same stream there
		if rest[0][0] >= '0' && rest[0][0] <= '9' {
			to, rest = rest[:1], rest[1:]
		}
		w.frames(verb, true, slices.Concat(args[:1], rest))
		w.frames(args[2], false, slices.Concat(to, rest))
		if args[1] == "<>" {
			w.frames(args[2], true, append(to, "reply"))
			w.frames(verb, false, []string{args[0], "reply"})
		}
	case len(args) > 1 && (args[0] == ">" || args[0] == "<"):
		w.frames(verb, args[0] == ">", args[1:])
	case len(args) > 0 && (w.peers[verb] != nil || w.conns[verb] != nil || w.locals[verb] != nil || w.http1s[verb] != nil || verb == "c"):
		w.does(verb, args[0], args[1:])
	default:
		verbs := w.places(args)
		maps.Copy(verbs, w.acts(args))
		if verbs[verb] == nil {
			synctest.Wait()
			maps.Copy(verbs, w.checks(args))
			for what, n := range w.rig().numbers() { // least..most, or exactly that
				verbs[what] = func() { w.within(what, n, args[0]) }
			}
		}
		w.pick(verb, verbs)
	}
}

func (w *wire) rig() *rig {
	if w.g == nil {
		var telling sync.Mutex // of shards
		told := func(o *Options) {
			o.Access = func(a *Access) {
				telling.Lock()
				defer telling.Unlock()
				w.told = append(w.told, wireTold{*a, string(a.Path)})
			}
		}
		w.g = newPipeRig(w, append([]func(*Options){w.log.into, told}, w.change...)...)
		if w.bringsW1 {
			w.places([]string{"w1", "1"})["worker"]()
		}
	}
	return w.g
}

// peer returns a peer by its name. The caller c comes when it is first named.
func (w *wire) peer(name string) *testkit.Peer {
	if w.peers[name] == nil {
		if name != "c" {
			w.Fatalf("there is no %s", name)
		}
		w.peers[name] = w.rig().pipeCaller()
	}
	return w.peers[name]
}

// places brings in callers and workers. Nobody can connect to one that is nowhere, nobody reads what is sent to a stuck worker, not
// even its transport; a silent one says nothing.
func (w *wire) places(args []string) map[string]func() {
	g := w.rig()
	return map[string]func(){
		"caller": func() { // NAME [SETTING=value…], NAME silent, or NAME from=ADDRESS
			if len(args) > 1 && strings.HasPrefix(args[1], "from=") {
				p, in := g.pipeFrom(args[1][len("from="):])
				if w.peers[args[0]] = p; !in {
					w.Fatalf("it was not let in")
				}
				return
			}
			w.peers[args[0]] = testkit.NewCaller(w, g.dialPipe())
			if len(args) < 2 || args[1] != "silent" {
				w.greet(args[0], args[1:])
			}
		},
		"local": func() { w.locals[args[0]] = w.newLocal(args[1:]) }, // NAME Field=value of Caller
		"http1": func() { // NAME [ADDRESS], over HTTP/1
			ours, theirs := net.Pipe()
			if w.http1s[args[0]] = newHTTP1Caller(w, theirs); len(args) > 1 {
				ours = addressed{ours, args[1]}
			}
			g.ServeConn(ours)
		},
		"tls": func() { // NAME [CERTIFICATE], over TLS
			w.peers[args[0]] = testkit.NewCaller(w, w.dialTLS("h2", append(args, "")[1]))
			w.greet(args[0], nil)
		},
		"tlshttp1": func() { w.http1s[args[0]] = newHTTP1Caller(w, w.dialTLS("http/1.1", append(args, "")[1])) },
		"overtls":  func() { w.peers[args[0]] = w.overTLS() }, // NAME, whose connection was accepted elsewhere
		"worker": func() { // NAME SLOTS [elsewhere | silent | stuck | nowhere] [SETTING=value…]
			how := append(args, "")[2]
			e := g.AddEndpoint(args[0], int(w.number(args[1])), how != "elsewhere")
			if w.endpoints[args[0]] = e; how == "nowhere" {
				g.Up(e, "none", "") // dials fail at once
				return
			}
			w.conns[args[0]] = g.pipe(e)
			switch how {
			case "stuck":
			case "silent":
				w.reads(args[0])
			default:
				w.greet(args[0], slices.DeleteFunc(args[2:], func(a string) bool { return a == "elsewhere" }))
			}
		},
		"servant": func() { // NAME SLOTS, which serves as it is told by "served"
			of := worldOf(g)
			w.endpoints[args[0]] = of.endpoint(args[0], int(w.number(args[1])), false)
			w.servant = newGoodWorker(of, w.endpoints[args[0]])
		},
		"turnedaway": func() { // ADDRESS
			if _, in := g.pipeFrom(args[0]); in {
				w.Errorf("it was let in")
			}
		},
		"attach": func() { // NAME ENDPOINT [silent | SETTING=value…]: one more connection, which is preferred
			w.conns[args[0]] = g.attach(w.endpoint(args[1]))
			if len(args) < 3 || args[2] != "silent" {
				w.greet(args[0], args[2:])
			}
		},
		"up": func() { // ENDPOINT NAME: its next worker
			w.conns[args[1]] = g.pipe(w.endpoint(args[0]))
			delete(w.peers, args[1])
			w.greet(args[1], args[2:])
		},
		"greets": func() { w.greet(args[0], args[1:]) }, // NAME [SETTING=value…], that did not yet
	}
}

// reads begins to read what comes to a worker.
func (w *wire) reads(name string) {
	if w.peers[name] == nil {
		w.peers[name] = testkit.NewWorker(w, w.conns[name])
	}
}

func (w *wire) greet(name string, settings []string) {
	w.reads(name)
	w.peers[name].Greet(w.settings(settings)...)
	w.peers[name].Skip(testkit.WindowUpdate)
}

func (w *wire) endpoint(name string) *Endpoint {
	if w.endpoints[name] == nil {
		w.Fatalf("there is no endpoint %s", name)
	}
	return w.endpoints[name]
}

// acts are what the relay does, and time.
func (w *wire) acts(args []string) map[string]func() {
	g := w.rig()
	return map[string]func(){
		"after":  func() { pass(w.duration(args[0])) },
		"settle": synctest.Wait, // until nobody has anything to do
		"clock":  func() { w.began = time.Now() },
		"down":   func() { g.Down(w.endpoint(args[0])) },
		"cut":    func() { g.Cut(w.endpoint(args[0])) },
		"remove": func() { g.RemoveEndpoint(w.endpoint(args[0])) },
		"outage": func() { g.Outage(args[0] == "on") },
		"close":  func() { g.Close() },
		"forget": func() { w.change = nil },        // the changes by rig and rule
		"reload": func() { g.reload(w.change...) }, // to all that rig and rule have said by now
		"drain": func() { // for so long at most; the script goes on
			w.hurry = make(chan struct{})
			w.drained = g.drain(w.duration(args[0]), w.hurry)
			synctest.Wait()
		},
		"stopserving": g.StopServing,
		"describe": func() { // NAME SERVICE=true or =false…
			services := map[string]bool{}
			for _, a := range args[1:] {
				name, serves, _ := strings.Cut(a, "=")
				services[name] = serves == "true"
			}
			g.Describe(w.endpoint(args[0]), services)
		},
		"suspect":    func() { g.Suspect(w.endpoint(args[0]), true) },
		"failsintwo": func() { g.failInTwo.Store(true) }, // some worker has failed so
		"otherkeys":  func() { w.auth.epoch.Add(1) },
		"looks": func() { // stop, or go: at tokens
			if args[0] == "go" {
				close(w.auth.stop)
				return
			}
			w.auth.stop = make(chan struct{})
		},
		"shed": g.shedOne, // a call that has been to the rank
		"late": func() { // TIME WORKER STREAM frame: a turn begins, and so much later reads what was sent
			w.rig().readLate(w.endpoint(args[1]), w.duration(args[0]), w.encoded(args[1], args[2:]))
		},
		"hurry": func() { close(w.hurry) },
		"taken": func() { g.budget.Add(w.number(args[0])) }, // bytes of the budget, by nobody
		"release": func() { // so many handlers
			for range w.number(args[0]) {
				w.release <- struct{}{}
			}
		},
		"drained": func() { w.drained() },
	}
}

// checks compare. Of counters those that are named; of doors, retries, denied, hedges and codes
// all others have to be 0.
func (w *wire) checks(args []string) map[string]func() {
	g, stats := w.rig(), w.rig().Stats()
	number := func() int64 { return w.number(args[0]) }
	return map[string]func(){
		"took":     func() { w.took(args[0]) }, // since clock, or the beginning
		"waiting":  func() { g.wantWaiting(int(number())) },
		"inflight": func() { g.wantInFlight(int(number())) },
		"serving":  func() { w.texts([]string{fmt.Sprint(g.Serving())}, args) },
		"methods": func() {
			var names []string
			for _, m := range stats.Methods {
				names = append(names, m.Method)
			}
			w.texts(slices.Sorted(slices.Values(names)), args)
		},
		"keys":           func() { w.texts(g.keyNames(), args) },
		"counted":        func() { w.counters(stats.Refusals, args, false) },
		"doors":          func() { w.counters(callsOf(stats.Doors), args, true) },
		"partings":       func() { w.counters(stats.Disconnects["caller"], args, true) },
		"workerpartings": func() { w.counters(stats.Disconnects["worker"], args, true) },
		"decisions":      func() { w.counters(g.rank.Decisions(), args, false) },
		"retries":        func() { w.counters(stats.Retries, args, true) },
		"denied":         func() { w.counters(stats.RetriesDenied, args, true) },
		"hedges":         func() { w.counters(stats.Hedges, args, true) },
		"codes":          func() { w.counters(stats.of(w, args[0]).Codes, args[1:], true) }, // METHOD CODE=count…
		"seconds":        func() { w.seconds(stats.of(w, args[0]), args[1:]) },              // METHOD Wait, Work or Seconds=time…
		"load":           func() { w.fields(reflect.ValueOf(g.Load()), args) },              // Field=value
		"activity":       func() { w.fields(reflect.ValueOf(g.Activity(w.endpoint(args[0]))), args[1:]) },
		"endpoint":       func() { w.fields(reflect.ValueOf(*w.state(args[0])), args[1:]) }, // NAME Field=value of rank.EndpointState
		"gone": func() {
			if w.state(args[0]) != nil {
				w.Errorf("it is there")
			}
		},
		"nomorecalls": w.wantNoMoreCalls, // of guests
		"asked":       func() { w.auth.wantAsked(w, int(number())) },
		"tells":       func() { w.same("calls", int64(len(w.told)), number()) },
		"told":        func() { w.fields(reflect.ValueOf(w.told[number()]), args[1:]) },                  // N Field=value of Access
		"logged":      func() { w.same("lines", int64(w.log.count(w.unquoted(args[1:])...)), number()) }, // with each of these texts
		"longcalls":   func() { w.same("long calls", int64(g.Rank().LongCalls), number()) },
		"sent": func() { // PEERS STREAM or all, least..most bytes of DATA
			n := int64(0)
			for name, p := range w.peers {
				if ok, _ := path.Match(args[0], name); ok && args[1] == "all" {
					n += p.Sent(0)
				} else if ok {
					n += p.Sent(uint32(w.number(args[1])))
				}
			}
			w.within("bytes", n, args[2])
		},
		"pace": func() { // NAME usual or slower
			if s := w.state(args[0]); (s.Pace > 1) != (args[1] == "slower") {
				w.Errorf("%v times slower than usual", s.Pace)
			}
		},
	}
}

// state is nil for an endpoint that is none.
func (w *wire) state(name string) *rank.EndpointState {
	for _, s := range w.g.Rank().Endpoints {
		if s.Name == name {
			return &s
		}
	}
	return nil
}

func (w *wire) texts(got, want []string) {
	if !slices.Equal(got, w.unquoted(want)) {
		w.Errorf("got %q", got)
	}
}

func (w *wire) unquoted(words []string) []string {
	for i := range words {
		words[i] = w.unquote(words[i])
	}
	return words
}

func (w *wire) seconds(of stats.MethodStats, want []string) {
	for _, a := range want {
		name, want, _ := strings.Cut(a, "=")
		got := reflect.ValueOf(of).FieldByName(name).FieldByName("Sum").Float()
		if d := w.duration(want).Seconds(); math.Abs(got-d) > d/100 {
			w.Errorf("%s: %v s", name, got)
		}
	}
}

// took compares a time: 5s is exactly that, and a tick of the wheel, 4s..5s between.
func (w *wire) took(want string) {
	took := time.Since(w.began)
	first, last, span := strings.Cut(want, "..")
	if !span {
		last = first + "+2ms"
	}
	if took < w.duration(first) || took > w.duration(last) {
		w.Errorf("took %v", took)
	}
}

func (w *wire) same(what string, got, want int64) {
	if got != want {
		w.Errorf("%s: got %d", what, got)
	}
}

// within compares with least..most, or with one number.
func (w *wire) within(what string, got int64, want string) {
	least, most, span := strings.Cut(want, "..")
	if !span {
		most = least
	}
	if got < w.number(least) || got > w.number(most) {
		w.Errorf("%s: got %d", what, got)
	}
}

// counters compares those that are named; all says that all others are 0.
func (w *wire) counters(got map[string]uint64, want []string, all bool) {
	left := maps.Clone(got)
	for _, a := range want {
		name, n, _ := strings.Cut(a, "=")
		if _, ok := got[name]; !ok {
			w.Fatalf("there is no %s: %v", name, got)
		}
		w.within(name, int64(got[name]), n)
		delete(left, name)
	}
	for name, n := range left {
		if all {
			w.same(name, int64(n), 0)
		}
	}
}

// fields compares fields of a struct as fmt prints them, of times how long ago they were.
func (w *wire) fields(of reflect.Value, want []string) {
	for _, a := range want {
		name, value, _ := strings.Cut(a, "=")
		got := fieldOf(of, name).Interface()
		if at, ok := got.(time.Time); ok {
			if got = time.Since(at).Round(10 * time.Millisecond); at.IsZero() {
				got = "none"
			}
		}
		if fmt.Sprint(got) != value {
			w.Errorf("%s: got %v", name, got)
		}
	}
}

// set sets fields of a struct, of structs in it by A.B; a name alone is true.
func (w *wire) set(of reflect.Value, words []string) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		field := fieldOf(of, name)
		switch f := field.Addr().Interface().(type) {
		case *bool:
			*f = true
		case *string:
			*f = w.unquote(value)
		case *float64:
			*f = w.float(value)
		case *func() float64:
			*f = func() float64 { return w.float(value) }
		case *rank.OnCancel:
			*f = map[string]rank.OnCancel{"free": rank.Free, "hold": rank.Hold, "finish": rank.Finish}[value]
		case *callers.KeySource:
			*f = map[string]callers.KeySource{"nothing": callers.ByNothing, "peer": callers.ByPeer, "authority": callers.ByAuthority, "metadata": callers.ByMetadata}[value]
		case **tls.Config:
			*f = w.tlsConfig(value)
		case *func(*tls.ConnectionState) (string, error):
			*f = identity(value == "refuses")
		case *func(*Guest):
			*f = w.serveHTTP1()
		case *func(Head) func(*Exchange):
			*f = w.other(value)
		case *door.Proxies:
			for prefix := range strings.SplitSeq(value, ",") {
				*f = append(*f, netip.MustParsePrefix(prefix))
			}
		case *[]string:
			*f = strings.Split(value, ",")
		case *[]grpcwire.Code:
			for code := range strings.SplitSeq(value, ",") {
				*f = append(*f, grpcwire.Code(w.number(code)))
			}
		case *uint32:
			*f = uint32(w.number(value))
		default:
			field.SetInt(w.number(value))
		}
	}
}

func fieldOf(of reflect.Value, name string) reflect.Value {
	for part := range strings.SplitSeq(name, ".") {
		of = of.FieldByName(part)
	}
	return of
}

func (w *wire) float(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		w.Fatalf("%v", err)
	}
	return f
}

// callsOf adds up the calls of each door that had any.
func callsOf(doors map[string]map[string]uint64) map[string]uint64 {
	all := make(map[string]uint64)
	for name, codes := range doors {
		for _, n := range codes {
			all[name] += n
		}
	}
	return all
}

// serve has a servant answer all that has come, as a worker does that has nothing to fear.
func (g *goodWorker) serve() {
	for moved := true; moved; synctest.Wait() {
		synctest.Wait()
		moved = g.work(0)
		for _, s := range g.whole {
			if s.reset || s.path == "/test.Attack/Silent" {
				continue
			}
			g.headers(s.id, false, responseHead()...)
			if s.path == "/test.Attack/Large" {
				g.data(s.id, false, 32<<10)
			} else {
				_ = g.framer.WriteData(s.id, false, hi())
			}
			g.headers(s.id, true, "grpc-status", "0")
		}
		g.whole = nil
		g.flush()
	}
}
