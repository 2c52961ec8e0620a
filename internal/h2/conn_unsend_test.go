package h2

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// R4, R14: what the kernel, or a driver that writes outside the lock, has of a
// stream cannot be taken back.
func TestUnsendOfWhatHasLeft(t *testing.T) {
	r := newClient(t)
	a, b := r.open(true), r.open(true)
	r.conn.Sent(1)
	if r.conn.Unsend(a) {
		t.Error("taken back though a byte was accepted")
	}
	buf, _ := r.conn.Take()
	c := r.open(true)
	if r.conn.Unsend(b) {
		t.Error("taken back though a driver has it")
	}
	if !r.conn.Unsend(c) {
		t.Error("not taken back behind what a driver has")
	}
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
	if r.conn.Writable(b) != 65535 {
		t.Errorf("writable: %d", r.conn.Writable(b))
	}
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
		if got := defaultWindow - int(u.conn.sendWindow); got != total {
			t.Fatalf("seed %d: %d bytes of the window are used, %d were sent", seed, got, total)
		}
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
	if taken != u.here[s.ID()] {
		u.t.Errorf("stream %d was taken back: %t", s.ID(), taken)
	}
	if taken {
		delete(u.want, s.ID())
		u.open = slices.Delete(u.open, i, i+1)
	}
	if taken && (s.Open() || u.conn.Unsend(s) || u.conn.Streams() != len(u.open)) {
		u.t.Errorf("stream %d is still there", s.ID())
	}
	if used := u.budget.Used(); u.conn.Idle() && used != 0 {
		u.t.Errorf("%d bytes in use without output", used)
	}
}

func (u *unsender) send() {
	out := u.conn.Output()
	first := len(u.sent) == 0
	for at := 0; at < len(out); {
		h := parseFrameHeader(out[at:])
		at += frameHeaderLen
		if update := h.kind == frameHeaders && out[at] == 0x20; update != first {
			u.t.Errorf("stream %d: the block begins with an update: %t", h.stream, update)
		}
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
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("seed %d: sent %v, want %v", seed, got, want)
	}
}
