package h2

import (
	"slices"
	"testing"

	"golang.org/x/net/http2"
)

// RFC 9113 6.4: RST_STREAM of the peer ends the stream at once.
func TestPeerResets(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, false))
	s := r.streams[1]
	r.onGone = func(*Stream) { s.Clear() } // the handler may use it again at once
	r.log = nil
	r.feed(wire().rst(1, Cancel).rst(1, Cancel).window(1, 5).frame(framePriority, 0, 1, "12345"))
	r.same("told", r.log, []string{"reset 1 CANCEL by peer"})
	r.wantFrames()
}

// RFC 9113 5.1.2: more streams than announced are refused; a place is free
// again when both sides have ended or one has reset it.
func TestMaxConcurrentStreams(t *testing.T) {
	r := newServer(t, func(c *Config) { c.MaxStreams = 2 })
	r.feed(wire().request(1, false).request(3, true).request(5, true))
	r.wantFrames("RST 5 REFUSED_STREAM")
	r.conn.WriteHeaders(r.streams[3], true, statelessAnswer)
	r.feed(wire().data(1, true, "x").request(7, true).request(9, true))
	r.wantFrames("HEADERS 3 :status=200 END", "RST 9 REFUSED_STREAM")
	r.conn.Reset(r.streams[1], Cancel)
	r.feed(wire().request(11, true).data(5, true, "late"))
	r.wantFrames("RST 1 CANCEL")
	if r.conn.LastPeerStream() != 11 || r.conn.Streams() != 2 {
		t.Errorf("last %d, open %d", r.conn.LastPeerStream(), r.conn.Streams())
	}
}

// A handler that wants no stream has it refused; the header decoder goes on.
func TestRefusedByTheHandler(t *testing.T) {
	r := newServer(t)
	r.refuse = true
	r.feed(wire().request(1, false).data(1, true, "x"))
	r.wantLog()
	r.wantFrames("RST 1 REFUSED_STREAM")
	r.refuse = false
	r.feed(wire().request(3, true))
	r.wantLog("headers 3 :path=/s/m END")
}

// RFC 9113 5.1.2, R15: the peer's limit holds for what we open, also when it is
// lowered later.
func TestPeersStreamLimit(t *testing.T) {
	limit := func(n uint32) *wireBytes {
		return wire().settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: n})
	}
	r := newClient(t)
	r.feed(limit(2))
	r.open(true)
	r.open(true)
	if r.conn.CanOpen() || r.conn.Retired() {
		t.Error("full, but not retired")
	}
	r.feed(limit(3))
	if !r.conn.CanOpen() {
		t.Error("the raised limit does not hold")
	}
	r.feed(limit(1).answer(1, true))
	if r.conn.CanOpen() {
		t.Error("the lowered limit does not hold")
	}
	r.feed(wire().answer(3, true))
	if !r.conn.CanOpen() {
		t.Error("no room though nothing is open")
	}
}

// R15: half of the stream ids are left unused.
func TestStreamIDsRunOut(t *testing.T) {
	r := newClient(t)
	r.conn.nextID = maxStreamID/2 - 2
	if !r.conn.CanOpen() || r.conn.Retired() {
		t.Error("an id is left")
	}
	r.conn.nextID += 2
	if r.conn.CanOpen() || !r.conn.Retired() {
		t.Error("no id is left")
	}
}

// RFC 9113 6.8: GOAWAY of a worker; the lower of two counts (R4), and streams
// below it go on.
func TestPeerGoesAway(t *testing.T) {
	r := newClient(t)
	for range 3 {
		r.open(true)
	}
	r.frames()
	r.feed(wire().goAway(maxStreamID, NoError))
	if r.conn.CanOpen() || !r.conn.Retired() {
		t.Error("streams may still be opened")
	}
	r.feed(wire().goAway(3, NoError).goAway(5, EnhanceYourCalm).answer(3, true))
	r.wantLog("goaway 2147483647 NO_ERROR", "goaway 3 NO_ERROR", "goaway 3 ENHANCE_YOUR_CALM", "headers 3 :status=200 END")
	var open []uint32
	r.conn.Each(func(s *Stream) { open = append(open, s.ID()) })
	slices.Sort(open)
	if !slices.Equal(open, []uint32{1, 5}) {
		t.Errorf("open: %v", open)
	}
}

