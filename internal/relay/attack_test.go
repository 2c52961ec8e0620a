package relay

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Paths of calls that an attacker makes.
const (
	largePath  = "/test.Attack/Large"  // 32 KiB
	silentPath = "/test.Attack/Silent" // no answer
)

// servant answers calls as a worker does that has nothing to fear: it is the
// relay that stands between it and the attack.
func servant(g *rig) *goodWorker {
	w := worldOf(g)
	return newGoodWorker(w, w.endpoint("w1", 1000, false))
}

// serve answers all that has come.
func (g *goodWorker) serve() {
	for moved := true; moved; synctest.Wait() {
		synctest.Wait()
		moved = g.work(0)
		for _, s := range g.whole {
			if s.reset || s.path == silentPath {
				continue
			}
			g.headers(s.id, false, responseHead()...)
			if s.path == largePath {
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

// attack is what one connection of a caller does to hurt the others. The step
// is done again and again; i counts.
type attack struct {
	name  string
	begin func(p *testkit.Peer)
	step  func(p *testkit.Peer, i int)

	reason string        // counter of the connection that ends; "": it is merely bounded
	code   http2.ErrCode // of the GOAWAY
	steps  int           // most that can pass
	memory int64         // most bytes of the budget that may be in use
}

func stream(i int) uint32 { return uint32(2*i + 1) }

// onFresh makes a step of a call that is begun and hurt at once.
func onFresh(path string, last testkit.EndStream, hurt func(p *testkit.Peer, id uint32)) func(*testkit.Peer, int) {
	return func(p *testkit.Peer, i int) {
		p.WriteHeaders(stream(i), last, request(path)...)
		hurt(p, stream(i))
	}
}

// testResets is Options.Resets in these tests.
const testResets = 100

const calm = http2.ErrCodeEnhanceYourCalm

// small is enough for what is in flight when calls are small.
const small = 1 << 20

func attacks() []attack {
	allow := h2.CallerAllowances()
	burst := func(k h2.Chore) int { return allow[k].Burst + 2 }
	list := []attack{
		{name: "rapid reset (CVE-2023-44487)", reason: "rapid_reset", steps: 2 * testResets,
			step: onFresh(hello, noEnd, func(p *testkit.Peer, id uint32) { p.WriteRST(id, http2.ErrCodeCancel) })},
		{name: "rapid reset of running calls", reason: "rapid_reset", steps: 2 * testResets,
			step: onFresh(silentPath, end, func(p *testkit.Peer, id uint32) { p.WriteRST(id, http2.ErrCodeCancel) })},
		{name: "SETTINGS flood", reason: "settings_flood", steps: burst(h2.SettingsFlood),
			step: func(p *testkit.Peer, _ int) { p.WriteSettings() }},
		{name: "PING flood", reason: "ping_flood", steps: burst(h2.PingFlood),
			step: func(p *testkit.Peer, _ int) { p.WritePing([8]byte{}) }},
		{name: "PRIORITY flood", reason: "priority_flood", steps: burst(h2.PriorityFlood),
			step: func(p *testkit.Peer, i int) { p.WriteFrame(http2.FramePriority, 0, stream(i), make([]byte, 5)) }},
		{name: "flood of unknown frames", reason: "unknown_frame_flood", steps: burst(h2.UnknownFlood),
			step: func(p *testkit.Peer, _ int) { p.WriteFrame(0x42, 0, 0, nil) }},
		{name: "empty DATA flood", reason: "empty_data", steps: burst(h2.EmptyData),
			begin: func(p *testkit.Peer) { p.WriteHeaders(1, noEnd, request(hello)...) },
			step:  func(p *testkit.Peer, _ int) { p.WriteData(1, noEnd, nil) }},
		{name: "WINDOW_UPDATE by one", reason: "window_update_flood", steps: burst(h2.WindowFlood),
			step: func(p *testkit.Peer, _ int) { p.WriteWindowUpdate(0, 1) }},
		{name: "one-byte window", reason: "window_update_flood", steps: burst(h2.WindowFlood),
			begin: func(p *testkit.Peer) {
				p.WriteSettings(noWindow())
				p.WriteHeaders(1, end, request(largePath)...)
			},
			step: func(p *testkit.Peer, _ int) { p.WriteWindowUpdate(1, 1) }},
		{name: "CONTINUATION flood (CVE-2024-27316)", reason: "continuation_flood", steps: 257,
			begin: func(p *testkit.Peer) { p.WriteHeadersFragment(1, end, false, []byte{0x82}) },
			step:  func(p *testkit.Peer, _ int) { p.WriteContinuation(1, false, []byte{0x82}) }},
		{name: "CONTINUATION flood of large frames", reason: "continuation_flood", steps: 5,
			begin: func(p *testkit.Peer) { p.WriteHeadersFragment(1, end, false, []byte{0x82}) },
			step:  func(p *testkit.Peer, _ int) { p.WriteContinuation(1, false, make([]byte, 16<<10)) }},
		{name: "header list over the limit", reason: "large_header_list", steps: burst(h2.LargeList),
			step: func(p *testkit.Peer, i int) {
				p.WriteBlock(stream(i), end, block(request(hello, "big", strings.Repeat("v", 16<<10))...), 16<<10)
			}},
		{name: "HPACK bomb", reason: "hpack_bomb", steps: 1,
			begin: func(p *testkit.Peer) { p.WriteHeaders(1, end, request(hello, "b", strings.Repeat("b", 3800))...) },
			step: func(p *testkit.Peer, i int) {
				p.WriteBlock(stream(i+1), end, []byte(strings.Repeat("\xbe", 100)), 16<<10)
			}},
		{name: "table size: many updates in a block", reason: "protocol", code: http2.ErrCodeCompression, steps: 1,
			step: func(p *testkit.Peer, i int) {
				p.WriteBlock(stream(i), end, []byte{0x20, 0x3f, 0xe1, 0x1f, 0x20}, 16<<10)
			}},
		{name: "table size: updates in every block", steps: 2000,
			step: func(p *testkit.Peer, i int) {
				update := append([]byte{0x20, 0x3f, 0xe1, 0x1f}, block(request(hello)...)...)
				p.WriteBlock(stream(i), end, append(update, "\x40\x01a\x03bcd"...), 16<<10)
			}},
		{name: "streams above the limit", reason: "excess_stream", steps: 250 + burst(h2.ExcessStream), memory: 250 * (40 << 10),
			begin: func(p *testkit.Peer) { p.WriteSettings(noWindow()) },
			step:  func(p *testkit.Peer, i int) { p.WriteHeaders(stream(i), end, request(largePath)...) }},
		{name: "zero window", steps: 250, memory: 250 * (40 << 10),
			begin: func(p *testkit.Peer) { p.WriteSettings(noWindow()) },
			step:  func(p *testkit.Peer, i int) { p.WriteHeaders(stream(i), end, request(largePath)...) }},
		{name: "frames that pile up for a caller that does not read", reason: "control_flood", steps: 20_000,
			memory: 4 << 20, // of short answers
			begin:  (*testkit.Peer).StopReading,
			// Each is answered at once, and its unfinished request reset.
			step: func(p *testkit.Peer, i int) {
				p.WriteHeaders(stream(i), noEnd, request(hello, "grpc-timeout", "soon")...)
			}},
	}
	for name, hurt := range map[string]func(p *testkit.Peer, id uint32){
		"WINDOW_UPDATE of 0":        func(p *testkit.Peer, id uint32) { p.WriteWindowUpdate(id, 0) },
		"WINDOW_UPDATE too large":   func(p *testkit.Peer, id uint32) { p.WriteWindowUpdate(id, 1<<31-1) },
		"PRIORITY of wrong size":    func(p *testkit.Peer, id uint32) { p.WriteFrame(http2.FramePriority, 0, id, []byte("1234")) },
		"DATA after the end":        func(p *testkit.Peer, id uint32) { p.WriteData(id, noEnd, []byte("x")) },
		"HEADERS after the end":     func(p *testkit.Peer, id uint32) { p.WriteHeaders(id, end, "a", "b") },
		"malformed trailers":        func(p *testkit.Peer, id uint32) { p.WriteHeaders(id, end, "Mal", "formed") },
		"HEADERS that end no calls": func(p *testkit.Peer, id uint32) { p.WriteHeaders(id, noEnd, "a", "b") },
	} {
		last := testkit.EndStream(strings.Contains(name, "after the end"))
		list = append(list, attack{
			name: "MadeYouReset (CVE-2025-8671): " + name, reason: "made_reset", steps: burst(h2.MadeReset),
			step: onFresh(silentPath, last, hurt),
		})
	}
	return list
}

// A test per attack: while it goes on, a caller on another connection of the
// same shard gets the answer of every call before the next piece of the attack;
// the attacker is told ENHANCE_YOUR_CALM within its limit and counted under a
// name of its own; memory stays within the stated bound; and afterwards nothing
// of it is left.
func TestAttacks(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { a.run(t) })
		})
	}
}

