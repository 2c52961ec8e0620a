//go:build real || soak

package socket_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// `make bench-socket` runs what is here; docs/socket.md has results. CPU and commands of
// Redis per call are compared, which depend less on the machine than calls per second do.

// costRoles are the processes of the time, and one that does nothing but write.
func costRoles() []harness.Role {
	at := func(socket string) *redisd.Server { return &redisd.Server{Socket: socket} }
	return []harness.Role{
		{Name: "old-server", Run: func(args []string) error {
			return serveRole(oldjuggler.NewServer(oldjuggler.Options{Dial: at(args[0]).Dial}))
		}},
		{Name: "old-callee", Run: func(args []string) error {
			callee, err := oldjuggler.NewCallee(at(args[0]).Dial, 100, oldjuggler.TestFunctions())
			if err != nil {
				return err
			}
			fmt.Fprintln(os.Stdout, "ready")
			return callee.Run()
		}},
		{Name: "bare", Run: func([]string) error { return serveRole(&bare{}) }},
	}
}

// serveRole serves sockets, and says first where.
func serveRole(handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "ws://%s/ws\n", listener.Addr())
	return http.Serve(listener, handler)
}

// bare writes, for each PUB that comes in, an event of the same bytes to all who have
// sent a SUB, one write after the other: what nobody can do with less.
type bare struct {
	mu      sync.Mutex
	members []net.Conn
}

// ServeHTTP serves one socket until it ends.
func (b *bare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := (&websocket.Upgrader{Subprotocols: []string{oldjuggler.Protocol}}).Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer ws.Close()
	for _, message, err := ws.ReadMessage(); err == nil; _, message, err = ws.ReadMessage() {
		b.serve(ws.NetConn(), message)
		ack := fmt.Sprintf(`{"meta":{"type":8,"uuid":"%s"},"payload":{}}`+"\n", oldjuggler.NewUUID())
		if ws.WriteMessage(websocket.TextMessage, []byte(ack)) != nil {
			return
		}
	}
}

func (b *bare) serve(conn net.Conn, message []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes.Contains(message, []byte(`"type":3`)) {
		b.members = append(b.members, conn)
		return
	}
	text := fmt.Sprintf(`{"meta":{"type":10,"uuid":"%s"},"payload":{"for":"%s","channel":"c0","args":"%s"}}`+"\n",
		oldjuggler.NewUUID(), oldjuggler.NewUUID(), strings.Repeat("x", eventBytes))
	frame := append([]byte{0x81, 126, byte(len(text) >> 8), byte(len(text))}, text...)
	for _, conn := range b.members {
		_, _ = conn.Write(frame) // who is gone is missed by the counter
	}
}

// arm is the processes of one way to do it.
type arm struct {
	url   string
	pids  map[string]int // of the server, and of its callee and Redis if it has them
	redis *redisd.Server // nil: there is none
}

// startArm starts one: the old server; with one side of ours over Redis, mixed and redis,
// with both, new; without, memory; over gRPC workers, workers; bare. A 1 at its end stands
// for calls by juggler.1, proto for those by juggler.1.proto.
func startArm(b *testing.B, name string) *arm {
	b.Helper()
	a, self, store := &arm{pids: map[string]int{}}, harness.OwnBinary(b), ""
	role := func(as, role string) (said string) {
		p := harness.StartProcess(b, nil, self, role, store)
		p.Wait(harness.Patience, "it to serve", func() bool { return strings.Contains(p.Output(), "\n") })
		a.pids[as] = p.PID
		return strings.TrimSpace(p.Output())
	}
	serve := func(flags ...string) string {
		c, url := startServe(b, append(flags, "--max-handshakes", "100000")...)
		a.pids["server"] = c.PID
		return url
	}
	kind := strings.TrimSuffix(strings.TrimSuffix(name, "proto"), "1")
	if slices.Contains([]string{"old", "mixed", "redis", "new"}, kind) {
		server := redisd.Start(b)
		a.redis, a.pids["Redis"], store = server, server.PID(), server.Socket
		if kind == "old" || kind == "redis" {
			role("callee", "old-callee")
		} else {
			a.pids["callee"] = startCalleeProcess(b, server).PID
		}
	}
	switch kind {
	case "old", "mixed":
		a.url = role("server", "old-server")
	case "redis", "new":
		a.url = serve("--redis", "unix://"+store)
	case "memory":
		a.url = serve("--test-functions")
	case "workers":
		c := harness.StartCabrankEnv(b, []string{"CABRANK_SOCKET_METHODS=/cabrank.demo.v1.Greeter/*"}, "--socket-path", "/ws", "--workers", "2", "--slots", "50",
			"--transport", "unix", "--", harness.CabrankBinary(b), "demo", "worker", "--work", "0s")
		c.WaitReady(harness.Patience)
		a.url, a.pids["server"] = "ws://"+c.Addr+"/ws", c.PID
	default:
		a.url = role("server", name)
	}
	return a
}

