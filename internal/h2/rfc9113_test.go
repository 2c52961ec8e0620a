package h2

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The tests of this file and of its neighbors hold the engine to RFC 9113 and
// RFC 7541 in both roles, by section: what h2spec, which only plays the client,
// cannot see, and what it leaves out. docs/conformance.md is their index.

// A ruling is what the engine makes of some bytes on stream 1, which is in the
// given state before.
type ruling struct {
	name  string
	state state
	in    *wireBytes
	// want is what the handler is told and what is written, joined by "; ", or
	// the connection error that the bytes are refused with.
	want string
}

// A state is how an engine stands when a ruling is asked for: mostly one of the
// states of RFC 9113 section 5.1 for stream 1. In the client role the engine
// has opened the stream itself.
type state struct {
	server bool
	enter  func(*rig)
	change []func(*Config)
}

func inServer(enter func(*rig)) state { return state{server: true, enter: enter} }
func inClient(enter func(*rig)) state { return state{enter: enter} }

// rig makes an engine in this state.
func (s state) rig(t testing.TB) *rig {
	t.Helper()
	begin := newClient
	if s.server {
		begin = newServer
	}
	r := begin(t, s.change...)
	s.enter(r)
	return r.settle(wire())
}

var (
	serverIdle  = inServer(func(*rig) {})
	serverOpen  = inServer(func(r *rig) { r.feed(wire().request(1, false)) })
	serverAsked = inServer(func(r *rig) { r.feed(wire().request(1, true)) })
	serverDone  = inServer(func(r *rig) {
		r.feed(wire().request(1, true))
		r.conn.WriteHeaders(r.streams[1], true, statelessAnswer)
	})
	serverReset     = inServer(func(r *rig) { r.feed(wire().request(1, false)); r.conn.Reset(r.streams[1], Cancel) })
	serverPeerReset = inServer(func(r *rig) { r.feed(wire().request(1, false).rst(1, Cancel)) })

	clientIdle      = inClient(func(*rig) {})
	clientOpen      = inClient(func(r *rig) { r.open(false) })
	clientAnswering = inClient(func(r *rig) { r.open(false); r.feed(wire().answer(1, false)) })
	clientAnswered  = inClient(func(r *rig) { r.open(false); r.feed(wire().answer(1, true)) })
	clientDone      = inClient(func(r *rig) { r.open(true); r.feed(wire().answer(1, true)) })
	clientReset     = inClient(func(r *rig) { r.open(false); r.conn.Reset(r.streams[1], Cancel) })
)

// settle feeds what leads to a state and forgets what came of it.
func (r *rig) settle(w *wireBytes) *rig {
	r.t.Helper()
	r.feed(w)
	r.frames()
	r.log = nil
	return r
}

// broken is the ruling on bytes that break stream 1 and nothing else.
func broken(code ErrCode) string {
	return "reset 1 " + code.String() + " by engine; RST 1 " + code.String()
}

// ignored is the ruling on bytes that change nothing.
const ignored = ""

func rule(t *testing.T, rulings []ruling) {
	t.Helper()
	for _, tt := range rulings {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.state.rig(t)
			got := r.outcome(tt.in)
			testkit.Need(t, got == tt.want, "got %q, want %q", got, tt.want)
			fails := strings.Contains(got, ": ")
			if r.conn.state == failed != fails {
				t.Errorf("the connection has failed: %t", !fails)
			}
			if fails {
				r.wantFailed(got)
			}
		})
	}
}

// outcome feeds the bytes and returns the engine's ruling. A connection that
// goes on answers a PING.
func (r *rig) outcome(w *wireBytes) string {
	r.t.Helper()
	if err := r.conn.Feed(bytes.Clone(w.b.Bytes()), r.now); err != nil {
		return err.Error()
	}
	said := append(r.log, r.frames()...)
	r.feed(wire().ping(false, "are you?"))
	r.wantFrames(`PING "are you?" ack=true`)
	return strings.Join(said, "; ")
}

// both returns rulings that hold in either role.
func both(server, client state, rulings ...ruling) []ruling {
	var all []ruling
	for _, r := range rulings {
		all = append(all, ruling{"server, " + r.name, server, r.in, r.want}, ruling{"client, " + r.name, client, r.in, r.want})
	}
	return all
}

