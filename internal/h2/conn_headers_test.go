package h2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// RFC 9113 8.1: a call as a server sees it.
func TestServerCall(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, false, "x", "y").data(1, false, "ab").data(1, true, "cd"))
	r.wantLog("headers 1 :path=/s/m x=y", "data 1 abcd END")
	s := r.streams[1]
	if !s.Open() || !s.remoteDone || s.LocalDone() || s.SentHead() {
		t.Errorf("stream: %+v", s)
	}
	r.conn.WriteHeaders(s, false, statelessAnswer)
	r.conn.WriteData(s, []byte("answer"), false)
	r.conn.WriteHeaders(s, true, statelessTrailers)
	r.wantFrames("HEADERS 1 :status=200", "DATA 1 answer", "HEADERS 1 grpc-status=0 END")
	if s.Open() || r.conn.Streams() != 0 {
		t.Error("the stream is open after both sides have finished")
	}
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
		if n := r.conn.Streams(); n != len(asked)-1 {
			t.Errorf("%d streams are open when the next one is asked for", n)
		}
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
	if s.Open() || r.conn.Streams() != 0 {
		t.Error("the stream is open after both sides have finished")
	}
}

// RFC 9113 8.1: trailers-only, and an answer that ends before the request.
func TestAnswerBeforeTheEndOfTheRequest(t *testing.T) {
	r := newClient(t)
	s := r.open(false)
	r.feed(wire().answer(1, true))
	r.wantLog("headers 1 :status=200 END")
	if !s.Open() || !s.remoteDone {
		t.Error("the stream is closed though our side has not ended")
	}
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
		if h.length > defaultMaxFrame {
			t.Fatalf("frame %d has %d bytes", n, h.length)
		}
		at += frameHeaderLen + int(h.length)
	}
	r.wantFrames("HEADERS 1 ... END", "CONTINUATION 1 ...", "CONTINUATION 1 ...", "CONTINUATION 1 :status=200 a=(20000 bytes) b=(30000 bytes)")
	if r.budget.Used() != used {
		t.Errorf("%d bytes of the budget in use, %d before", r.budget.Used(), used)
	}
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
	if out[frameHeaderLen] != 0x20 {
		t.Errorf("the first block begins with %#x", out[frameHeaderLen])
	}
	if second := out[frameHeaderLen+int(h.length)+frameHeaderLen]; second == 0x20 {
		t.Error("the second block begins with it too")
	}
}
