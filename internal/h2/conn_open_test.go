package h2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// RFC 9113 3.4: a server says nothing before the client's preface, so that
// another protocol can still be answered (R22).
func TestServerIsSilentBeforeThePreface(t *testing.T) {
	r := newRig(t, true)
	r.wantFrames()
	r.feed(wire().raw([]byte(Preface[:23])))
	r.wantFrames()
	r.feed(wire().raw([]byte(Preface[23:])))
	r.wantFrames("SETTINGS MAX_CONCURRENT_STREAMS=250 INITIAL_WINDOW_SIZE=65536 MAX_HEADER_LIST_SIZE=16384", "WINDOW 0 +983041")
	testkit.Want(t, !r.conn.Greeted(), "greeted before the peer's SETTINGS")
	r.feed(wire().settings())
	r.wantFrames("SETTINGS ack")
	testkit.Want(t, r.conn.Greeted(), "not greeted by the peer's SETTINGS")
}

// RFC 9113 3.4: a client begins with the preface, without waiting.
func TestClientBegins(t *testing.T) {
	r := newRig(t, false)
	out := r.conn.Output()
	testkit.Need(t, strings.HasPrefix(string(out), Preface), "output begins with %q", out)
	r.wantFrames("SETTINGS ENABLE_PUSH=0 INITIAL_WINDOW_SIZE=65536 MAX_HEADER_LIST_SIZE=16384", "WINDOW 0 +983041")
	testkit.Want(t, r.woken == 1, "woken %d times", r.woken)
}

// RFC 9113 3.4: whatever is not the preface is refused at its first wrong
// byte, and nothing is written.
func TestWrongPreface(t *testing.T) {
	for _, in := range []string{"GET / HTTP/1.1\r\n", "PX", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rx", "\x16\x03\x01"} {
		good := 0
		for in[good] == Preface[good] {
			good++
		}
		r := newRig(t, true)
		r.feed(wire().raw([]byte(in[:good])))
		testkit.Is(t, r.conn.Feed([]byte(in[good:]), 0), ErrNotHTTP2, "%q", in)
		testkit.Equal(t, string(r.conn.Begun()), in[:good], "%q: what had come before", in)
		r.wantFrames()
		r.conn.Raw([]byte("HTTP/1.1 505\r\n"))
		testkit.Equal(t, string(r.conn.Output()), "HTTP/1.1 505\r\n", "%q: answered", in)
	}
}

// RFC 9113 3.4: SETTINGS come first.
func TestFirstFrameIsSettings(t *testing.T) {
	for name, w := range map[string]*wireBytes{
		"ping":    wire().ping(false, "12345678"),
		"ack":     wire().frame(frameSettings, flagAck, 0, ""),
		"data":    wire().data(1, false, "x"),
		"headers": wire().request(1, true),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, true)
			r.feed(wire().preface())
			r.fail(w, "PROTOCOL_ERROR: first_frame_not_settings")
			client := newRig(t, false)
			client.fail(w, "PROTOCOL_ERROR: first_frame_not_settings")
		})
	}
}

// R11: a connection that begins while half of the budget is used announces the
// smaller window.
func TestPressedBudgetAnnouncesLess(t *testing.T) {
	budget := &Budget{Total: 1 << 20}
	pool := NewPool(budget)
	hold := pool.Get(768 << 10)
	cfg := testConfig(true)
	cfg.WindowPressed = 32 << 10
	r := &rig{t: t, cfg: cfg, budget: budget, streams: map[uint32]*Stream{}}
	r.conn = NewConn(cfg, r, pool, &r.block, r)
	r.feed(wire().preface())
	r.wantFrames("SETTINGS MAX_CONCURRENT_STREAMS=250 INITIAL_WINDOW_SIZE=32768 MAX_HEADER_LIST_SIZE=16384", "WINDOW 0 +983041")
	pool.Put(hold)
	r.close()
}

// R15: before the peer's SETTINGS have told its limit, no more streams are
// opened than any peer should take.
func TestStreamsBeforeTheGreeting(t *testing.T) {
	r := newRig(t, false)
	for r.conn.CanOpen() {
		r.open(true)
	}
	testkit.Equal(t, r.conn.Streams(), assumedStreams, "streams that it opened")
	r.feed(wire().settings())
	testkit.Want(t, r.conn.CanOpen(), "SETTINGS without a limit leave no room")
	r.feed(wire().settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: assumedStreams}))
	testkit.Want(t, !r.conn.CanOpen(), "a limit that is used up leaves room")
	r.feed(wire().settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}))
	testkit.Want(t, !r.conn.CanOpen(), "the limit was forgotten")
}

