package h2

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
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
	testkit.Want(t, left[a] == 0 && a.LocalDone() && !a.Open(), "%d bytes left", left[a])
	r.frames()
	r.feed(wire().window(3, 100000))
	testkit.Want(t, left[b] == 70000-(65535-25), "%d bytes left of b behind the connection's window", left[b])
	r.feed(wire().window(0, 100000))
	testkit.Want(t, left[b] == 0, "%d bytes left of b", left[b])
}

// RFC 9113 6.9.2: a lowered SETTINGS_INITIAL_WINDOW_SIZE can make windows
// negative; only new credit makes the stream writable again.
func TestNegativeWindow(t *testing.T) {
	r := newServer(t)
	r.feed(wire().request(1, true))
	s := r.streams[1]
	r.conn.WriteData(s, make([]byte, 60000), false)
	r.feed(wire().settings(windowSize(100)))
	testkit.Need(t, s.sendWindow == 100-60000 && r.conn.Writable(s) == 0, "window %d, writable %d", s.sendWindow, r.conn.Writable(s))
	r.conn.Want(s)
	r.log = nil
	r.frames()
	r.feed(wire().window(1, 59900))
	r.wantLog()
	r.feed(wire().settings(windowSize(101)))
	r.wantLog("writable 1")
	testkit.Want(t, r.conn.Writable(s) == 1, "writable %d", r.conn.Writable(s))
	r.feed(wire().request(3, true))
	testkit.Equal(t, r.streams[3].sendWindow, 101, "the window of a new stream")
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
	testkit.Want(t, left[s] == 0, "%d bytes were not sent", left[s])
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
	testkit.Want(t, r.conn.waiting.head == nil, "a closed stream waits")
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
	testkit.Need(t, len(buf)-off == 909 && !r.conn.Idle(), "took %d bytes, idle: %t", len(buf)-off, r.conn.Idle())
	testkit.Equal(t, r.conn.Writable(s), 91, "writable")
	r.conn.WriteData(s, make([]byte, 91), false)
	r.conn.Want(s)
	r.log = nil
	r.conn.Returned(buf)
	r.wantLog("writable 1")
	testkit.Equal(t, r.budget.Used(), 4096, "bytes in use")
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

// R4, R14: what the kernel, or a driver that writes outside the lock, has of a
// stream cannot be taken back.
func TestUnsendOfWhatHasLeft(t *testing.T) {
	r := newClient(t)
	a, b := r.open(true), r.open(true)
	r.conn.Sent(1)
	testkit.Want(t, !r.conn.Unsend(a), "taken back though a byte was accepted")
	buf, _ := r.conn.Take()
	c := r.open(true)
	testkit.Want(t, !r.conn.Unsend(b), "taken back though a driver has it")
	testkit.Want(t, r.conn.Unsend(c), "not taken back behind what a driver has")
	r.conn.Returned(buf)
	r.wantFrames()
}

// A stream that waits for the window or the room that another had taken is told
// when that one is taken back: no other event would come.
func TestUnsendResumesOthers(t *testing.T) {
	r := newClient(t)
	r.feed(wire().settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}))
	r.frames()
	a, b := r.open(false), r.open(false)
	r.conn.WriteData(a, make([]byte, 65535), false)
	r.conn.Want(b)
	r.conn.Unsend(a)
	r.wantLog("writable 3")
	testkit.Want(t, r.conn.Writable(b) == 65535, "writable: %d", r.conn.Writable(b))
}