// reserved sets the reserved bit in front of the stream identifier.
func reserved(w *wireBytes) *wireBytes {
	w.b.Bytes()[5] |= 0x80
	return w
}

// RFC 9113 4.1: the reserved bit and undefined flags are ignored, and so is a
// frame of an unknown type, whatever it holds.
func TestRFC9113_4_1_FrameFormat(t *testing.T) {
	unknown := func(kind frameType) *wireBytes {
		return wire().frame(kind, 0xff, 1, strings.Repeat("x", 100))
	}
	rule(t, append(both(serverIdle, clientIdle,
		ruling{name: "unknown type", in: unknown(0x0a), want: ignored},
		ruling{name: "type 0xff", in: unknown(0xff), want: ignored},
		ruling{name: "empty unknown frame", in: wire().frame(0x77, 0, 0, ""), want: ignored},
		ruling{name: "SETTINGS with other flags", in: wire().frame(frameSettings, 0xfe, 0, ""), want: "SETTINGS ack"},
		ruling{name: "PING with other flags", in: wire().frame(framePing, 0xfe, 0, "12345678"), want: `PING "12345678" ack=true`},
		ruling{name: "reserved bit of PING", in: reserved(wire().ping(false, "12345678")), want: `PING "12345678" ack=true`},
		ruling{name: "GOAWAY with flags", in: wire().frame(frameGoAway, 0xff, 0, "\x00\x00\x00\x05\x00\x00\x00\x00"), want: "goaway 5 NO_ERROR"},
		ruling{name: "reserved bit within GOAWAY", in: wire().frame(frameGoAway, 0, 0, "\x80\x00\x00\x05\x00\x00\x00\x00"), want: "goaway 5 NO_ERROR"},
		ruling{name: "reserved bit within WINDOW_UPDATE", in: wire().frame(frameWindowUpdate, 0xff, 0, "\x80\x00\x00\x05"), want: ignored},
		ruling{name: "PRIORITY with flags", in: wire().frame(framePriority, 0xff, 1, "\x00\x00\x00\x03\x00"), want: ignored},
	), []ruling{
		{"HEADERS with other flags and the reserved bit", clientOpen,
			reserved(wire().frame(frameHeaders, flagEndHeaders|0xd2, 1, "\x88")), "headers 1 :status=200"},
		{"DATA with other flags and the reserved bit", clientAnswering,
			reserved(wire().frame(frameData, 0xf6, 1, "x")), "data 1 x"},
		{"RST_STREAM with flags and the reserved bit", clientOpen,
			reserved(wire().frame(frameRSTStream, 0xff, 1, "\x00\x00\x00\x08")), "reset 1 CANCEL by peer"},
		{"CONTINUATION with other flags", clientOpen,
			wire().frame(frameHeaders, 0, 1, "\x88").frame(frameContinuation, flagEndHeaders|0xf1, 1, ""), "headers 1 :status=200"},
	}...))
}

// RFC 9113 4.2: a frame may be as long as we have said, and no longer; one that
// is too short for what it must hold ends the connection.
func TestRFC9113_4_2_FrameSize(t *testing.T) {
	long := func(kind frameType, stream uint32, more int) *wireBytes {
		return wire().frame(kind, 0, stream, strings.Repeat("\x00", defaultMaxFrame+more))
	}
	const tooLarge = "FRAME_SIZE_ERROR: frame_too_large"
	rulings := both(serverOpen, clientAnswering,
		ruling{name: "DATA as long as allowed", in: long(frameData, 1, 0), want: "data 1 (16384 bytes)"},
		ruling{name: "DATA one longer", in: long(frameData, 1, 1), want: tooLarge},
		ruling{name: "unknown frame as long as allowed", in: long(0x42, 1, 0), want: ignored},
		ruling{name: "unknown frame one longer", in: long(0x42, 1, 1), want: tooLarge},
		ruling{name: "HEADERS one longer", in: long(frameHeaders, 1, 1), want: tooLarge},
		ruling{name: "SETTINGS one longer", in: long(frameSettings, 0, 1), want: tooLarge},
		ruling{name: "RST_STREAM too short", in: wire().frame(frameRSTStream, 0, 1, "123"), want: "FRAME_SIZE_ERROR: rst_size"},
		ruling{name: "RST_STREAM too long", in: wire().frame(frameRSTStream, 0, 1, "12345"), want: "FRAME_SIZE_ERROR: rst_size"},
		ruling{name: "PING too long", in: wire().frame(framePing, 0, 0, "123456789"), want: "FRAME_SIZE_ERROR: ping_size"},
		ruling{name: "GOAWAY too short", in: wire().frame(frameGoAway, 0, 0, "1234567"), want: "FRAME_SIZE_ERROR: goaway_size"},
		ruling{name: "WINDOW_UPDATE too long", in: wire().frame(frameWindowUpdate, 0, 1, "12345"), want: "FRAME_SIZE_ERROR: window_update_size"},
		ruling{name: "SETTINGS cut off", in: wire().frame(frameSettings, 0, 0, "1234567"), want: "FRAME_SIZE_ERROR: settings_size"},
		ruling{name: "HEADERS without its pad length", in: wire().frame(frameHeaders, flagPadded|flagEndHeaders, 1, ""), want: "FRAME_SIZE_ERROR: headers_no_pad_length"},
		ruling{name: "HEADERS without its priority", in: wire().frame(frameHeaders, flagPriority|flagEndHeaders, 1, "1234"), want: "FRAME_SIZE_ERROR: headers_no_priority"},
		ruling{name: "HEADERS without its priority behind the pad length", in: wire().frame(frameHeaders, flagPadded|flagPriority|flagEndHeaders, 1, "\x001234"), want: "FRAME_SIZE_ERROR: headers_no_priority"},
	)
	rule(t, rulings)
}