func (a attack) run(t *testing.T) {
	t.Helper()
	g := newPipeRig(t, func(o *Options) { o.Resets = testResets })
	good := goodCaller{g: g, p: g.pipeCaller(), worker: servant(g)}
	good.call()
	synctest.Wait()
	before := g.budget.Used()

	p := g.pipeCaller()
	p.Fragile()
	p.AnyOrder()
	p.Skip(testkit.Headers, testkit.Data, testkit.RST, testkit.SettingsAck, testkit.Ping, testkit.PingAck, testkit.WindowUpdate)
	if a.begin != nil {
		a.begin(p)
	}
	a.mount(g, p, &good)
	synctest.Wait()
	a.check(g, p)
	p.Close()
	synctest.Wait()
	good.call()
	synctest.Wait()

	if n := g.Rank(); n.Endpoints[0].InFlight != 0 || g.running() != 0 {
		t.Errorf("left of the attack: %d slots, %d calls", n.Endpoints[0].InFlight, g.running())
	}
	if n := g.callersHere(); n != 1 {
		t.Errorf("%d connections of callers are left, want the good one", n)
	}
	if used := g.budget.Used(); used > before {
		t.Errorf("%d bytes are in use, %d before", used, before)
	}
}

// mount makes the steps in pieces until the connection has ended.
func (a attack) mount(g *rig, p *testkit.Peer, good *goodCaller) {
	g.t.Helper()
	most := max(a.memory, small)
	for at := 0; at <= a.steps && g.ended(ofCaller, a.reason) == 0; {
		p.Batch(func() {
			for range min(50, a.steps+1-at) {
				a.step(p, at)
				at++
			}
		})
		good.call()
		if used := g.budget.Used(); used > most {
			g.t.Fatalf("%d bytes are in use after %d steps, want at most %d", used, at, most)
		}
	}
}