// spent is the CPU that each process has used, in steps of 10 ms. Source: proc(5), stat.
func (a *arm) spent(b *testing.B) map[string]time.Duration {
	b.Helper()
	all := map[string]time.Duration{}
	for name, pid := range a.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		testkit.Must(b, err)
		_, after, _ := strings.Cut(string(text), ") ") // the name may have blanks
		for _, ticks := range strings.Fields(after)[11:13] {
			n, _ := strconv.Atoi(ticks)
			all[name] += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return all
}

// report tells what each process has spent since before, in us for each of so many.
func (a *arm) report(b *testing.B, before map[string]time.Duration, n int, unit string) {
	b.Helper()
	sum := 0.0
	for name, now := range a.spent(b) {
		us := float64((now - before[name]).Microseconds()) / float64(n)
		sum += us
		b.ReportMetric(us, name+"-us/"+unit)
	}
	b.ReportMetric(sum, "all-us/"+unit)
}

// benchEach measures each arm once: the rounds are in the Makefile, so that a minute in
// which the machine is busy is not one arm's alone.
func benchEach(b *testing.B, arms []string, measure func(b *testing.B, name string, a *arm)) {
	b.Helper()
	for _, name := range arms {
		b.Run(name, func(b *testing.B) {
			measure(b, name, startArm(b, name))
			b.ReportMetric(0, "ns/op") // means nothing here, and is not shown
		})
	}
}

// callsOf are a call of test.echo, or of the greeter, of "hello" by each subprotocol, of
// which an answer has the text and an ack has not.
func callsOf(arm string) (protocol string, kind int, call string) {
	const greeter = "/cabrank.demo.v1.Greeter/SayHello"
	ofWorkers := strings.NewReplacer()
	if strings.HasPrefix(arm, "workers") {
		ofWorkers = strings.NewReplacer("test.echo", greeter, `"args":"hello"`, `"args":{"name":"hello"}`,
			"\x09test.echo\x3a\x07\"hello\"", string(rune(len(greeter)))+greeter+"\x42\x07\x0a\x05hello") // field 1
	}
	switch {
	case strings.HasSuffix(arm, "proto"): // call, number 1, test.echo, "hello", 10,000 ms
		return socket.Protocol1Proto, websocket.BinaryMessage, ofWorkers.Replace("\x08\x01\x10\x01\x22\x09test.echo\x3a\x07\"hello\"\x48\x90\x4e")
	case strings.HasSuffix(arm, "1"):
		return socket.Protocol1, websocket.TextMessage, ofWorkers.Replace(`{"type":"call","id":1,"uri":"test.echo","timeout":10000,"args":"hello"}`)
	}
	return socket.Protocol, websocket.TextMessage, ofWorkers.Replace(`{"meta":{"type":1,"uuid":"$id"},"payload":{"uri":"test.echo","timeout":10000000000,"args":"hello"}}`)
}

// callFor has sockets call for so long, each one call at a time, and returns how long each
// call took.
func callFor(b *testing.B, arm string, sockets []*websocket.Conn, lasts time.Duration) (took []time.Duration) {
	b.Helper()
	_, kind, call := callsOf(arm)
	var all sync.WaitGroup
	each, ends := make([][]time.Duration, len(sockets)), time.Now().Add(lasts)
	for i, ws := range sockets {
		all.Go(func() {
			for began := time.Now(); began.Before(ends); began = time.Now() {
				text, results := strings.Replace(call, "$id", string(oldjuggler.NewUUID()), 1), 0
				err := ws.WriteMessage(kind, []byte(text))
				for range 2 { // the result, and the ack, which may come later
					var got []byte
					if err == nil {
						_, got, err = ws.ReadMessage()
					}
					results += bytes.Count(got, []byte("hello"))
				}
				if err != nil || results != 1 {
					b.Errorf("%d results, %v", results, err)
					return
				}
				each[i] = append(each[i], time.Since(began))
			}
		})
	}
	all.Wait()
	return slices.Concat(each...)
}

// A hundred callers of test.echo, each of whom waits for the answer.
func BenchmarkCalls(b *testing.B) {
	arms := []string{"old", "mixed", "redis", "new", "memory", "memory1", "memoryproto", "workers", "workers1", "workersproto"}
	benchEach(b, arms, func(b *testing.B, name string, a *arm) {
		b.Helper()
		protocol, _, _ := callsOf(name)
		sockets := openMany(b, a.url, protocol, 100)
		callFor(b, name, sockets, time.Second) // not counted
		commands := func() map[string]int {
			if a.redis == nil {
				return nil
			}
			return commandCounts(b, dialRedis(b, a.redis))
		}
		before, asked, began := a.spent(b), commands(), time.Now()
		took := callFor(b, name, sockets, 5*time.Second)
		seconds, n := time.Since(began).Seconds(), len(took)
		testkit.Need(b, n != 0, "nothing was answered")
		a.report(b, before, n, "call")
		slices.Sort(took)
		b.ReportMetric(float64(n)/seconds, "calls/s")
		b.ReportMetric(took[n/2].Seconds()*1e3, "p50-ms")
		b.ReportMetric(took[n*99/100].Seconds()*1e3, "p99-ms")
		for command, times := range commands() {
			if each := float64(times-asked[command]) / float64(n); each > 0.01 {
				b.ReportMetric(each, command+"/call")
			}
		}
	})
}

// eventBytes is the text of an event.
const eventBytes = 100

// audience counts what comes to sockets.
type audience struct {
	got, astray atomic.Int64 // astray: before one that was published earlier
}

func (l *audience) count(ws *websocket.Conn) {
	last := 0
	for _, message, err := ws.ReadMessage(); err == nil; _, message, err = ws.ReadMessage() {
		// The place of an event is at the beginning of its text.
		if _, text, ok := bytes.Cut(message, []byte(`"args":"`)); ok && len(text) > 6 {
			if number, err := strconv.Atoi(string(text[:6])); err == nil {
				if number < last {
					l.astray.Add(1)
				}
				last = max(last, number)
			}
		}
		l.got.Add(1)
	}
}

// One publisher and 1,000 sockets that have subscribed: 40 events 50 ms apart, then 100 at
// once.
func BenchmarkEvents(b *testing.B) {
	benchEach(b, []string{"bare", "old", "mixed", "redis", "new", "memory"}, func(b *testing.B, _ string, a *arm) {
		b.Helper()
		const sockets = 1000
		var heard audience
		for _, ws := range join(b, openMany(b, a.url, oldjuggler.Protocol, sockets), 1) {
			go heard.count(ws) // ends with the socket
		}
		publisher, published := dialOld(b, a.url), 0
		publish := func(n int, pause time.Duration) {
			before := a.spent(b)
			for range n {
				_, err := publisher.Pub("c0", fmt.Sprintf("%06d%s", published, strings.Repeat("x", eventBytes-6)))
				testkit.Must(b, err)
				published++
				<-time.After(pause)
			}
			testkit.Eventually(b, harness.Patience, "all events", func() bool { return heard.got.Load() == int64(published*sockets) })
			a.report(b, before, n*sockets, map[bool]string{true: "apart", false: "at-once"}[pause > 0])
		}
		publish(40, 50*time.Millisecond)
		began := time.Now()
		publish(100, 0)
		b.ReportMetric(100*sockets/time.Since(began).Seconds(), "deliveries/s")
		b.ReportMetric(float64(heard.astray.Load()), "astray")
	})
}

// Sockets that do nothing, and then subscribe: what the server has of memory and of open
// files. The old one has not enough of those for ten thousand.
func BenchmarkIdle(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		arms := []string{"old", "mixed", "redis", "new", "memory"}
		if n > 1000 {
			arms = arms[2:]
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			benchEach(b, arms, func(b *testing.B, _ string, a *arm) {
				b.Helper()
				pid := a.pids["server"]
				openMany(b, a.url, oldjuggler.Protocol, 10) // what is there for the first ones is no part
				before, files := leastKiB(b, pid), openFiles(b, pid)
				sockets := openMany(b, a.url, oldjuggler.Protocol, n)
				b.ReportMetric(float64(leastKiB(b, pid)-before)/float64(n), "KiB/socket")
				b.ReportMetric(float64(openFiles(b, pid)-files)/float64(n), "files/socket")
				join(b, sockets, 1)
				b.ReportMetric(float64(leastKiB(b, pid)-before)/float64(n), "KiB-subscribed/socket")
			})
		})
	}
}

// leastKiB is the least memory of a few looks half a second after what has happened.
func leastKiB(b *testing.B, pid int) int {
	b.Helper()
	var seen []int
	for range 5 {
		<-time.After(100 * time.Millisecond)
		seen = append(seen, harness.RSSKiB(b, pid))
	}
	return slices.Min(seen)
}

func openFiles(b *testing.B, pid int) int {
	b.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	testkit.Must(b, err)
	return len(entries)
}