// RFC 9113 5.1: which frames each state allows. Those of the table connErrors
// are not repeated.
func TestRFC9113_5_1_StreamStates(t *testing.T) {
	priority := wire().frame(framePriority, 0, 1, "\x00\x00\x00\x03\x00")
	rule(t, []ruling{
		{"idle: WINDOW_UPDATE of a worker", clientIdle, wire().window(1, 1), "PROTOCOL_ERROR: window_update_idle_stream"},
		{"idle: PRIORITY", serverIdle, priority, ignored},
		{"idle: PRIORITY of a worker", clientIdle, priority, ignored},

		{"half-closed (remote): DATA of a worker", clientAnswered, wire().data(1, false, "x"), broken(StreamClosed)},
		{"half-closed (remote): HEADERS of a worker", clientAnswered, wire().headers(1, true, "a", "b"), broken(StreamClosed)},
		{"half-closed (remote): WINDOW_UPDATE of a worker", clientAnswered, wire().window(1, 1), ignored},
		{"half-closed (remote): RST_STREAM of a worker", clientAnswered, wire().rst(1, NoError), "reset 1 NO_ERROR by peer"},
		{"half-closed (remote): DATA", serverAsked, wire().data(1, false, "x"), broken(StreamClosed)},
		{"half-closed (remote): HEADERS", serverAsked, wire().headers(1, true, "a", "b"), broken(StreamClosed)},
		{"half-closed (remote): WINDOW_UPDATE", serverAsked, wire().window(1, 1), ignored},
		{"half-closed (remote): PRIORITY", serverAsked, priority, ignored},
		{"half-closed (remote): RST_STREAM", serverAsked, wire().rst(1, Cancel), "reset 1 CANCEL by peer"},

		{"closed by END_STREAM: HEADERS", serverDone, wire().request(1, true), "STREAM_CLOSED: headers_closed_stream"},
		{"closed by END_STREAM: DATA", serverDone, wire().data(1, true, "x"), "RST 1 STREAM_CLOSED"},
		{"closed by END_STREAM: WINDOW_UPDATE", serverDone, wire().window(1, 1), ignored},
		{"closed by END_STREAM: RST_STREAM", serverDone, wire().rst(1, Cancel), ignored},
		{"closed by END_STREAM: PRIORITY", serverDone, priority, ignored},
		{"closed by END_STREAM: WINDOW_UPDATE of a worker", clientDone, wire().window(1, 1), ignored},
		{"closed by END_STREAM: RST_STREAM of a worker", clientDone, wire().rst(1, NoError), ignored},

		{"closed by the peer's reset: DATA", serverPeerReset, wire().data(1, true, "x"), "RST 1 STREAM_CLOSED"},
		{"closed by the peer's reset: RST_STREAM", serverPeerReset, wire().rst(1, Cancel), ignored},

		{"closed by our reset: HEADERS", serverReset, wire().headers(1, true, "a", "b"), ignored},
		{"closed by our reset: malformed HEADERS", serverReset, wire().headers(1, true, "A", "b"), ignored},
		{"closed by our reset: DATA", serverReset, wire().data(1, true, "x"), ignored},
		{"closed by our reset: WINDOW_UPDATE beyond the window", serverReset, wire().window(1, 1<<31-1), ignored},
		{"closed by our reset: an answer", clientReset, wire().answer(1, false).data(1, false, "x").headers(1, true, "a", "b"), ignored},
		{"closed by our reset: malformed answer", clientReset, wire().headers(1, true, "A", "b"), ignored},
		{"closed by our reset: RST_STREAM of a worker", clientReset, wire().rst(1, NoError), ignored},
	})
}