// check looks at what the attacker was told.
func (a attack) check(g *rig, p *testkit.Peer) {
	g.t.Helper()
	ended := g.Stats().Disconnects[string(ofCaller)]
	maps.DeleteFunc(ended, func(_ string, n uint64) bool { return n == 0 })
	if a.reason == "" {
		if len(ended) > 0 {
			g.t.Errorf("ended: %v", ended)
		}
		return
	}
	if ended[a.reason] != 1 || len(ended) != 1 {
		g.t.Errorf("ended: %v, want one for %s", ended, a.reason)
	}
	p.ReadAgain()
	code := a.code
	if code == 0 {
		code = calm
	}
	p.WantGoAway(code)
	p.WantClosed()
}

func (g *rig) ended(s side, reason string) uint64 {
	return g.Stats().Disconnects[string(s)][reason]
}

// goodCaller makes one call after the other.
type goodCaller struct {
	g      *rig
	p      *testkit.Peer
	worker *goodWorker
	next   uint32
}

func (c *goodCaller) call() {
	c.g.t.Helper()
	id := c.next*2 + 1
	c.next++
	c.p.WriteHeaders(id, noEnd, request(hello)...)
	c.p.WriteData(id, end, hi())
	c.worker.serve()
	wantReply(c.p, id)
}

// A worker that makes work loses its connection; its calls are answered, and
// the next ones go to a fresh one.
func TestWorkerThatFloods(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 5)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	worker.Fragile()
	worker.Batch(func() {
		for range h2.WorkerAllowances()[h2.PingFlood].Burst + 1000 {
			worker.WritePing([8]byte{})
		}
	})
	wantStatus(caller, 1, "14", "cabrank: bad response from worker")
	if n := g.ended(ofWorker, "ping_flood"); n != 1 {
		t.Errorf("counted %d times", n)
	}
	worker.Close()
	caller.WriteHeaders(3, end, request(hello)...)
	fresh := accept()
	fresh.WantHeaders(1, end)
	reply(fresh, 1)
	wantReply(caller, 3)
}

// The log has one line a minute for each reason, and says how many it has not
// said.
func TestPartingLog(t *testing.T) {
	r := &Relay{disconnectLogs: map[disconnect]disconnectLog{}}
	pings, resets := disconnect{ofCaller, "ping_flood"}, disconnect{ofCaller, "rapid_reset"}
	for i, tt := range []struct {
		what   disconnect
		at     time.Duration
		unsaid int
		say    bool
	}{
		{pings, 0, 0, true}, {resets, 1, 0, true}, {pings, time.Second, 0, false},
		{pings, time.Minute - 1, 0, false}, {pings, time.Minute, 2, true}, {pings, time.Hour, 0, true},
	} {
		if unsaid, say := r.mayLog(tt.what, tt.at); unsaid != tt.unsaid || say != tt.say {
			t.Errorf("step %d: %d, %t", i, unsaid, say)
		}
	}
}

// callersHere returns how many connections the first shard has of callers.
func (g *rig) callersHere() (n int) {
	st := g.shards[0]
	st.do(func() { n = len(st.callers) })
	return n
}
