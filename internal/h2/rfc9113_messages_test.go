package h2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// RFC 9113 8.1: the order of the frames of an answer.
func TestRFC9113_8_1_Answers(t *testing.T) {
	early := func(status string) *wireBytes { return wire().headers(1, false, ":status", status) }
	rule(t, []ruling{
		{"interim, final", clientOpen, early("100").answer(1, true), "headers 1 :status=100; headers 1 :status=200 END"},
		{"two interim, final, DATA", clientOpen, early("103").headers(1, false, ":status", "103").answer(1, false).data(1, true, "x"),
			"headers 1 :status=103; headers 1 :status=103; headers 1 :status=200; data 1 x END"},
		{"interim with END_STREAM", clientOpen, wire().headers(1, true, ":status", "103"), broken(ProtocolError)},
		{"interim, then the end", clientOpen, early("103").data(1, true, ""), "headers 1 :status=103; " + broken(ProtocolError)},
		{"interim, then DATA", clientOpen, early("103").data(1, false, "x"), "headers 1 :status=103; " + broken(ProtocolError)},
		{"interim, then trailers", clientOpen, early("103").headers(1, true, "a", "b"), "headers 1 :status=103; " + broken(ProtocolError)},
		{"interim behind the final", clientAnswering, early("103"), broken(ProtocolError)},
		{"final twice", clientAnswering, wire().answer(1, true), broken(ProtocolError)},
		{"DATA first", clientOpen, wire().data(1, true, "x"), broken(ProtocolError)},
		{"empty DATA first", clientOpen, wire().data(1, false, ""), broken(ProtocolError)},
		{"padding first", clientOpen, wire().padded(1, false, "", 3), broken(ProtocolError)},
		{"trailers", clientAnswering, wire().data(1, false, "x").headers(1, true, "a", "b"), "data 1 x; headers 1 a=b END"},
		{"trailers without END_STREAM", clientAnswering, wire().headers(1, false, "a", "b"), broken(ProtocolError)},
		{"trailers twice", clientAnswering, wire().headers(1, true, "a", "b").headers(1, true, "a", "b"), "headers 1 a=b END; " + broken(StreamClosed)},
		{"DATA behind trailers", clientAnswering, wire().headers(1, true, "a", "b").data(1, false, "x"), "headers 1 a=b END; " + broken(StreamClosed)},
		{"empty trailers", clientAnswering, wire().frame(frameHeaders, flagEndHeaders|flagEndStream, 1, ""), "headers 1 END"},
		{"the end twice", clientAnswering, wire().data(1, true, "").data(1, true, ""), "data 1  END; " + broken(StreamClosed)},
		{"the end before the request has ended, then NO_ERROR", clientOpen, wire().answer(1, true).rst(1, NoError),
			"headers 1 :status=200 END; reset 1 NO_ERROR by peer"},
	})
}