// R4, R15: streams of a client wait for the peer's SETTINGS, so that a dead
// connection takes no call with it.
func TestStreamsWaitForTheGreeting(t *testing.T) {
	r := newRig(t, false)
	r.open(true)
	r.wantFrames("SETTINGS ENABLE_PUSH=0 INITIAL_WINDOW_SIZE=65536 MAX_HEADER_LIST_SIZE=16384", "WINDOW 0 +983041")
	r.woken = 0
	r.feed(wire().settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 7}))
	testkit.Want(t, r.woken != 0, "nobody is told that the stream can leave")
	r.wantFrames("HEADERS 1 :path=/s/m END", "SETTINGS ack")
}

// The same for a driver that takes the output away.
func TestTakeWaitsForTheGreeting(t *testing.T) {
	r := newRig(t, false)
	s := r.open(false)
	r.conn.WriteData(s, []byte("hello"), true)
	buf, off := r.conn.Take()
	got := string(buf[off:])
	testkit.Need(t, strings.HasPrefix(got, Preface) && !strings.Contains(got, "hello"), "took %q", got)
	again, _ := r.conn.Take()
	testkit.Need(t, again == nil, "took %q before the greeting", again)
	r.conn.Returned(buf)
	testkit.Want(t, !r.conn.Idle(), "idle with a stream to send")
	r.feed(wire().settings())
	r.greeted = true
	r.wantFrames("HEADERS 1 :path=/s/m", "DATA 1 hello END", "SETTINGS ack")
}

// The peer's preface comes first: until then nothing is written, not even at
// the end (R22).
func TestNoGoAwayBeforeThePreface(t *testing.T) {
	r := newRig(t, true)
	r.conn.GoAway(r.conn.LastPeerStream(), NoError, "")
	r.conn.Ping([8]byte{1})
	out := r.conn.Output()
	testkit.Want(t, len(out) == 0, "written: %q", out)
}

// RFC 9113 6.5.2: the largest list that the peer takes is told to the owner,
// who may still take back what had to wait for the peer's SETTINGS.
func TestSettled(t *testing.T) {
	var r *rig
	var told []int
	var large *Stream
	r = newRig(t, false, func(c *Config) {
		c.Settled = func(conn *Conn) {
			told = append(told, conn.PeerHeaderList())
			testkit.Want(t, len(told) != 1 || conn.Unsend(large), "sent before the SETTINGS")
		}
	})
	testkit.Equal(t, r.conn.PeerHeaderList(), 1<<31-1, "before any SETTINGS")
	large = r.open(true)
	r.open(true)
	r.feed(wire().settings(setting(http2.SettingMaxHeaderListSize, 8192)))
	r.feed(wire().settings(setting(http2.SettingMaxHeaderListSize, 1<<32-1)))
	if len(told) != 2 || told[0] != 8192 || told[1] != 1<<31-1 {
		t.Errorf("told %d", told)
	}
	for _, frame := range r.frames() {
		testkit.Want(t, !strings.HasPrefix(frame, "HEADERS 1 "), "the first stream was sent: %s", frame)
	}
}

// RFC 9113 8.1: a call as a server sees it.
func TestServerCall(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, false, "x", "y").data(1, false, "ab").data(1, true, "cd"))
	r.wantLog("headers 1 :path=/s/m x=y", "data 1 abcd END")
	s := r.streams[1]
	testkit.Want(t, s.Open() && s.remoteDone && !s.LocalDone() && !s.SentHead(), "stream: %+v", s)
	r.conn.WriteHeaders(s, false, statelessAnswer)
	r.conn.WriteData(s, []byte("answer"), false)
	r.conn.WriteHeaders(s, true, statelessTrailers)
	r.wantFrames("HEADERS 1 :status=200", "DATA 1 answer", "HEADERS 1 grpc-status=0 END")
	testkit.Want(t, !s.Open() && r.conn.Streams() == 0, "the stream is open after both sides have finished")
	r.conn.WriteData(s, []byte("late"), true)
	r.conn.WriteHeaders(s, true, statelessTrailers)
	r.conn.Reset(s, Cancel)
	r.wantFrames()
}