// RFC 9113 5.1: what was under way to a stream when we reset it is ignored, no
// matter how many others were reset since, and what it says to the header
// decoder is kept (4.3).
func TestRFC9113_5_1_ResetStreamsStayIgnored(t *testing.T) {
	r := newServer(t)
	const streams = 1000
	for id := uint32(1); id < 2*streams; id += 2 {
		r.settle(wire().frame(frameHeaders, flagEndHeaders, id, string(statelessRequest)))
		r.conn.Reset(r.streams[id], Cancel)
	}
	r.frames()
	for id := uint32(1); id < 2*streams; id += 2 {
		// Trailers that enter the dynamic table: a later block refers to them.
		trailers := string(literal("late", "trailers"))
		r.feed(wire().data(id, false, "x").frame(frameHeaders, flagEndHeaders|flagEndStream, id, trailers))
	}
	r.wantFrames()
	r.wantLog()
	r.feed(wire().frame(frameHeaders, flagEndHeaders|flagEndStream, 2*streams+1, string(statelessRequest)+"\xbe"))
	r.wantLog("headers 2001 :path=/s/m late=trailers END")
}

// RFC 9113 5.1.1: a stream above the ones that we have reset is judged as ever.
func TestRFC9113_5_1_1_StreamIdentifiers(t *testing.T) {
	r := serverReset.rig(t)
	r.settle(wire().request(5, true))
	r.conn.WriteHeaders(r.streams[5], true, statelessAnswer)
	r.fail(wire().request(3, true), "STREAM_CLOSED: headers_closed_stream")

	rule(t, []ruling{
		{"a worker opens a stream", clientOpen, wire().answer(2, true), "PROTOCOL_ERROR: headers_idle_stream"},
		{"a worker sends DATA on an even stream", clientOpen, wire().data(2, true, "x"), "PROTOCOL_ERROR: data_idle_stream"},
		{"a worker answers a stream to come", clientOpen, wire().answer(3, true), "PROTOCOL_ERROR: headers_idle_stream"},
		{"a caller sends DATA on an even stream", serverOpen, wire().data(2, true, "x"), "PROTOCOL_ERROR: data_idle_stream"},
	})
}

// RFC 9113 6.1, 6.2: padding may be all of a frame but its own length octet,
// may hold anything, and no more.
func TestRFC9113_6_1_Padding(t *testing.T) {
	pad := func(kind frameType, flags uint8, payload string) *wireBytes {
		return wire().frame(kind, flags|flagPadded, 1, payload)
	}
	rule(t, both(serverOpen, clientAnswering,
		ruling{name: "DATA of padding alone", in: pad(frameData, 0, "\x03abc"), want: ignored},
		ruling{name: "DATA of padding alone that ends the stream", in: pad(frameData, flagEndStream, "\x03abc"), want: "data 1  END"},
		ruling{name: "DATA with a padding of 0", in: pad(frameData, 0, "\x00abc"), want: "data 1 abc"},
		ruling{name: "DATA with as much padding as payload", in: pad(frameData, 0, "\x04abc"), want: "PROTOCOL_ERROR: data_padding"},
		ruling{name: "DATA with more padding", in: pad(frameData, 0, "\xffabc"), want: "PROTOCOL_ERROR: data_padding"},
		ruling{name: "DATA without its pad length", in: pad(frameData, 0, ""), want: "FRAME_SIZE_ERROR: data_no_pad_length"},
		ruling{name: "trailers of padding alone", in: pad(frameHeaders, flagEndHeaders|flagEndStream, "\x03abc"), want: "headers 1 END"},
		ruling{name: "HEADERS with as much padding as payload", in: pad(frameHeaders, flagEndHeaders|flagEndStream, "\x04abc"), want: "PROTOCOL_ERROR: headers_padding"},
	))
}

