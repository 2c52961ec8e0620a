package h2

import (
	"fmt"
	"testing"

	"golang.org/x/net/http2"
)

// pump writes as much of n bytes of a stream as can go and asks for more.
func pump(r *rig, left map[*Stream]int) func(*Stream) {
	return func(s *Stream) {
		for left[s] > 0 {
			n := min(left[s], r.conn.Writable(s))
			if n == 0 {
				r.conn.Want(s)
				return
			}
			r.conn.WriteData(s, make([]byte, n), n == left[s])
			left[s] -= n
		}
	}
}

func windowSize(n uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingInitialWindowSize, Val: n}
}

// RFC 9113 6.9.1: DATA goes out as far as both windows allow.
func TestSendWindows(t *testing.T) {
	r := newServer(t)
	r.feed(wire().settings(windowSize(10)).request(1, true).request(3, true))
	a, b := r.streams[1], r.streams[3]
	left := map[*Stream]int{a: 25, b: 70000}
	r.onWritable = pump(r, left)
	r.onWritable(a)
	r.onWritable(b)
	r.frames()
	r.log = nil
	r.feed(wire().window(1, 5))
	r.wantFrames("DATA 1 (5 bytes)")
	r.feed(wire().window(1, 100))
	if left[a] != 0 || !a.LocalDone() || a.Open() {
		t.Errorf("%d bytes left", left[a])
	}
	r.frames()
	r.feed(wire().window(3, 100000))
	if left[b] != 70000-(65535-25) {
		t.Errorf("%d bytes left of b behind the connection's window", left[b])
	}
	r.feed(wire().window(0, 100000))
	if left[b] != 0 {
		t.Errorf("%d bytes left of b", left[b])
	}
}

// RFC 9113 6.9.2: a lowered SETTINGS_INITIAL_WINDOW_SIZE can make windows
// negative; only new credit makes the stream writable again.
func TestNegativeWindow(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, true))
	s := r.streams[1]
	r.conn.WriteData(s, make([]byte, 60000), false)
	r.feed(wire().settings(windowSize(100)))
	if s.sendWindow != 100-60000 || r.conn.Writable(s) != 0 {
		t.Fatalf("window %d, writable %d", s.sendWindow, r.conn.Writable(s))
	}
	r.conn.Want(s)
	r.log = nil
	r.frames()
	r.feed(wire().window(1, 59900))
	r.wantLog()
	r.feed(wire().settings(windowSize(101)))
	r.wantLog("writable 1")
	if r.conn.Writable(s) != 1 {
		t.Errorf("writable %d", r.conn.Writable(s))
	}
	r.feed(wire().request(3, true))
	if w := r.streams[3].sendWindow; w != 101 {
		t.Errorf("a new stream has %d", w)
	}
}

// A stream that waits while its window is taken away is not told in vain.
func TestWindowTakenFromAWaitingStream(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, true).request(3, true))
	r.conn.WriteData(r.streams[1], make([]byte, 65535), false)
	r.conn.Want(r.streams[3])
	r.log = nil
	r.feed(wire().settings(windowSize(0)).window(0, 1000))
	r.wantLog()
	r.feed(wire().window(3, 1))
	r.wantLog("writable 3")
}

// OutputHigh bounds what waits for a peer that does not read; whoever waits is
// told when there is room again.
func TestOutputRoom(t *testing.T) {
	r := newServer(t, func(c *Config) { c.OutputHigh = 20000 })
	r.feed(wire().settings(windowSize(1<<20)).window(0, 1<<20).request(1, true))
	r.frames()
	s := r.streams[1]
	left := map[*Stream]int{s: 100000}
	r.onWritable = pump(r, left)
	r.log = nil
	r.onWritable(s)
	if n := len(r.conn.Output()); n < 20000 || n > 20000+2*frameHeaderLen {
		t.Errorf("%d bytes wait", n)
	}
	r.conn.Sent(10)
	r.wantLog()
	r.conn.Sent(5000)
	r.wantLog("writable 1")
	for n := len(r.conn.Output()); n > 0; n = len(r.conn.Output()) {
		r.conn.Sent(n)
	}
	if left[s] != 0 {
		t.Errorf("%d bytes were not sent", left[s])
	}
}