// Whose a stream is, can be decided by its head: each request is shown once, before
// the stream is open, also one whose list is too large.
func TestAcceptSeesTheHead(t *testing.T) {
	r := newServer(t, func(c *Config) { c.Watch, c.MaxHeaderList = NewWatchList(":path"), 300 })
	var asked []string
	r.onAccept = func(b *Block) {
		path, _ := b.Watched(0)
		asked = append(asked, string(path.Value))
		testkit.Equal(t, r.conn.Streams(), len(asked)-1, "streams are open when the next one is asked for")
	}
	r.feed(wire().request(1, false).request(3, false, "x", strings.Repeat("y", 300)).headers(1, true, "trailer", "1"))
	r.same("asked", asked, []string{"/s/m", "/s/m"})
	r.wantLog("headers 1 :path=/s/m", "too large 3", "headers 1 trailer=1 END")
}

// RFC 9113 8.1: a call as a client sees it, with an interim answer, which does
// not count as the beginning (R13).
func TestClientCall(t *testing.T) {
	r := newClient(t)
	s := r.open(false)
	r.conn.WriteData(s, []byte("ask"), true)
	r.wantFrames("HEADERS 1 :path=/s/m", "DATA 1 ask END")
	r.feed(wire().headers(1, false, ":status", "103", "link", "x").answer(1, false).data(1, false, "ok").headers(1, true, "grpc-status", "0"))
	r.wantLog("headers 1 :status=103 link=x", "headers 1 :status=200", "data 1 ok", "headers 1 grpc-status=0 END")
	testkit.Want(t, !s.Open() && r.conn.Streams() == 0, "the stream is open after both sides have finished")
}

// RFC 9113 8.1: trailers-only, and an answer that ends before the request.
func TestAnswerBeforeTheEndOfTheRequest(t *testing.T) {
	r := newClient(t)
	s := r.open(false)
	r.feed(wire().answer(1, true))
	r.wantLog("headers 1 :status=200 END")
	testkit.Want(t, s.Open() && s.remoteDone, "the stream is closed though our side has not ended")
	r.conn.Reset(s, Cancel)
	r.wantFrames("HEADERS 1 :path=/s/m", "RST 1 CANCEL")
}

// RFC 9113 4.2, 6.10: a long block is cut at the peer's frame size.
func TestLongBlockIsSplit(t *testing.T) {
	long := stateless(":status", "200", "a", strings.Repeat("a", 20000), "b", strings.Repeat("b", 30000))
	r := newServer(t)
	r.feed(wire().request(1, true))
	used := r.budget.Used()
	r.conn.WriteHeaders(r.streams[1], true, long)
	out := r.conn.Output()
	for at, n := 0, 0; at < len(out); n++ {
		h := parseFrameHeader(out[at:])
		testkit.Need(t, h.length <= defaultMaxFrame, "frame %d has %d bytes", n, h.length)
		at += frameHeaderLen + int(h.length)
	}
	r.wantFrames("HEADERS 1 ... END", "CONTINUATION 1 ...", "CONTINUATION 1 ...", "CONTINUATION 1 :status=200 a=(20000 bytes) b=(30000 bytes)")
	testkit.Want(t, r.budget.Used() == used, "%d bytes of the budget in use, %d before", r.budget.Used(), used)
	r.feed(wire().settings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20}).request(3, true))
	r.conn.WriteHeaders(r.streams[3], true, long)
	r.wantFrames("SETTINGS ack", "HEADERS 3 :status=200 a=(20000 bytes) b=(30000 bytes) END")
}

// R12: the first block that is written begins with a table size update to 0,
// and no other.
func TestTableSizeUpdateOpensTheFirstBlock(t *testing.T) {
	r := newClient(t)
	r.open(true)
	r.open(true)
	out := r.conn.Output()
	h := parseFrameHeader(out)
	testkit.Want(t, out[frameHeaderLen] == 0x20, "the first block begins with %#x", out[frameHeaderLen])
	testkit.Want(t, out[frameHeaderLen+int(h.length)+frameHeaderLen] != 0x20, "the second block begins with it too")
}
