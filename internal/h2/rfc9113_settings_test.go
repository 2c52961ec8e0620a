package h2

import (
	"testing"

	"golang.org/x/net/http2"
)

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
	if r.conn.CanOpen() || r.conn.Retired() {
		t.Error("a limit of 0 leaves room, or ends the connection")
	}
	r.settle(wire().settings(setting(http2.SettingMaxConcurrentStreams, 1)))
	if !r.conn.CanOpen() {
		t.Error("the raised limit leaves no room")
	}
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
	if one.sendWindow != -900 || two.sendWindow != 100 {
		t.Errorf("windows of %d and %d, want -900 and 100", one.sendWindow, two.sendWindow)
	}
	if r.conn.Writable(one) != 0 || r.conn.Writable(two) != 100 || r.conn.sendWindow != 65535-1000 {
		t.Errorf("writable: %d and %d, the connection has %d", r.conn.Writable(one), r.conn.Writable(two), r.conn.sendWindow)
	}
	r.settle(wire().window(1, 900).settings(windowSize(65535)))
	if one.sendWindow != 65435 || two.sendWindow != 65535 {
		t.Errorf("windows of %d and %d, want 65435 and 65535", one.sendWindow, two.sendWindow)
	}
	if three := r.open(false); three.sendWindow != 65535 {
		t.Errorf("a new stream has %d", three.sendWindow)
	}
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
