package h2

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
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
	testkit.Want(t, r.conn.LastPeerStream() == 11 && r.conn.Streams() == 2, "last %d, open %d", r.conn.LastPeerStream(), r.conn.Streams())
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
	testkit.Want(t, !r.conn.CanOpen() && !r.conn.Retired(), "full, but not retired")
	r.feed(limit(3))
	testkit.Want(t, r.conn.CanOpen(), "the raised limit does not hold")
	r.feed(limit(1).answer(1, true))
	testkit.Want(t, !r.conn.CanOpen(), "the lowered limit does not hold")
	r.feed(wire().answer(3, true))
	testkit.Want(t, r.conn.CanOpen(), "no room though nothing is open")
}

// R15: half of the stream ids are left unused.
func TestStreamIDsRunOut(t *testing.T) {
	r := newClient(t)
	r.conn.nextID = maxStreamID/2 - 2
	testkit.Want(t, r.conn.CanOpen() && !r.conn.Retired(), "an id is left")
	r.conn.nextID += 2
	testkit.Want(t, !r.conn.CanOpen() && r.conn.Retired(), "no id is left")
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
	testkit.Want(t, !r.conn.CanOpen() && r.conn.Retired(), "streams may still be opened")
	r.feed(wire().goAway(3, NoError).goAway(5, EnhanceYourCalm).answer(3, true))
	r.wantLog("goaway 2147483647 NO_ERROR", "goaway 3 NO_ERROR", "goaway 3 ENHANCE_YOUR_CALM", "headers 3 :status=200 END")
	var open []uint32
	r.conn.Each(func(s *Stream) { open = append(open, s.ID()) })
	slices.Sort(open)
	testkit.Want(t, slices.Equal(open, []uint32{1, 5}), "open: %v", open)
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
	testkit.Want(t, !r.conn.CanOpen() && r.conn.closed, "the connection is not closed")
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
		testkit.Need(t, told[s] == 1 && !s.Open(), "stream %d was told %d times", s.ID(), told[s])
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
		testkit.Want(t, recover() != nil, "an open stream was cleared")
	}()
	s.Clear()
}