// RFC 9113 6.3: a PRIORITY frame of a wrong size breaks its stream; RFC 7540
// 5.3.1: so does one, or a HEADERS frame, by which the stream depends on
// itself. An idle stream cannot be reset (6.4).
func TestRFC9113_6_3_Priority(t *testing.T) {
	wrong, self := wire().frame(framePriority, 0, 1, "123456"), wire().frame(framePriority, 0, 1, "\x80\x00\x00\x01\x10")
	rule(t, both(serverIdle, clientIdle,
		ruling{name: "idle, wrong size", in: wrong, want: "FRAME_SIZE_ERROR: priority_size"},
		ruling{name: "idle, on itself", in: self, want: "PROTOCOL_ERROR: priority_self"},
	))
	rule(t, both(serverOpen, clientOpen,
		ruling{name: "open, wrong size", in: wrong, want: broken(FrameSizeError)},
		ruling{name: "open, on itself", in: self, want: broken(ProtocolError)},
	))
	rule(t, both(serverDone, clientDone,
		ruling{name: "closed, wrong size", in: wrong, want: "RST 1 FRAME_SIZE_ERROR"},
		ruling{name: "closed, on itself", in: self, want: "RST 1 PROTOCOL_ERROR"},
	))
	block := string(wire().encode(":method", "GET", ":scheme", "http", ":path", "/s/m"))
	head := func(on string) *wireBytes {
		return wire().frame(frameHeaders, flagPriority, 1, "\x80\x00\x00"+on+"\x10").
			frame(frameContinuation, flagEndHeaders, 1, block).request(3, true)
	}
	rule(t, []ruling{
		{"HEADERS on another", serverIdle, head("\x03"), "headers 1 :path=/s/m; headers 3 :path=/s/m END"},
		{"HEADERS on itself", serverIdle, head("\x01"), "headers 3 :path=/s/m END; RST 1 PROTOCOL_ERROR"},
		{"an answer on itself", clientOpen,
			wire().frame(frameHeaders, flagPriority|flagEndHeaders, 1, "\x00\x00\x00\x01\x10\x88"), broken(ProtocolError)},
	})
}

// RFC 9113 6.4: any code resets, also an unknown one (7).
func TestRFC9113_6_4_Reset(t *testing.T) {
	rule(t, both(serverOpen, clientAnswering,
		ruling{name: "unknown code", in: wire().rst(1, 0xbad), want: "reset 1 UNKNOWN_0xbad by peer"},
		ruling{name: "twice", in: wire().rst(1, Cancel).rst(1, Cancel), want: "reset 1 CANCEL by peer"},
		ruling{name: "stream 0", in: wire().rst(0, Cancel), want: "PROTOCOL_ERROR: rst_idle_stream"},
	))
}

