package h2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// connErrors is one row for each place that ends a connection, with the section
// of RFC 9113 that demands it (RFC 7541 for header blocks).
var connErrors = []struct {
	section string
	server  bool
	before  *wireBytes // accepted
	bad     *wireBytes
	want    string
}{
	{"4.2", true, nil, wire().raw([]byte{0, 0x40, 1, byte(frameData), 0, 0, 0, 0, 1}), "FRAME_SIZE_ERROR: frame_too_large"},
	{"4.3", true, wire().frame(frameHeaders, 0, 1, "\x82"), wire().ping(false, "12345678"), "PROTOCOL_ERROR: header_block_interrupted"},
	{"4.3", true, wire().frame(frameHeaders, 0, 1, "\x82"), wire().frame(frameContinuation, flagEndHeaders, 3, "\x84"), "PROTOCOL_ERROR: header_block_interrupted"},
	{"4.3", true, wire().frame(frameHeaders, 0, 1, "\x82"), wire().frame(0x42, 0, 1, ""), "PROTOCOL_ERROR: header_block_interrupted"},
	{"5.1", true, nil, wire().data(1, false, "x"), "PROTOCOL_ERROR: data_idle_stream"},
	{"5.1", false, nil, wire().data(1, false, "x"), "PROTOCOL_ERROR: data_idle_stream"},
	{"5.1", true, nil, wire().rst(1, Cancel), "PROTOCOL_ERROR: rst_idle_stream"},
	{"5.1", true, nil, wire().rst(2, Cancel), "PROTOCOL_ERROR: rst_idle_stream"},
	{"5.1", false, nil, wire().rst(1, Cancel), "PROTOCOL_ERROR: rst_idle_stream"},
	{"5.1", true, nil, wire().window(1, 5), "PROTOCOL_ERROR: window_update_idle_stream"},
	{"5.1", false, nil, wire().answer(1, true), "PROTOCOL_ERROR: headers_idle_stream"},
	{"5.1", true, wire().request(1, false).rst(1, Cancel), wire().headers(1, true, "a", "b"), "STREAM_CLOSED: headers_closed_stream"},
	{"5.1.1", true, nil, wire().request(2, true), "PROTOCOL_ERROR: headers_even_stream"},
	{"5.1.1", false, nil, wire().request(2, true), "PROTOCOL_ERROR: headers_idle_stream"},
	{"5.1.1", true, wire().request(5, true), wire().request(3, true), "STREAM_CLOSED: headers_closed_stream"},
	{"6.1", true, nil, wire().data(0, false, "x"), "PROTOCOL_ERROR: data_stream_0"},
	{"6.1", true, wire().request(1, false), wire().frame(frameData, flagPadded, 1, ""), "FRAME_SIZE_ERROR: data_no_pad_length"},
	{"6.1", true, wire().request(1, false), wire().frame(frameData, flagPadded, 1, "\x03ab"), "PROTOCOL_ERROR: data_padding"},
	{"6.2", true, nil, wire().request(0, true), "PROTOCOL_ERROR: headers_stream_0"},
	{"6.2", true, nil, wire().frame(frameHeaders, flagPadded|flagEndHeaders, 1, ""), "FRAME_SIZE_ERROR: headers_no_pad_length"},
	{"6.2", true, nil, wire().frame(frameHeaders, flagPadded|flagEndHeaders, 1, "\x02\x82"), "PROTOCOL_ERROR: headers_padding"},
	{"6.2", true, nil, wire().frame(frameHeaders, flagPriority|flagEndHeaders, 1, "\x82"), "FRAME_SIZE_ERROR: headers_no_priority"},
	{"6.3", true, nil, wire().frame(framePriority, 0, 0, "12345"), "PROTOCOL_ERROR: priority_stream_0"},
	{"6.3", true, nil, wire().frame(framePriority, 0, 1, "1234"), "FRAME_SIZE_ERROR: priority_size"},
	{"6.4", true, wire().request(1, false), wire().frame(frameRSTStream, 0, 1, "123"), "FRAME_SIZE_ERROR: rst_size"},
	{"6.4", true, nil, wire().rst(0, Cancel), "PROTOCOL_ERROR: rst_idle_stream"},
	{"6.5", true, nil, wire().frame(frameSettings, 0, 1, ""), "PROTOCOL_ERROR: settings_stream"},
	{"6.5", true, nil, wire().frame(frameSettings, flagAck, 0, "123456"), "FRAME_SIZE_ERROR: settings_ack_size"},
	{"6.5", true, nil, wire().frame(frameSettings, 0, 0, "12345"), "FRAME_SIZE_ERROR: settings_size"},
	{"6.5.2", true, nil, wire().settings(http2.Setting{ID: http2.SettingEnablePush, Val: 2}), "PROTOCOL_ERROR: setting_enable_push"},
	{"6.5.2", false, nil, wire().settings(http2.Setting{ID: http2.SettingEnablePush, Val: 1}), "PROTOCOL_ERROR: setting_enable_push"},
	{"6.5.2", true, nil, wire().settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}), "FLOW_CONTROL_ERROR: setting_initial_window"},
	{"6.5.2", true, nil, wire().settings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16383}), "PROTOCOL_ERROR: setting_max_frame_size"},
	{"6.5.2", true, nil, wire().settings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 24}), "PROTOCOL_ERROR: setting_max_frame_size"},
	{"6.6", true, nil, wire().frame(framePushPromise, 0, 1, "1234"), "PROTOCOL_ERROR: push_promise"},
	{"6.6", false, nil, wire().frame(framePushPromise, 0, 1, "1234"), "PROTOCOL_ERROR: push_promise"},
	{"6.7", true, nil, wire().frame(framePing, 0, 1, "12345678"), "PROTOCOL_ERROR: ping_stream"},
	{"6.7", true, nil, wire().frame(framePing, 0, 0, "1234567"), "FRAME_SIZE_ERROR: ping_size"},
	{"6.8", true, nil, wire().frame(frameGoAway, 0, 1, "12345678"), "PROTOCOL_ERROR: goaway_stream"},
	{"6.8", true, nil, wire().frame(frameGoAway, 0, 0, "1234567"), "FRAME_SIZE_ERROR: goaway_size"},
	{"6.9", true, nil, wire().frame(frameWindowUpdate, 0, 0, "123"), "FRAME_SIZE_ERROR: window_update_size"},
	{"6.9", true, nil, wire().window(0, 0), "PROTOCOL_ERROR: window_update_zero"},
	{"6.9.1", true, nil, wire().window(0, 1<<31-1), "FLOW_CONTROL_ERROR: connection_window_overflow"},
	{"6.9.2", true, wire().request(1, false).window(1, 1<<31-1-65535), wire().settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65536}), "FLOW_CONTROL_ERROR: setting_window_overflow"},
	{"6.10", true, nil, wire().frame(frameContinuation, flagEndHeaders, 1, ""), "PROTOCOL_ERROR: continuation_without_headers"},
	{"10.5", true, wire().frame(frameHeaders, 0, 1, "\x82"), wire().frame(frameContinuation, 0, 1, ""), "ENHANCE_YOUR_CALM: continuation_flood"},
	{"RFC 7541 6.1", true, nil, wire().frame(frameHeaders, flagEndHeaders, 1, "\x80"), "COMPRESSION_ERROR: hpack_bad_index"},
	{"RFC 7541 6.1", false, nil, wire().frame(frameHeaders, flagEndHeaders, 1, "\xff"), "COMPRESSION_ERROR: hpack_truncated"},
}