// RFC 9113 8.2, 8.3: a malformed answer breaks its stream, and what was
// decoded for it is kept. The rules themselves are in messageRules.
func TestRFC9113_8_3_MalformedAnswers(t *testing.T) {
	head := func(kv ...string) *wireBytes { return wire().headers(1, true, kv...) }
	rulings := []ruling{
		{"no :status", clientOpen, head("a", "b"), ""},
		{"nothing at all", clientOpen, wire().frame(frameHeaders, flagEndHeaders|flagEndStream, 1, ""), ""},
		{"two :status", clientOpen, head(":status", "200", ":status", "200"), ""},
		{":status of a word", clientOpen, head(":status", "two"), ""},
		{":status of one digit", clientOpen, head(":status", "2"), ""},
		{":status behind another field", clientOpen, head("a", "b", ":status", "200"), ""},
		{":path", clientOpen, head(":status", "200", ":path", "/"), ""},
		{"unknown pseudo-header field", clientOpen, head(":status", "200", ":x", "y"), ""},
		{"upper case", clientOpen, head(":status", "200", "Grpc-Status", "0"), ""},
		{"a space in a name", clientOpen, head(":status", "200", "a b", "0"), ""},
		{"LF in a value", clientOpen, head(":status", "200", "a", "b\nc: d"), ""},
		{"connection", clientOpen, head(":status", "200", "connection", "close"), ""},
		{"keep-alive", clientOpen, head(":status", "200", "keep-alive", "1"), ""},
		{"proxy-connection", clientOpen, head(":status", "200", "proxy-connection", "close"), ""},
		{"transfer-encoding", clientOpen, head(":status", "200", "transfer-encoding", "chunked"), ""},
		{"upgrade", clientOpen, head(":status", "200", "upgrade", "h2c"), ""},
		{"te", clientOpen, head(":status", "200", "te", "gzip"), ""},
		{"interim in upper case", clientOpen, wire().headers(1, false, ":status", "103", "Link", "x"), ""},
		{"trailers with :status", clientAnswering, head(":status", "200"), ""},
		{"trailers with :path", clientAnswering, head("a", "b", ":path", "/"), ""},
		{"trailers in upper case", clientAnswering, head("Grpc-Status", "0"), ""},
		{"trailers with connection", clientAnswering, head("connection", "close"), ""},
		{"request trailers without END_STREAM", serverOpen, wire().headers(1, false, "a", "b"), ""},
		{"request trailers with :path", serverOpen, head(":path", "/"), ""},
		{"request trailers with :status", serverOpen, head(":status", "200"), ""},
		{"request trailers in upper case", serverOpen, head("A", "b"), ""},
		{"request trailers with te", serverOpen, head("te", "gzip"), ""},
	}
	for i := range rulings {
		rulings[i].want = broken(ProtocolError)
	}
	rule(t, append(rulings,
		ruling{"te: trailers", clientAnswering, head("te", "trailers"), "headers 1 te=trailers END"},
		ruling{"a request, of which nobody hears", serverIdle, wire().request(1, true, "Upper", "case"), "RST 1 PROTOCOL_ERROR"},
	))
}

// RFC 9113 8.1.1: a message has as much content as its content-length says, in
// both directions; one that has not is malformed, and nothing beyond its length
// is told to anybody.
func TestRFC9113_8_1_1_ContentLength(t *testing.T) {
	const name = contentLength
	ask := func(value string) *wireBytes { return wire().request(1, false, name, value) }
	reply := func(value string) *wireBytes { return wire().answer(1, false, name, value) }
	const asked, replied = "headers 1 :path=/s/m content-length=", "headers 1 :status=200 content-length="
	refused := "RST 1 PROTOCOL_ERROR" // before anybody has heard of it
	rule(t, []ruling{
		{"as much", serverIdle, ask("4").data(1, true, "test"), asked + "4; data 1 test END"},
		{"as much, in parts, padded", serverIdle, ask("4").padded(1, false, "te", 7).data(1, false, "st").data(1, true, ""),
			asked + "4; data 1 te; data 1 st; data 1  END"},
		{"as much, then trailers", serverIdle, ask("4").data(1, false, "test").headers(1, true, "a", "b"), asked + "4; data 1 test; headers 1 a=b END"},
		{"leading zeros", serverIdle, ask("0000000000000000000000000000004").data(1, true, "test"), asked + "(31 bytes); data 1 test END"},
		{"nothing, of nothing", serverIdle, wire().request(1, true, name, "0"), asked + "0 END"},
		{"nothing, of one", serverIdle, wire().request(1, true, name, "1"), refused},
		{"no number", serverIdle, ask("x"), refused},
		{"two that agree", serverIdle, wire().request(1, false, name, "1", name, "1"), refused},
		{"more", serverIdle, ask("3").data(1, true, "test"), asked + "3; " + broken(ProtocolError)},
		{"more than nothing", serverIdle, ask("0").data(1, false, "t"), asked + "0; " + broken(ProtocolError)},
		{"more, in parts", serverIdle, ask("3").padded(1, false, "tes", 2).data(1, true, "t"), asked + "3; data 1 tes; " + broken(ProtocolError)},
		{"less", serverIdle, ask("5").data(1, true, "test"), asked + "5; " + broken(ProtocolError)},
		{"less, with padding", serverIdle, ask("5").padded(1, true, "test", 1), asked + "5; " + broken(ProtocolError)},
		{"less, then the end", serverIdle, ask("5").padded(1, false, "test", 0).data(1, true, ""), asked + "5; data 1 test; " + broken(ProtocolError)},
		{"less, then trailers", serverIdle, ask("5").padded(1, false, "test", 0).headers(1, true, "a", "b"), asked + "5; data 1 test; " + broken(ProtocolError)},
		{"more than there can be", serverIdle, ask(strings.Repeat("9", 30)).data(1, true, "test"), asked + "(30 bytes); " + broken(ProtocolError)},
		{"a length in trailers says nothing", serverIdle, wire().request(1, false).data(1, false, "test").headers(1, true, name, "9"),
			"headers 1 :path=/s/m; data 1 test; headers 1 content-length=9 END"},

		{"answer: as much", clientOpen, reply("4").data(1, true, "test"), replied + "4; data 1 test END"},
		{"answer: as much, then trailers", clientOpen, reply("4").data(1, false, "test").headers(1, true, "a", "b"), replied + "4; data 1 test; headers 1 a=b END"},
		{"answer: nothing, of nothing", clientOpen, wire().answer(1, true, name, "0"), replied + "0 END"},
		{"answer: nothing, of one", clientOpen, wire().answer(1, true, name, "1"), broken(ProtocolError)},
		{"answer: two lengths", clientOpen, wire().answer(1, false, name, "1", name, "2"), broken(ProtocolError)},
		{"answer: more", clientOpen, reply("3").data(1, true, "test"), replied + "3; " + broken(ProtocolError)},
		{"answer: less", clientOpen, reply("5").data(1, true, "test"), replied + "5; " + broken(ProtocolError)},
		{"answer: less, then trailers", clientOpen, reply("5").headers(1, true, "a", "b"), replied + "5; " + broken(ProtocolError)},
		{"answer: that of an interim one does not count", clientOpen, wire().headers(1, false, ":status", "103", name, "9").answer(1, true),
			"headers 1 :status=103 content-length=9; headers 1 :status=200 END"},
	})
}