// RFC 9113 6.7, 6.8: frames of the connection, in both roles.
func TestRFC9113_6_8_PingAndGoAway(t *testing.T) {
	rule(t, both(serverOpen, clientOpen,
		ruling{name: "an answer to a PING is not answered", in: wire().ping(true, "12345678"), want: `pong "12345678"`},
		ruling{name: "PING on a stream", in: wire().frame(framePing, 0, 1, "12345678"), want: "PROTOCOL_ERROR: ping_stream"},
		ruling{name: "GOAWAY on a stream", in: wire().frame(frameGoAway, 0, 1, "12345678"), want: "PROTOCOL_ERROR: goaway_stream"},
		ruling{name: "GOAWAY with a text", in: wire().frame(frameGoAway, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x0bslow down"), want: "goaway 1 ENHANCE_YOUR_CALM"},
		ruling{name: "GOAWAY with an unknown code", in: wire().frame(frameGoAway, 0, 0, "\x00\x00\x00\x01\x00\x00\xff\xff"), want: "goaway 1 UNKNOWN_0xffff"},
		ruling{name: "a later GOAWAY with a higher stream", in: wire().goAway(1, NoError).goAway(7, NoError), want: "goaway 1 NO_ERROR; goaway 1 NO_ERROR"},
	))
	rule(t, []ruling{
		{"streams go on behind a caller's GOAWAY", serverOpen, wire().goAway(0, NoError).data(1, true, "x"), "goaway 0 NO_ERROR; data 1 x END"},
		{"an answer behind a worker's GOAWAY", clientOpen, wire().goAway(1, NoError).answer(1, true), "goaway 1 NO_ERROR; headers 1 :status=200 END"},
	})
}

// RFC 9113 6.10: a header block is one frame with its CONTINUATIONs, and
// nothing between them.
func TestRFC9113_6_10_Continuation(t *testing.T) {
	begun := func() *wireBytes { return wire().frame(frameHeaders, flagEndStream, 1, "\x88") }
	const interrupted = "PROTOCOL_ERROR: header_block_interrupted"
	head := []string{":method", "GET", ":scheme", "http", ":path", "/s/m", "x", strings.Repeat("ä", 50)}
	block := string(wire().encode(head...))
	rule(t, []ruling{
		{"a block in frames of an octet", serverIdle, wire().fragments(1, true, 1, head...), "headers 1 :path=/s/m x=(100 bytes) END"},
		{"a block in two frames", serverIdle, wire().fragments(1, true, 63, head...), "headers 1 :path=/s/m x=(100 bytes) END"},
		{"a block that begins in the second frame", serverIdle,
			wire().frame(frameHeaders, flagEndStream, 1, "").frame(frameContinuation, flagEndHeaders, 1, block), "headers 1 :path=/s/m x=(100 bytes) END"},
		{"a block between padding and priority (6.2)", serverIdle,
			wire().frame(frameHeaders, flagPadded|flagPriority|flagEndHeaders, 1, "\x03\x80\x00\x00\x03\x10"+block+"\x00\x00\x00"), "headers 1 :path=/s/m x=(100 bytes)"},
		{"a list above our limit (6.5.2)", serverIdle, wire().fragments(1, true, 16384, append(head, "big", strings.Repeat("v", 17<<10))...), "too large 1 END"},
		{"END_STREAM is that of HEADERS", clientOpen, begun().frame(frameContinuation, flagEndHeaders, 1, ""), "headers 1 :status=200 END"},
		{"CONTINUATION behind END_HEADERS", clientOpen, wire().answer(1, false).frame(frameContinuation, flagEndHeaders, 1, ""), "PROTOCOL_ERROR: continuation_without_headers"},
		{"CONTINUATION behind DATA", clientAnswering, wire().data(1, false, "x").frame(frameContinuation, flagEndHeaders, 1, ""), "PROTOCOL_ERROR: continuation_without_headers"},
		{"CONTINUATION on stream 0", clientOpen, wire().frame(frameContinuation, flagEndHeaders, 0, ""), "PROTOCOL_ERROR: continuation_without_headers"},
		{"CONTINUATION of another stream", clientOpen, begun().frame(frameContinuation, flagEndHeaders, 3, ""), interrupted},
		{"HEADERS within a block", clientOpen, begun().answer(1, true), interrupted},
		{"DATA within a block", clientOpen, begun().data(1, false, "x"), interrupted},
		{"SETTINGS within a block", clientOpen, begun().settings(), interrupted},
		{"PRIORITY within a block", clientOpen, begun().frame(framePriority, 0, 1, "12345"), interrupted},
		{"an unknown frame within a block (5.5)", clientOpen, begun().frame(0x42, 0, 1, ""), interrupted},
		{"PUSH_PROMISE within a block", clientOpen, begun().frame(framePushPromise, 0, 1, "\x00\x00\x00\x02"), interrupted},
	})
}

// RFC 9113 6.6, 8.4: we have switched pushing off, and callers never may.
func TestRFC9113_8_4_Push(t *testing.T) {
	promise := wire().frame(framePushPromise, flagEndHeaders, 1, "\x00\x00\x00\x02\x82")
	rule(t, both(serverOpen, clientOpen, ruling{name: "PUSH_PROMISE", in: promise, want: "PROTOCOL_ERROR: push_promise"}))
	rule(t, both(serverReset, clientReset, ruling{name: "on a closed stream", in: promise, want: "PROTOCOL_ERROR: push_promise"}))
	rule(t, []ruling{
		{"a worker may say that it pushes nothing", clientOpen, wire().settings(http2.Setting{ID: http2.SettingEnablePush}), "SETTINGS ack"},
		{"a caller may say that it takes pushes", serverOpen, wire().settings(http2.Setting{ID: http2.SettingEnablePush, Val: 1}), "SETTINGS ack"},
	})
}
