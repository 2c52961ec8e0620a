package h2

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

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
	if r.conn.CanOpen() || !r.conn.Retired() {
		r.t.Error("streams may still be opened")
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
