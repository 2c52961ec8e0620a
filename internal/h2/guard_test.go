package h2

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// assault is a chore that a peer has us do again and again.
type assault struct {
	name  string
	chore Chore
	// most is how many pass at once if something was earned before; 0: the burst.
	most   func(a Allowance) int
	before func(r *rig)
	one    func(i int) *wireBytes
}

// openForever begins a call whose answer never ends.
func openForever(r *rig) { r.feed(wire().request(1, false)) }

// requestAnd is a new stream, followed by what w adds.
func requestAnd(add func(w *wireBytes, id uint32)) func(int) *wireBytes {
	return func(i int) *wireBytes {
		id := uint32(2*i + 1)
		w := wire().request(id, false)
		add(w, id)
		return w
	}
}

// assaults of callers. RFC 9113 10.5 names most of them.
var assaults = []assault{
	{name: "CVE-2023-44487: rapid reset", chore: RapidReset,
		one: requestAnd(func(w *wireBytes, id uint32) { w.rst(id, Cancel) })},
	{name: "RST_STREAM for closed streams", chore: RapidReset, before: openForever,
		one: func(int) *wireBytes { return wire().rst(1, Cancel) }},
	{name: "CVE-2025-8671: WINDOW_UPDATE of 0", chore: MadeReset,
		one: requestAnd(func(w *wireBytes, id uint32) { w.window(id, 0) })},
	{name: "CVE-2025-8671: WINDOW_UPDATE too large", chore: MadeReset,
		one: requestAnd(func(w *wireBytes, id uint32) { w.window(id, 1<<31-1) })},
	{name: "CVE-2025-8671: PRIORITY of wrong size", chore: MadeReset,
		one: requestAnd(func(w *wireBytes, id uint32) { w.frame(framePriority, 0, id, "1234") })},
	{name: "CVE-2025-8671: DATA after the end", chore: MadeReset,
		one: func(i int) *wireBytes {
			return wire().request(uint32(2*i+1), true).data(uint32(2*i+1), false, "x")
		}},
	{name: "CVE-2025-8671: HEADERS after the end", chore: MadeReset,
		one: func(i int) *wireBytes {
			return wire().request(uint32(2*i+1), true).headers(uint32(2*i+1), true, "a", "b")
		}},
	{name: "CVE-2025-8671: HEADERS that do not end the stream", chore: MadeReset,
		one: requestAnd(func(w *wireBytes, id uint32) { w.headers(id, false, "a", "b") })},
	{name: "CVE-2025-8671: malformed requests", chore: MadeReset,
		one: func(i int) *wireBytes { return wire().request(uint32(2*i+1), true, "Mal", "formed") }},
	{name: "streams above the limit", chore: ExcessStream,
		before: func(r *rig) {
			for i := range r.cfg.MaxStreams {
				r.feed(wire().request(2*i+1, false))
			}
		},
		one: func(i int) *wireBytes { return wire().request(uint32(2*(i+1000)+1), true) }},
	{name: "HEADERS for a stream that was reset", chore: ExcessStream,
		before: func(r *rig) { r.feed(wire().request(1, false).window(1, 0)) },
		one:    func(int) *wireBytes { return wire().request(1, true) }},
	{name: "streams behind a GOAWAY", chore: ExcessStream,
		before: func(r *rig) { r.conn.GoAway(0, NoError, "") },
		one:    func(i int) *wireBytes { return wire().request(uint32(2*i+1), true) }},
	{name: "header lists above the limit", chore: LargeList,
		before: func(r *rig) {
			r.onTooLarge = func(s *Stream) { r.conn.Reset(s, Cancel) }
		},
		one: func(i int) *wireBytes {
			return wire().fragments(uint32(2*i+1), true, 16384, ":method", "GET", ":scheme", "http", ":path", "/",
				"big", strings.Repeat("v", 17<<10))
		}},
	{name: "CVE-2019-9518: DATA without data", chore: EmptyData, before: openForever,
		one: func(int) *wireBytes { return wire().data(1, false, "") }},
	{name: "CVE-2019-9518: DATA of padding", chore: EmptyData, before: openForever,
		one: func(int) *wireBytes { return wire().padded(1, false, "", 10) }},
	{name: "CVE-2019-9515: SETTINGS", chore: SettingsFlood,
		most: func(a Allowance) int { return a.Burst - 2 }, // the greeting has two
		one:  func(int) *wireBytes { return wire().settings() }},
	{name: "SETTINGS acknowledged that we have not sent", chore: SettingsFlood,
		most: func(a Allowance) int { return a.Burst - 2 },
		one:  func(int) *wireBytes { return wire().settingsAck() }},
	{name: "GOAWAY", chore: SettingsFlood,
		most: func(a Allowance) int { return a.Burst - 2 },
		one:  func(int) *wireBytes { return wire().goAway(0, NoError) }},
	{name: "CVE-2019-9512: PING", chore: PingFlood,
		one: func(int) *wireBytes { return wire().ping(false, "12345678") }},
	{name: "answers to PINGs that we have not sent", chore: PingFlood,
		one: func(int) *wireBytes { return wire().ping(true, "12345678") }},
	{name: "CVE-2019-9513: PRIORITY", chore: PriorityFlood, before: openForever,
		most: func(a Allowance) int { return a.Burst + 2 },
		one:  func(i int) *wireBytes { return wire().frame(framePriority, 0, uint32(2*i+1), "12345") }},
	{name: "frames of unknown types", chore: UnknownFlood,
		one: func(i int) *wireBytes { return wire().frame(frameType(0x20+i%8), 0, uint32(i), "x") }},
	{name: "WINDOW_UPDATE by one, connection", chore: WindowFlood,
		one: func(int) *wireBytes { return wire().window(0, 1) }},
	{name: "WINDOW_UPDATE by one, stream", chore: WindowFlood, before: openForever,
		most: func(a Allowance) int { return a.Burst + 2 },
		one:  func(int) *wireBytes { return wire().window(1, 1) }},
	{name: "a window that opens by one", chore: WindowFlood,
		most: func(a Allowance) int { return a.Burst + 2 },
		before: func(r *rig) {
			r.feed(wire().settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}).request(1, true))
			r.onWritable = func(s *Stream) {
				r.conn.WriteData(s, make([]byte, r.conn.Writable(s)), false)
				r.conn.Want(s)
			}
			r.conn.WriteHeaders(r.streams[1], false, statelessAnswer)
			r.conn.Want(r.streams[1])
		},
		one: func(int) *wireBytes { return wire().window(1, 1) }},
}

