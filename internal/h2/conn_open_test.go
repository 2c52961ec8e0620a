package h2

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/http2"
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
	if r.conn.Greeted() {
		t.Error("greeted before the peer's SETTINGS")
	}
	r.feed(wire().settings())
	r.wantFrames("SETTINGS ack")
	if !r.conn.Greeted() {
		t.Error("not greeted by the peer's SETTINGS")
	}
}

// RFC 9113 3.4: a client begins with the preface, without waiting.
func TestClientBegins(t *testing.T) {
	r := newRig(t, false)
	if out := r.conn.Output(); !strings.HasPrefix(string(out), Preface) {
		t.Fatalf("output begins with %q", out)
	}
	r.wantFrames("SETTINGS ENABLE_PUSH=0 INITIAL_WINDOW_SIZE=65536 MAX_HEADER_LIST_SIZE=16384", "WINDOW 0 +983041")
	if r.woken != 1 {
		t.Errorf("woken %d times", r.woken)
	}
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
		if err := r.conn.Feed([]byte(in[good:]), 0); !errors.Is(err, ErrNotHTTP2) {
			t.Errorf("%q: got %v", in, err)
		}
		if got := string(r.conn.Begun()); got != in[:good] {
			t.Errorf("%q: %q had come before", in, got)
		}
		r.wantFrames()
		r.conn.Raw([]byte("HTTP/1.1 505\r\n"))
		if got := string(r.conn.Output()); got != "HTTP/1.1 505\r\n" {
			t.Errorf("%q: answered %q", in, got)
		}
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
	if n := r.conn.Streams(); n != assumedStreams {
		t.Errorf("opened %d, want %d", n, assumedStreams)
	}
	r.feed(wire().settings())
	if !r.conn.CanOpen() {
		t.Error("SETTINGS without a limit leave no room")
	}
	r.feed(wire().settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: assumedStreams}))
	if r.conn.CanOpen() {
		t.Error("a limit that is used up leaves room")
	}
	r.feed(wire().settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}))
	if r.conn.CanOpen() {
		t.Error("the limit was forgotten")
	}
}

// R4, R15: streams of a client wait for the peer's SETTINGS, so that a dead
// connection takes no call with it.
func TestStreamsWaitForTheGreeting(t *testing.T) {
	r := newRig(t, false)
	r.open(true)
	r.wantFrames("SETTINGS ENABLE_PUSH=0 INITIAL_WINDOW_SIZE=65536 MAX_HEADER_LIST_SIZE=16384", "WINDOW 0 +983041")
	r.woken = 0
	r.feed(wire().settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 7}))
	if r.woken == 0 {
		t.Error("nobody is told that the stream can leave")
	}
	r.wantFrames("HEADERS 1 :path=/s/m END", "SETTINGS ack")
}

// The same for a driver that takes the output away.
func TestTakeWaitsForTheGreeting(t *testing.T) {
	r := newRig(t, false)
	s := r.open(false)
	r.conn.WriteData(s, []byte("hello"), true)
	buf, off := r.conn.Take()
	if got := string(buf[off:]); !strings.HasPrefix(got, Preface) || strings.Contains(got, "hello") {
		t.Fatalf("took %q", got)
	}
	if again, _ := r.conn.Take(); again != nil {
		t.Fatalf("took %q before the greeting", again)
	}
	r.conn.Returned(buf)
	if r.conn.Idle() {
		t.Error("idle with a stream to send")
	}
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
	if out := r.conn.Output(); len(out) > 0 {
		t.Errorf("written: %q", out)
	}
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
			if len(told) == 1 && !conn.Unsend(large) {
				t.Error("sent before the SETTINGS")
			}
		}
	})
	if got := r.conn.PeerHeaderList(); got != 1<<31-1 {
		t.Errorf("%d before any SETTINGS", got)
	}
	large = r.open(true)
	r.open(true)
	r.feed(wire().settings(setting(http2.SettingMaxHeaderListSize, 8192)))
	r.feed(wire().settings(setting(http2.SettingMaxHeaderListSize, 1<<32-1)))
	if len(told) != 2 || told[0] != 8192 || told[1] != 1<<31-1 {
		t.Errorf("told %d", told)
	}
	for _, frame := range r.frames() {
		if strings.HasPrefix(frame, "HEADERS 1 ") {
			t.Errorf("the first stream was sent: %s", frame)
		}
	}
}
