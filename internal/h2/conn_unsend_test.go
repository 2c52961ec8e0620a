package h2

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// R14: a stream that is still in the buffer never reaches the worker; windows
// and the positions of later streams are as if it had never been.
func TestUnsend(t *testing.T) {
	r := newClient(t)
	a := r.open(false)
	b := r.open(false)
	c := r.open(false)
	for i, s := range []*Stream{a, b, c, b, a} {
		r.conn.WriteData(s, fmt.Append(nil, "part ", i), false)
	}
	r.conn.WriteData(b, nil, true)
	window := r.conn.sendWindow
	if !r.conn.Unsend(b) {
		t.Fatal("not taken back")
	}
	if b.Open() || r.conn.Streams() != 2 || r.conn.Unsend(b) {
		t.Error("the stream is still there")
	}
	if got := r.conn.sendWindow - window; got != 12 {
		t.Errorf("%d bytes of the window came back", got)
	}
	if !r.conn.Unsend(c) {
		t.Fatal("c has moved, and was not taken back")
	}
	r.wantFrames("HEADERS 1 :path=/s/m", "DATA 1 part 0", "DATA 1 part 4")
	if r.conn.Unsend(a) {
		t.Error("taken back after it was sent")
	}
	r.open(true)
	r.wantFrames("HEADERS 7 :path=/s/m END")
}

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

// R12: the table size update of the connection's first block is not lost with
// it, or else a peer that lowers its table would miss the answer.
func TestUnsendKeepsTheTableSizeUpdate(t *testing.T) {
	update := func(r *rig) bool { return r.conn.Output()[frameHeaderLen] == 0x20 }
	t.Run("no other block", func(t *testing.T) {
		r := newClient(t)
		r.conn.Unsend(r.open(true))
		r.open(true)
		if !update(r) {
			t.Error("the next block has no update")
		}
	})
	t.Run("another block behind it", func(t *testing.T) {
		r := newClient(t)
		a, b, c := r.open(false), r.open(true), r.open(true)
		r.conn.Unsend(a)
		if !update(r) {
			t.Error("the next block has no update")
		}
		r.conn.Unsend(c)
		r.conn.Unsend(b)
		d := r.open(true)
		if !update(r) {
			t.Error("the block after the next has no update")
		}
		r.wantFrames("HEADERS 7 :path=/s/m END")
		if !d.Open() {
			t.Error("the stream is gone")
		}
	})
	t.Run("a block as long as a frame", func(t *testing.T) {
		r := newClient(t)
		a := r.open(false)
		long := stateless(":method", "GET", ":scheme", "http", ":path", "/s/m", "a", strings.Repeat("a", 16000))
		long = append(long, stateless("b", strings.Repeat("b", defaultMaxFrame-len(long)-6))...)
		r.open(true, long)
		r.conn.Unsend(a)
		if !update(r) {
			t.Error("the next block has no update")
		}
		got := r.frames()
		if len(got) != 2 || got[0] != "HEADERS 3 ... END" {
			t.Errorf("output: %q", got)
		}
	})
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

// When nothing is left the buffer goes back: idle connections hold none.
func TestUnsendGivesTheBufferBack(t *testing.T) {
	r := newClient(t)
	s := r.open(false)
	r.conn.WriteData(s, make([]byte, 10000), false)
	r.conn.Unsend(s)
	if r.budget.Used() != 0 || !r.conn.Idle() {
		t.Errorf("%d bytes in use, idle: %t", r.budget.Used(), r.conn.Idle())
	}
}

// Any order of opening, writing, sending and taking back leaves exactly the
// frames of the streams that were not taken back.
func TestUnsendProperty(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 14))
		r := newClient(t)
		var open []*Stream
		var sent []string
		want := map[uint32]int{} // bytes of the streams that stay
		for range 40 {
			switch op := rnd.IntN(6); {
			case op < 2:
				s := r.open(false)
				open = append(open, s)
				want[s.ID()] = 0
			case op < 4 && len(open) > 0:
				s := open[rnd.IntN(len(open))]
				n := rnd.IntN(300)
				r.conn.WriteData(s, make([]byte, n), false)
				want[s.ID()] += n
			case op == 4 && len(open) > 0:
				i := rnd.IntN(len(open))
				if s := open[i]; r.conn.Unsend(s) {
					delete(want, s.ID())
					open = slices.Delete(open, i, i+1)
				}
			case rnd.IntN(3) == 0:
				sent = append(sent, r.frames()...)
			}
		}
		sent = append(sent, r.frames()...)
		checkSent(t, seed, sent, want)
		var total int
		for _, n := range want {
			total += n
		}
		if got := defaultWindow - int(r.conn.sendWindow); got != total {
			t.Fatalf("seed %d: %d bytes of the window are used, %d were sent", seed, got, total)
		}
	}
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