// Every violation has its code and a token of its own; GOAWAY says both, and
// nothing is read afterwards.
func TestConnErrors(t *testing.T) {
	for _, tt := range connErrors {
		_, token, _ := strings.Cut(tt.want, ": ")
		t.Run(tt.section+" "+token, func(t *testing.T) {
			r := newClient(t)
			if tt.server {
				r = newServer(t)
			}
			if tt.before != nil {
				r.feed(tt.before)
				r.frames()
			}
			r.log = nil
			r.fail(tt.bad, tt.want)
			out := r.frames()
			if last := out[len(out)-1]; !strings.HasPrefix(last, "GOAWAY ") || !strings.HasSuffix(last, strings.Replace(tt.want, ":", "", 1)) {
				t.Errorf("last frame: %s", last)
			}
			r.feed(wire().request(101, true).ping(false, "87654321"))
			r.wantFrames()
			r.wantLog()
			if r.conn.CanOpen() || !r.conn.Retired() {
				t.Error("streams may still be opened")
			}
			r.conn.GoAway(1, NoError, "")
			r.conn.Ping([8]byte{})
			r.wantFrames()
		})
	}
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
	if got := ErrCode(0xff).String(); got != "UNKNOWN_0xff" {
		t.Error(got)
	}
	if NoError.String() != "NO_ERROR" || HTTP11Required.String() != "HTTP_1_1_REQUIRED" {
		t.Error("names out of order")
	}
}