// Every chore has a limit for a connection: so many at once, and so many in the
// long run. The next one ends the connection with ENHANCE_YOUR_CALM and its own
// name (RFC 9113 10.5).
func TestAllowances(t *testing.T) {
	for _, tt := range assaults {
		t.Run(tt.name, func(t *testing.T) {
			r := newServer(t)
			if tt.before != nil {
				tt.before(r)
			}
			allow := r.cfg.Allow[tt.chore]
			most := allow.Burst
			if tt.most != nil {
				most = tt.most(allow)
			}
			at := 0
			next := func() *wireBytes {
				r.frames() // it reads
				r.log = nil
				at++
				return tt.one(at - 1)
			}
			for range most {
				r.feed(next())
			}
			for range 50 { // and then in its rhythm
				r.now += allow.Every
				r.feed(next())
			}
			r.now += allow.Every - 1
			r.fail(next(), "ENHANCE_YOUR_CALM: "+tt.chore.String())
			out := r.frames()
			last := out[len(out)-1]
			testkit.Want(t, strings.HasSuffix(last, " ENHANCE_YOUR_CALM "+tt.chore.String()), "last frame: %s", last)
		})
	}
}

// After a rest the whole burst is there again, and no more than that.
func TestAllowanceComesBack(t *testing.T) {
	r := newServer(t)
	ping := wire().ping(false, "12345678")
	for range 3 {
		r.now += time.Hour
		for range r.cfg.Allow[PingFlood].Burst {
			r.feed(ping)
		}
		r.frames()
	}
	r.fail(ping, "ENHANCE_YOUR_CALM: ping_flood")
}

// Every chore is in the table above, has a name of its own, and no limit is
// missing for callers.
func TestChoresAreCovered(t *testing.T) {
	allow := CallerAllowances()
	for k := range Chores {
		if !slices.ContainsFunc(assaults, func(a assault) bool { return a.chore == k }) {
			t.Errorf("no test for %v", k)
		}
		testkit.Want(t, allow[k].Burst > 0 && allow[k].Every > 0, "%v: no limit", k)
	}
	names := Floods()
	slices.Sort(names)
	testkit.Equal(t, len(slices.Compact(names)), int(Chores)+8, "names that differ, of %v", names)
}