// RFC 9113 8.1.1, RFC 9110 6.4.1: answers to HEAD and those with 204 or 304
// have no content, whatever their content-length says.
func TestRFC9113_8_1_1_NoContent(t *testing.T) {
	head := inClient(func(r *rig) {
		s := &Stream{}
		s.NoContent()
		r.conn.Open(s, true, statelessRequest)
	})
	say := func(end bool, status string) *wireBytes {
		return wire().headers(1, end, ":status", status, contentLength, "7")
	}
	rule(t, []ruling{
		{"HEAD", head, say(true, "200"), "headers 1 :status=200 content-length=7 END"},
		{"HEAD, ended by DATA", head, say(false, "200").data(1, true, ""), "headers 1 :status=200 content-length=7; data 1  END"},
		{"HEAD, ended by trailers", head, say(false, "200").headers(1, true, "a", "b"), "headers 1 :status=200 content-length=7; headers 1 a=b END"},
		{"HEAD with content", head, say(false, "200").data(1, true, "content"), "headers 1 :status=200 content-length=7; " + broken(ProtocolError)},
		{"304", clientOpen, say(true, "304"), "headers 1 :status=304 content-length=7 END"},
		{"304 with content", clientOpen, say(false, "304").data(1, true, "content"), "headers 1 :status=304 content-length=7; " + broken(ProtocolError)},
		{"204", clientOpen, say(true, "204"), "headers 1 :status=204 content-length=7 END"},
		{"200", clientOpen, say(true, "200"), broken(ProtocolError)},
	})

	r := newClient(t)
	s := &Stream{}
	s.NoContent()
	s.Clear()
	r.conn.Open(s, true, statelessRequest)
	r.frames()
	got, want := r.outcome(wire().answer(1, false).data(1, true, "x")), "headers 1 :status=200; data 1 x END"
	testkit.Want(t, got == want, "the next use of a stream: %q, want %q", got, want)
}

// The promise of a list that is too large for us is not known, and that of a
// block which is remembered by its octets is the block's own.
func TestRFC9113_8_1_1_LargeAndRepeatedBlocks(t *testing.T) {
	r := newServer(t, func(c *Config) { c.MaxHeaderList = 300 })
	big := strings.Repeat("b", 300)
	if got, want := r.outcome(wire().request(1, false, contentLength, "1", "big", big).data(1, true, "four")), "too large 1; data 1 four END"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r = newServer(t)
	for id := uint32(1); id < 20; id += 2 {
		block := string(append(stateless(":method", "POST", ":scheme", "http", ":path", "/s/m"), stateless(contentLength, "3")...))
		r.settle(wire().frame(frameHeaders, flagEndHeaders, id, block))
		if got := r.streams[id].contentLeft; got != 3 {
			t.Fatalf("block %d promises %d", id/2, got)
		}
		r.conn.Reset(r.streams[id], Cancel)
	}
}