// R14, R12: any order of opening, writing, sending and taking back leaves exactly the
// frames of the streams that were not taken back, and windows as if the others had never
// been. What has not left can be taken back. The first block that is sent begins with a
// table size update, and no other, and a buffer without output is given back.
func TestUnsendProperty(t *testing.T) {
	long := stateless(":method", "GET", ":scheme", "http", ":path", "/s/m", "a", strings.Repeat("a", 16000))
	long = append(long, stateless("b", strings.Repeat("b", defaultMaxFrame-len(long)-6))...)
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 14))
		u := &unsender{rig: newClient(t), want: map[uint32]int{}, here: map[uint32]bool{}}
		for range 40 {
			switch op := rnd.IntN(6); {
			case op == 0:
				u.begin(statelessRequest)
			case op == 1:
				u.begin([][]byte{statelessRequest, long}[rnd.IntN(2)])
			case op < 4 && len(u.open) > 0:
				u.write(u.open[rnd.IntN(len(u.open))], rnd.IntN(300), rnd.IntN(8) == 0)
			case op == 4 && len(u.open) > 0:
				u.takeBack(rnd.IntN(len(u.open)))
			case rnd.IntN(3) == 0:
				u.send()
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		u.send()
		checkSent(t, seed, u.sent, u.want)
		var total int
		for _, n := range u.want {
			total += n
		}
		got := defaultWindow - int(u.conn.sendWindow)
		testkit.Need(t, got == total, "seed %d: %d bytes of the window are used, %d were sent", seed, got, total)
	}
}

// unsender is a client that changes its mind.
type unsender struct {
	*rig
	open []*Stream
	here map[uint32]bool // streams of which nothing has left
	want map[uint32]int  // bytes of the streams that stay
	sent []string
}

func (u *unsender) begin(block []byte) {
	s := u.rig.open(false, block)
	u.open = append(u.open, s)
	u.want[s.ID()], u.here[s.ID()] = 0, true
}

func (u *unsender) write(s *Stream, n int, end bool) {
	if !s.LocalDone() {
		u.conn.WriteData(s, make([]byte, n), end)
		u.want[s.ID()] += n
	}
}

func (u *unsender) takeBack(i int) {
	s := u.open[i]
	taken := u.conn.Unsend(s)
	testkit.Want(u.t, taken == u.here[s.ID()], "stream %d was taken back: %t", s.ID(), taken)
	if taken {
		delete(u.want, s.ID())
		u.open = slices.Delete(u.open, i, i+1)
	}
	if taken && (s.Open() || u.conn.Unsend(s) || u.conn.Streams() != len(u.open)) {
		u.t.Errorf("stream %d is still there", s.ID())
	}
	used := u.budget.Used()
	testkit.Want(u.t, !u.conn.Idle() || used == 0, "%d bytes in use without output", used)
}

func (u *unsender) send() {
	out := u.conn.Output()
	first := len(u.sent) == 0
	for at := 0; at < len(out); {
		h := parseFrameHeader(out[at:])
		at += frameHeaderLen
		testkit.Equal(u.t, h.kind == frameHeaders && out[at] == 0x20, first, "stream %d: the block begins with an update", h.stream)
		first = false
		at += int(h.length)
	}
	u.sent = append(u.sent, u.frames()...)
	clear(u.here)
}

// checkSent says that each wanted stream has one block and then its bytes.
func checkSent(t *testing.T, seed uint64, sent []string, want map[uint32]int) {
	t.Helper()
	got := map[uint32]int{}
	for _, line := range sent {
		var kind string
		var id uint32
		fmt.Sscan(line, &kind, &id)
		n, begun := got[id]
		line = strings.TrimSuffix(line, " END")
		switch {
		case kind == "HEADERS" && !begun:
			got[id] = 0
		case kind == "CONTINUATION" && begun:
		case kind == "DATA" && begun:
			size := len(strings.TrimPrefix(line, fmt.Sprintf("DATA %d ", id)))
			fmt.Sscanf(line, "DATA %d (%d bytes)", &id, &size)
			got[id] = n + size
		default:
			t.Fatalf("seed %d: %s out of place in\n%s", seed, line, strings.Join(sent, "\n"))
		}
	}
	testkit.Need(t, fmt.Sprint(got) == fmt.Sprint(want), "seed %d: sent %v, want %v", seed, got, want)
}