// answerAll has the engine answer every request at once.
func answerAll(r *rig) {
	r.onHeaders = func(s *Stream, _ bool) {
		r.log = nil
		r.conn.WriteHeaders(s, false, statelessAnswer)
		r.conn.WriteData(s, []byte("hello"), false)
		r.conn.WriteHeaders(s, true, statelessTrailers)
	}
}

// What honest callers do passes, for as long as they like.
func TestHonestCallers(t *testing.T) {
	const rounds = 5000
	id := uint32(1)
	next := func() uint32 { id += 2; return id }
	honest := map[string]struct {
		every  time.Duration
		before func(r *rig)
		round  func(r *rig)
	}{
		// C-core adapts its window all the time.
		"new windows": {100 * time.Millisecond, nil, func(r *rig) { r.feed(wire().settings()) }},
		// 1,000 cancels a second on one connection.
		"deadlines": {time.Millisecond, nil, func(r *rig) {
			n := next()
			r.feed(wire().request(n, false).rst(n, Cancel))
		}},
		// Two of each call, and the slower one is cancelled: no limit.
		"hedging": {time.Microsecond, answerAll, func(r *rig) {
			won, lost := next(), next()
			r.feed(wire().request(won, true))
			r.onHeaders = nil
			r.feed(wire().request(lost, true).rst(lost, Cancel))
			answerAll(r)
		}},
		// grpc-go resets a stream that we have answered before it had ended.
		"early answers": {time.Microsecond, answerAll, func(r *rig) {
			n := next()
			r.feed(wire().request(n, false).rst(n, NoError))
		}},
		// grpc-go and C-core measure the bandwidth with a PING for a round trip.
		"bandwidth estimation": {50 * time.Microsecond, answerAll, func(r *rig) {
			r.feed(wire().request(next(), true).ping(false, "12345678"))
		}},
		// R15: a PING every 10 s, and nothing else, over days.
		"keepalive": {10 * time.Second, nil, func(r *rig) { r.feed(wire().ping(false, "12345678")) }},
		// Credit for every DATA frame, on the stream and on the connection.
		"credit at once": {10 * time.Microsecond, openForever, func(r *rig) {
			r.conn.WriteData(r.streams[1], []byte("small"), false)
			r.feed(wire().window(1, 5).window(0, 5))
		}},
		// One with a small window: every frame is cut to it.
		"small window": {10 * time.Microsecond, func(r *rig) {
			r.feed(wire().settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 128}))
			openForever(r)
		}, func(r *rig) {
			r.conn.WriteData(r.streams[1], make([]byte, 128), false)
			r.feed(wire().window(1, 128).window(0, 128))
		}},
		// Many small messages in a frame, each acknowledged on both levels.
		"credit by message": {10 * time.Microsecond, openForever, func(r *rig) {
			r.conn.WriteData(r.streams[1], make([]byte, 32*50), false)
			w := wire()
			for range 50 {
				w.window(1, 32).window(0, 32)
			}
			r.feed(w)
		}},
		// Large frames, credit returned in pages.
		"credit in pages": {10 * time.Microsecond, func(r *rig) {
			r.feed(wire().settings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20}))
			openForever(r)
		}, func(r *rig) {
			r.conn.WriteData(r.streams[1], make([]byte, 32<<10), false)
			w := wire()
			for range 8 {
				w.window(1, 4<<10).window(0, 4<<10)
			}
			r.feed(w)
		}},
		// Browsers tell a priority for each request, in either form.
		"priorities": {10 * time.Microsecond, answerAll, func(r *rig) {
			n := next()
			r.feed(wire().frame(framePriority, 0, n, "12345").frame(0x10, 0, 0, "\x00\x00\x00\x01u=1").request(n, true))
		}},
	}
	for name, tt := range honest {
		t.Run(name, func(t *testing.T) {
			id = 1
			r := newServer(t)
			if tt.before != nil {
				tt.before(r)
			}
			for range rounds {
				r.now += tt.every
				tt.round(r)
				r.conn.Sent(len(r.conn.Output()))
				r.log = nil
			}
		})
	}
}