// RFC 9113 6.8, R17: our two-step GOAWAY refuses what comes behind the second.
func TestTwoStepGoAway(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, false))
	r.log = nil
	r.conn.GoAway(MaxStreamID, NoError, "")
	r.conn.Ping([8]byte([]byte("leaving!")))
	r.wantFrames("GOAWAY 2147483647 NO_ERROR ", `PING "leaving!" ack=false`)
	r.feed(wire().request(3, true).ping(true, "leaving!"))
	r.wantLog("headers 3 :path=/s/m END", `pong "leaving!"`)
	r.conn.GoAway(r.conn.LastPeerStream(), NoError, "")
	r.conn.GoAway(r.conn.LastPeerStream(), NoError, "")
	r.conn.GoAway(MaxStreamID, NoError, "")
	r.feed(wire().request(5, true).data(1, true, "x"))
	r.wantFrames("GOAWAY 3 NO_ERROR ", "RST 5 REFUSED_STREAM")
	r.wantLog("data 1 x END")
}

// R4: Close tells every stream, and which of them may have reached the kernel.
func TestCloseTellsWhatWasSent(t *testing.T) {
	r := newClient(t)
	r.open(true)
	r.frames()
	r.open(true)
	r.conn.Sent(1)
	r.open(true)
	r.conn.Close()
	slices.Sort(r.log)
	r.wantLog("lost 1 sent=true", "lost 3 sent=true", "lost 5 sent=false")
	r.conn.Close()
	r.feed(wire().answer(1, true))
	r.wantLog()
	if r.conn.CanOpen() || !r.conn.closed {
		t.Error("the connection is not closed")
	}
}

// The same with a buffer that a driver holds: it may have been written.
func TestCloseWithATakenBuffer(t *testing.T) {
	r := newClient(t)
	r.open(true)
	buf, _ := r.conn.Take()
	r.open(true)
	r.conn.Close()
	slices.Sort(r.log)
	r.wantLog("lost 1 sent=true", "lost 3 sent=false")
	r.conn.Returned(buf)
}

// Every stream is told once, also when its handler ends others of the same
// connection meanwhile.
func TestCloseWhileHandlersReset(t *testing.T) {
	r := newClient(t)
	var all []*Stream
	for range 200 {
		all = append(all, r.open(true))
	}
	told := map[*Stream]int{}
	r.onGone = func(s *Stream) {
		told[s]++
		for _, other := range all {
			if other.Open() && (other.ID()*7+s.ID())%50 == 2 {
				r.conn.Reset(other, Cancel)
				told[other]++
			}
		}
	}
	r.conn.Close()
	for _, s := range all {
		if told[s] != 1 || s.Open() {
			t.Fatalf("stream %d was told %d times", s.ID(), told[s])
		}
	}
}

// A buffer that is put aside when the connection ends goes back to the pool.
func TestCloseInTheMiddleOfAFrame(t *testing.T) {
	for name, w := range map[string]*wireBytes{
		"headers":      wire().request(1, true, "x", "y"),
		"continuation": wire().fragments(1, true, 20, ":method", "GET", ":scheme", "http", ":path", "/s/m"),
		"settings":     wire().settings(windowSize(1)),
		"data":         wire().request(1, true).data(1, false, "abcdef"),
	} {
		t.Run(name, func(t *testing.T) {
			for n := range w.b.Len() {
				r := newServer(t)
				r.feed(wire().raw(w.b.Bytes()[:n]))
				r.close()
			}
		})
	}
}

// Clear refuses a stream that is open: somebody would keep a stale pointer.
func TestClearOfAnOpenStream(t *testing.T) {
	r := newClient(t)
	s := r.open(true)
	defer func() {
		if recover() == nil {
			t.Error("an open stream was cleared")
		}
	}()
	s.Clear()
}