func setting(id http2.SettingID, value uint32) http2.Setting {
	return http2.Setting{ID: id, Val: value}
}

// RFC 9113 6.5, 6.5.2: what a SETTINGS frame may say, to either role.
func TestRFC9113_6_5_2_Settings(t *testing.T) {
	says := func(s ...http2.Setting) *wireBytes { return wire().settings(s...) }
	rule(t, both(serverOpen, clientOpen,
		ruling{name: "nothing", in: says(), want: "SETTINGS ack"},
		ruling{name: "an unknown setting", in: says(setting(0xf000, 1<<32-1)), want: "SETTINGS ack"},
		ruling{name: "the largest header table", in: says(setting(http2.SettingHeaderTableSize, 1<<32-1)), want: "SETTINGS ack"},
		ruling{name: "the smallest frame size", in: says(setting(http2.SettingMaxFrameSize, 16384)), want: "SETTINGS ack"},
		ruling{name: "the largest frame size", in: says(setting(http2.SettingMaxFrameSize, 1<<24-1)), want: "SETTINGS ack"},
		ruling{name: "a frame size below the smallest", in: says(setting(http2.SettingMaxFrameSize, 16383)), want: "PROTOCOL_ERROR: setting_max_frame_size"},
		ruling{name: "a frame size above the largest", in: says(setting(http2.SettingMaxFrameSize, 1<<24)), want: "PROTOCOL_ERROR: setting_max_frame_size"},
		ruling{name: "the largest window", in: says(setting(http2.SettingInitialWindowSize, 1<<31-1)), want: "SETTINGS ack"},
		ruling{name: "a window above the largest", in: says(setting(http2.SettingInitialWindowSize, 1<<31)), want: "FLOW_CONTROL_ERROR: setting_initial_window"},
		ruling{name: "a push that is neither on nor off", in: says(setting(http2.SettingEnablePush, 2)), want: "PROTOCOL_ERROR: setting_enable_push"},
		ruling{name: "a header list of no size", in: says(setting(http2.SettingMaxHeaderListSize, 0)), want: "SETTINGS ack"},
		ruling{name: "settings on a stream", in: wire().frame(frameSettings, 0, 1, ""), want: "PROTOCOL_ERROR: settings_stream"},
		ruling{name: "an acknowledgement with content", in: wire().frame(frameSettings, flagAck, 0, "123456"), want: "FRAME_SIZE_ERROR: settings_ack_size"},
		ruling{name: "an acknowledgement of nothing", in: wire().settingsAck().settingsAck(), want: ignored},
		ruling{name: "one acknowledgement each (6.5.3)", in: says().settings(windowSize(5)), want: "SETTINGS ack; SETTINGS ack"},
	))
}

// RFC 9113 6.5.3: the values of a frame apply in order, and before the
// acknowledgement.
func TestRFC9113_6_5_3_Order(t *testing.T) {
	r := serverAsked.rig(t)
	s := r.streams[1]
	r.conn.WriteData(s, make([]byte, 65535), false)
	r.frames()
	r.conn.Want(s)
	r.onWritable = func(s *Stream) { r.conn.WriteData(s, []byte("more"), false) }
	r.feed(wire().window(0, 100).settings(windowSize(0), windowSize(65535+4)))
	r.wantFrames("SETTINGS ack", "DATA 1 more")
	r.wantLog("writable 1")
}

// RFC 9113 5.1.2: a limit of 0 keeps a client from opening streams, until it is
// raised.
func TestRFC9113_5_1_2_NoStreams(t *testing.T) {
	r := newClient(t).settle(wire().settings(setting(http2.SettingMaxConcurrentStreams, 0)))
	testkit.Want(t, !r.conn.CanOpen() && !r.conn.Retired(), "a limit of 0 leaves room, or ends the connection")
	r.settle(wire().settings(setting(http2.SettingMaxConcurrentStreams, 1)))
	testkit.Want(t, r.conn.CanOpen(), "the raised limit leaves no room")
}