// What was earned can be saved up, but not without bound.
func TestEarnedChoresAreBounded(t *testing.T) {
	r := newServer(t)
	openForever(r)
	for range 2 * maxEarned {
		r.conn.WriteData(r.streams[1], []byte("x"), false)
		r.conn.Sent(len(r.conn.Output()))
		r.feed(wire().window(1, 1).window(0, 1))
	}
	ping := wire().ping(false, "12345678")
	for range maxEarned + r.cfg.Allow[PingFlood].Burst {
		r.feed(ping)
		r.conn.Sent(len(r.conn.Output()))
	}
	r.fail(ping, "ENHANCE_YOUR_CALM: ping_flood")
}

// Streams earn by their number, not by their ids.
func TestSkippedStreamsEarnNothing(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1<<30+1, true))
	for range r.cfg.Allow[PriorityFlood].Burst + 2 {
		r.feed(wire().frame(framePriority, 0, 1, "12345"))
	}
	r.fail(wire().frame(framePriority, 0, 1, "12345"), "ENHANCE_YOUR_CALM: priority_flood")
}

// R1: a worker may refuse or end every call, and answers that it had sent
// before our cancel reached it are no offence.
func TestWorkersMayRefuse(t *testing.T) {
	r := newClient(t)
	for range 20_000 {
		s := r.open(true)
		id := s.ID()
		r.feed(wire().rst(id, RefusedStream))
		s = r.open(true)
		id = s.ID()
		r.conn.Reset(s, Cancel)
		r.feed(wire().answer(id, false).headers(id, true, "grpc-status", "0").rst(id, NoError))
		r.conn.Sent(len(r.conn.Output()))
	}
}

// A worker that only makes work loses its connection as well.
func TestWorkerFloods(t *testing.T) {
	floods := map[Chore]func() *wireBytes{
		EmptyData:     func() *wireBytes { return wire().data(1, false, "") },
		SettingsFlood: func() *wireBytes { return wire().settings() },
		PingFlood:     func() *wireBytes { return wire().ping(false, "12345678") },
		PriorityFlood: func() *wireBytes { return wire().frame(framePriority, 0, 1, "12345") },
		UnknownFlood:  func() *wireBytes { return wire().frame(0x42, 0, 1, "") },
		WindowFlood:   func() *wireBytes { return wire().window(1, 1) },
	}
	for chore, one := range floods {
		t.Run(chore.String(), func(t *testing.T) {
			r := newClient(t)
			r.open(true)
			r.feed(wire().answer(1, false))
			n := 0
			var err error
			for ; err == nil && n < 100_000; n++ {
				err = r.conn.Feed(one().b.Bytes(), r.now)
				r.conn.Sent(len(r.conn.Output()))
			}
			want := "ENHANCE_YOUR_CALM: " + chore.String()
			testkit.Want(t, err != nil && err.Error() == want, "after %d: got %v, want %s", n, err, want)
			most := r.cfg.Allow[chore].Burst + 10
			testkit.Want(t, n <= most, "%d passed, %d are allowed", n, most)
		})
	}
}

// RFC 9113 6.5: each setting may concern every stream, so that their number in
// one frame is bounded.
func TestManySettings(t *testing.T) {
	all := slices.Repeat([]http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 70_000}}, maxSettings+1)
	r := newServer(t)
	r.feed(wire().settings(all[1:]...))
	r.fail(wire().settings(all...), "ENHANCE_YOUR_CALM: settings_size_flood")
}

// A stalled stream costs nothing but its place: no frame is written for it and
// none of the peer's frames has the engine look at it.
func TestStalledStreams(t *testing.T) {
	for name, window := range map[string]uint32{"zero window": 0, "one byte": 1} {
		t.Run(name, func(t *testing.T) {
			r := newServer(t)
			r.feed(wire().settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
			for i := range r.cfg.MaxStreams {
				r.feed(wire().request(2*i+1, true))
				s := r.streams[2*i+1]
				r.conn.WriteHeaders(s, false, statelessAnswer)
				r.conn.WriteData(s, make([]byte, r.conn.Writable(s)), false)
				r.conn.Want(s)
			}
			r.frames()
			r.log = nil
			used := r.budget.Used()
			for range 100 {
				r.feed(wire().window(0, 1000).frame(framePriority, 0, 1, "12345"))
				r.conn.Sent(0)
			}
			r.wantFrames()
			r.wantLog()
			now := r.budget.Used()
			testkit.Want(t, now <= used, "%d bytes are held for streams that wait, %d before", now, used)
			testkit.Want(t, r.conn.waiting.head == nil, "stalled streams are in the list of those that can write")
		})
	}
}
