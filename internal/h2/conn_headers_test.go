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

// RFC 9113 8.1: rules for the blocks of a stream. Each breaks one stream only.
func TestBlocksThatBreakTheStream(t *testing.T) {
	tests := []struct {
		name string
		open *wireBytes
		bad  *wireBytes
		want string
	}{
		{"trailers without END_STREAM", wire().request(1, false), wire().headers(1, false, "a", "b"), "PROTOCOL_ERROR"},
		{"pseudo-header field in trailers", wire().request(1, false), wire().headers(1, true, ":path", "/"), "PROTOCOL_ERROR"},
		{"half-closed (remote), 5.1", wire().request(1, true), wire().headers(1, true, "a", "b"), "STREAM_CLOSED"},
		{"DATA when half-closed (remote), 5.1", wire().request(1, true), wire().data(1, false, "x"), "STREAM_CLOSED"},
		{"PRIORITY of a wrong size, 6.3", wire().request(1, false), wire().frame(framePriority, 0, 1, "1234"), "FRAME_SIZE_ERROR"},
		{"WINDOW_UPDATE of 0, 6.9", wire().request(1, false), wire().frame(frameWindowUpdate, 0, 1, "\x00\x00\x00\x00"), "PROTOCOL_ERROR"},
		{"window overflow, 6.9.1", wire().request(1, false), wire().window(1, 1<<31-1), "FLOW_CONTROL_ERROR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newServer(t)
			r.feed(tt.open)
			s := r.streams[1]
			r.log = nil
			r.feed(tt.bad)
			r.wantLog("reset 1 " + tt.want + " by engine")
			r.wantFrames("RST 1 " + tt.want)
			if s.Open() {
				t.Error("the stream is open")
			}
			r.feed(wire().request(3, true))
			r.wantLog("headers 3 :path=/s/m END")
		})
	}
}

// RFC 9113 8.1.1: a malformed request is refused before anybody hears of it.
func TestMalformedRequest(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, true, "Upper", "case").request(3, true, "connection", "close"))
	r.wantLog()
	r.wantFrames("RST 1 PROTOCOL_ERROR", "RST 3 PROTOCOL_ERROR")
}

// RFC 9113 6.5.2: a list above the announced limit is the handler's to answer.
func TestHeaderListTooLarge(t *testing.T) {
	big := strings.Repeat("v", 17<<10)
	r := newServer(t)
	r.feed(wire().fragments(1, true, 16384, ":method", "GET", ":scheme", "http", ":path", "/", "big", big))
	r.wantLog("too large 1 END")
	r.conn.WriteHeaders(r.streams[1], true, stateless(":status", "431"))
	r.wantFrames("HEADERS 1 :status=431 END")
}

// RFC 9113 6.10: a block may come in any number of CONTINUATION frames.
func TestContinuation(t *testing.T) {
	head := []string{":method", "GET", ":scheme", "http", ":path", "/s/m", "x", strings.Repeat("ä", 50)}
	for size := 1; size < 200; size = size*2 + 1 {
		r := newServer(t)
		r.feed(wire().fragments(1, true, size, head...).request(3, true))
		r.wantLog("headers 1 :path=/s/m x=(100 bytes) END", "headers 3 :path=/s/m END")
	}
}

// RFC 9113 6.10, 6.2: padding and priority fields are no part of the block, and
// HEADERS may be empty if CONTINUATION follows.
func TestHeadersPaddedAndEmpty(t *testing.T) {
	w := wire()
	block := string(w.encode(":method", "GET", ":scheme", "http", ":path", "/s/m"))
	r := newServer(t)
	r.feed(w.frame(frameHeaders, flagPadded|flagPriority|flagEndHeaders, 1, "\x03"+"\x80\x00\x00\x03\x10"+block+"\x00\x00\x00").
		frame(frameHeaders, flagEndStream, 3, "").frame(frameContinuation, flagEndHeaders, 3, block))
	r.wantLog("headers 1 :path=/s/m", "headers 3 :path=/s/m END")
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