// RFC 9113 6.9, 6.9.1: credit of nothing, and credit beyond the largest window.
func TestRFC9113_6_9_1_WindowOverflow(t *testing.T) {
	const most = 1<<31 - 1
	zero := func(stream uint32) *wireBytes { return wire().frame(frameWindowUpdate, 0, stream, "\x00\x00\x00\x00") }
	rule(t, both(serverOpen, clientOpen,
		ruling{name: "nothing for a stream", in: zero(1), want: broken(ProtocolError)},
		ruling{name: "nothing but the reserved bit", in: wire().frame(frameWindowUpdate, 0, 1, "\x80\x00\x00\x00"), want: broken(ProtocolError)},
		ruling{name: "nothing for the connection", in: zero(0), want: "PROTOCOL_ERROR: window_update_zero"},
		ruling{name: "a stream's window as large as can be", in: wire().window(1, most-65535), want: ignored},
		ruling{name: "a stream's window one larger", in: wire().window(1, most-65535).window(1, 1), want: broken(FlowControlError)},
		ruling{name: "the connection's as large as can be", in: wire().window(0, most-65535), want: ignored},
		ruling{name: "the connection's one larger", in: wire().window(0, most-65535).window(0, 1), want: "FLOW_CONTROL_ERROR: connection_window_overflow"},
	))
	rule(t, both(serverReset, clientReset,
		ruling{name: "nothing for a closed stream", in: zero(1), want: ignored},
	))
}

// RFC 9113 6.9.2: a changed initial window moves the window of every open
// stream by the difference, below zero if need be, and not the connection's.
func TestRFC9113_6_9_2_InitialWindow(t *testing.T) {
	r := newClient(t)
	one, two := r.open(false), r.open(false)
	r.conn.WriteData(one, make([]byte, 1000), false)
	r.settle(wire().settings(windowSize(100)))
	testkit.Want(t, one.sendWindow == -900 && two.sendWindow == 100,
		"windows of %d and %d, want -900 and 100", one.sendWindow, two.sendWindow)
	testkit.Want(t, r.conn.Writable(one) == 0 && r.conn.Writable(two) == 100 && r.conn.sendWindow == 65535-1000,
		"writable: %d and %d, the connection has %d", r.conn.Writable(one), r.conn.Writable(two), r.conn.sendWindow)
	r.settle(wire().window(1, 900).settings(windowSize(65535)))
	testkit.Want(t, one.sendWindow == 65435 && two.sendWindow == 65535,
		"windows of %d and %d, want 65435 and 65535", one.sendWindow, two.sendWindow)
	three := r.open(false)
	testkit.Want(t, three.sendWindow == 65535, "a new stream has %d", three.sendWindow)
	r.fail(wire().window(3, 1<<31-1-65535).settings(windowSize(65536)), "FLOW_CONTROL_ERROR: setting_window_overflow")
}

// RFC 9113 6.9: what a worker sends beyond a window that we have announced
// breaks its stream, what it sends beyond the connection's ends that; DATA
// counts with its padding, and also on streams that are closed (5.1).
func TestRFC9113_6_9_WorkersKeepOurWindows(t *testing.T) {
	small := clientAnswering
	small.change = append(small.change, func(c *Config) { c.Window, c.MaxWindow = 10, 10 })
	rule(t, []ruling{
		{"all of the window", small, wire().data(1, false, "0123456789"), "data 1 0123456789"},
		{"one more", small, wire().data(1, false, "0123456789a"), broken(FlowControlError)},
		{"one more in two frames", small, wire().data(1, false, "0123456789").data(1, true, "a"), "data 1 0123456789; " + broken(FlowControlError)},
		{"one more with padding", small, wire().padded(1, false, "01234", 5), broken(FlowControlError)},
		{"an empty frame with no window left", small, wire().data(1, false, "0123456789").data(1, true, ""), "data 1 0123456789; data 1  END"},
	})

	r := clientReset.rig(t)
	before := r.conn.recvWindow
	r.settle(wire().data(1, false, "late"))
	if used := before - r.conn.recvWindow; used != 4 || r.conn.recvDebt != 4 {
		t.Errorf("DATA on a closed stream: %d bytes of the window used, %d owed", used, r.conn.recvDebt)
	}
	r.conn.recvWindow = 3
	r.fail(wire().data(1, false, "late"), "FLOW_CONTROL_ERROR: data_over_connection_window")
}