// connErrors are bytes that end a connection, each with its section of RFC 9113 (RFC 7541 for
// header blocks). Those that a ruling of the neighboring files has are not repeated.
var connErrors = []ruling{
	{"4.2 when its header is read", serverIdle, wire().raw([]byte{0, 0x40, 1, byte(frameData), 0, 0, 0, 0, 1}), "FRAME_SIZE_ERROR: frame_too_large"},
	{"4.3 PING", serverIdle, wire().frame(frameHeaders, 0, 1, "\x82").ping(false, "12345678"), "PROTOCOL_ERROR: header_block_interrupted"},
	{"4.3 another stream", serverIdle, wire().frame(frameHeaders, 0, 1, "\x82").frame(frameContinuation, flagEndHeaders, 3, "\x84"), "PROTOCOL_ERROR: header_block_interrupted"},
	{"5.1 DATA", serverIdle, wire().data(1, false, "x"), "PROTOCOL_ERROR: data_idle_stream"},
	{"5.1 DATA of a worker", clientIdle, wire().data(1, false, "x"), "PROTOCOL_ERROR: data_idle_stream"},
	{"5.1 RST_STREAM", serverIdle, wire().rst(1, Cancel), "PROTOCOL_ERROR: rst_idle_stream"},
	{"5.1 RST_STREAM of an even stream", serverIdle, wire().rst(2, Cancel), "PROTOCOL_ERROR: rst_idle_stream"},
	{"5.1 RST_STREAM of a worker", clientIdle, wire().rst(1, Cancel), "PROTOCOL_ERROR: rst_idle_stream"},
	{"5.1 WINDOW_UPDATE", serverIdle, wire().window(1, 5), "PROTOCOL_ERROR: window_update_idle_stream"},
	{"5.1 an answer", clientIdle, wire().answer(1, true), "PROTOCOL_ERROR: headers_idle_stream"},
	{"5.1 HEADERS behind a reset", serverPeerReset, wire().headers(1, true, "a", "b"), "STREAM_CLOSED: headers_closed_stream"},
	{"5.1.1 an even stream", serverIdle, wire().request(2, true), "PROTOCOL_ERROR: headers_even_stream"},
	{"5.1.1 a lower stream", serverIdle, wire().request(5, true).request(3, true), "STREAM_CLOSED: headers_closed_stream"},
	{"6.1 stream 0", serverIdle, wire().data(0, false, "x"), "PROTOCOL_ERROR: data_stream_0"},
	{"6.2 stream 0", serverIdle, wire().request(0, true), "PROTOCOL_ERROR: headers_stream_0"},
	{"6.2 padding of a request", serverIdle, wire().frame(frameHeaders, flagPadded|flagEndHeaders, 1, "\x02\x82"), "PROTOCOL_ERROR: headers_padding"},
	{"6.3 stream 0", serverIdle, wire().frame(framePriority, 0, 0, "12345"), "PROTOCOL_ERROR: priority_stream_0"},
	{"6.5.2 a worker that pushes", clientIdle, wire().settings(setting(http2.SettingEnablePush, 1)), "PROTOCOL_ERROR: setting_enable_push"},
	{"6.9 3 octets", serverIdle, wire().frame(frameWindowUpdate, 0, 0, "123"), "FRAME_SIZE_ERROR: window_update_size"},
	{"6.9.2 a window that overflows", serverOpen, wire().window(1, 1<<31-1-65535).settings(windowSize(65536)), "FLOW_CONTROL_ERROR: setting_window_overflow"},
	{"10.5 empty CONTINUATION", serverIdle, wire().frame(frameHeaders, 0, 1, "\x82").frame(frameContinuation, 0, 1, ""), "ENHANCE_YOUR_CALM: continuation_flood"},
	{"RFC 7541 6.1 index 0", serverIdle, wire().frame(frameHeaders, flagEndHeaders, 1, "\x80"), "COMPRESSION_ERROR: hpack_bad_index"},
	{"RFC 7541 6.1 an index without its end", clientIdle, wire().frame(frameHeaders, flagEndHeaders, 1, "\xff"), "COMPRESSION_ERROR: hpack_truncated"},
}

// Every violation has its code and a token of its own.
func TestConnErrors(t *testing.T) { rule(t, connErrors) }

// wantFailed says that GOAWAY has the code and the token, and that nothing is read, written or
// opened afterwards.
func (r *rig) wantFailed(why string) {
	r.t.Helper()
	out := r.frames()
	if last := out[len(out)-1]; !strings.HasPrefix(last, "GOAWAY ") || !strings.HasSuffix(last, strings.Replace(why, ":", "", 1)) {
		r.t.Errorf("last frame: %s", last)
	}
	r.log = nil
	r.feed(wire().request(101, true).ping(false, "87654321"))
	r.conn.GoAway(1, NoError, "")
	r.conn.Ping([8]byte{})
	r.wantFrames()
	r.wantLog()
	testkit.Want(r.t, !r.conn.CanOpen() && r.conn.Retired(), "streams may still be opened")
}

// GOAWAY names the last stream that was looked at (RFC 9113 6.8).
func TestConnErrorNamesTheLastStream(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(7, false))
	r.fail(wire().data(9, false, "x"), "PROTOCOL_ERROR: data_idle_stream")
	r.wantFrames("GOAWAY 7 PROTOCOL_ERROR data_idle_stream")
	r.conn.Close()
	r.wantLog("headers 7 :path=/s/m", "lost 7 sent=true")
}

// RFC 9113 7: codes that nobody has defined have a name too.
func TestErrCodeNames(t *testing.T) {
	testkit.Equal(t, ErrCode(0xff).String(), "UNKNOWN_0xff", "0xff")
	testkit.Want(t, NoError.String() == "NO_ERROR" && HTTP11Required.String() == "HTTP_1_1_REQUIRED", "names out of order")
}