// With several streams waiting each has one frame's worth in turn, whatever it
// would like to write.
func TestWaitingStreamsTakeTurns(t *testing.T) {
	r := newServer(t)
	r.feed(wire().settings(windowSize(1<<20)).request(1, true).request(3, true).request(5, true))
	r.frames()
	r.conn.WriteData(r.streams[1], make([]byte, 65535), false)
	r.frames()
	left := map[*Stream]int{r.streams[1]: 20000, r.streams[3]: 40000, r.streams[5]: 17000}
	r.onWritable = pump(r, left)
	for _, id := range []uint32{1, 3, 5} {
		r.onWritable(r.streams[id])
	}
	r.log = nil
	r.feed(wire().window(0, 1<<20))
	r.wantFrames("DATA 1 (16384 bytes)", "DATA 3 (16384 bytes)", "DATA 5 (16384 bytes)",
		"DATA 1 (3616 bytes) END", "DATA 3 (16384 bytes)", "DATA 5 (616 bytes) END", "DATA 3 (7232 bytes) END")
}

// A stream that is reset while it waits is forgotten, also by one whose turn it
// is.
func TestResetWhileWaiting(t *testing.T) {
	r := newServer(t)
	r.feed(wire().settings(windowSize(1<<20)).request(1, true).request(3, true).request(5, true))
	r.conn.WriteData(r.streams[1], make([]byte, 65535), false)
	for _, id := range []uint32{1, 3, 5} {
		r.conn.Want(r.streams[id])
	}
	r.log = nil
	r.onWritable = func(*Stream) { r.conn.Reset(r.streams[3], Cancel) }
	r.feed(wire().window(0, 100))
	r.wantLog("writable 1", "writable 5")
	r.conn.Want(r.streams[3])
	if r.conn.waiting.head != nil {
		t.Error("a closed stream waits")
	}
}

// RFC 9113 4.2: DATA is cut at the peer's frame size.
func TestDataIsCutAtTheFrameSize(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, true))
	r.conn.WriteData(r.streams[1], make([]byte, 40000), true)
	r.wantFrames("DATA 1 (16384 bytes)", "DATA 1 (16384 bytes)", "DATA 1 (7232 bytes) END")
	r.feed(wire().settings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 20000}).request(3, true))
	r.conn.WriteData(r.streams[3], make([]byte, 20001), false)
	r.conn.WriteData(r.streams[3], nil, true)
	r.wantFrames("SETTINGS ack", "DATA 3 (20000 bytes)", "DATA 3 (1 bytes)", "DATA 3  END")
}

// Take and Returned: a driver that writes outside the lock has the room of what
// it holds counted until it is back.
func TestTakeAndReturned(t *testing.T) {
	r := newServer(t, func(c *Config) { c.OutputHigh = 1000 })
	r.feed(wire().request(1, true))
	s := r.streams[1]
	r.conn.WriteData(s, make([]byte, 900), false)
	buf, off := r.conn.Take()
	if len(buf)-off != 909 || r.conn.Idle() {
		t.Fatalf("took %d bytes, idle: %t", len(buf)-off, r.conn.Idle())
	}
	if n := r.conn.Writable(s); n != 91 {
		t.Errorf("writable %d", n)
	}
	r.conn.WriteData(s, make([]byte, 91), false)
	r.conn.Want(s)
	r.log = nil
	r.conn.Returned(buf)
	r.wantLog("writable 1")
	if used := r.budget.Used(); used != 4096 {
		t.Errorf("%d bytes in use", used)
	}
	buf, _ = r.conn.Take()
	r.conn.Close()
	r.conn.Returned(buf) // the driver notices later
}

// An output buffer that the peer takes in small pieces does not grow for ever.
func TestOutputIsCompacted(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, true).window(0, 1<<30).window(1, 1<<30))
	s := r.streams[1]
	for i := range 3000 {
		r.conn.WriteData(s, fmt.Appendf(nil, "%01000d", i), false)
		if i >= 10 {
			r.conn.Sent(1009)
		}
	}
	if c := cap(r.conn.out); c > 32<<10 {
		t.Errorf("the buffer has %d bytes for %d", c, r.conn.pending())
	}
	r.frames()
}
