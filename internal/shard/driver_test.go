package shard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R22: bytes arrive in order and whole when they come one by one.
func TestDribbledCalls(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		_, p := h.caller(t, tr)
		p.Dribble(1)
		request(p, 1, testkit.NoEnd, "/echo")
		p.WriteData(1, testkit.End, []byte("hello"))
		p.WantFields(1, testkit.NoEnd, ":status", "200")
		p.WantDataBytes(1, []byte("hello"), testkit.NoEnd)
		wantEnd(p, 1)
	})
}

// giveUnread has a caller that leaves flow control to the transport ask for so many bytes,
// and not read them.
func giveUnread(p *testkit.Peer, size int) {
	p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
	p.WriteWindowUpdate(0, 1<<30)
	p.WantSettingsAck()
	p.StopReading()
	request(p, 1, testkit.End, fmt.Sprint("/give/", size))
}

// Large transfers in both directions: the windows open as bytes are taken.
func TestLargeTransfers(t *testing.T) {
	const size = 3 << 20
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		_, p := h.caller(t, tr)
		p.Skip(testkit.WindowUpdate)
		request(p, 1, testkit.NoEnd, "/sink")
		p.WantHeaders(1, testkit.NoEnd)
		p.WriteBody(1, testkit.End, make([]byte, size))
		wantEnd(p, 1)

		p.Refill()
		request(p, 3, testkit.End, fmt.Sprint("/give/", size))
		p.WantHeaders(3, testkit.NoEnd)
		p.WantDataBytes(3, make([]byte, size), testkit.NoEnd)
		wantEnd(p, 3)
	})
}

// A peer that stops reading holds up nobody else and costs a bounded buffer;
// when it reads again it gets everything.
func TestPeerThatStopsReading(t *testing.T) {
	const size = 4 << 20
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		l, p := h.caller(t, tr)
		giveUnread(p, size)
		h.awaitBlocked(l)

		_, other := h.caller(t, tr)
		request(other, 1, testkit.NoEnd, "/echo")
		other.WriteData(1, testkit.End, []byte("meanwhile"))
		other.WantHeaders(1, testkit.NoEnd)
		other.WantDataBytes(1, []byte("meanwhile"), testkit.NoEnd)
		wantEnd(other, 1)
		if used := h.budget.Used(); used > 512<<10 {
			t.Errorf("%d bytes are in use", used)
		}

		p.ReadAgain()
		p.WantHeaders(1, testkit.NoEnd)
		p.WantDataBytes(1, make([]byte, size), testkit.NoEnd)
		wantEnd(p, 1)
	})
}

// awaitBlocked waits until the transport takes no more: there is output, and
// look after look none of it goes.
func (h *host) awaitBlocked(l *Link) {
	h.t.Helper()
	var last uint64
	still := 0
	testkit.Eventually(h.t, patience, "writes to block", func() bool {
		h.do(func() {
			if now := l.Conn.Accepted(); now != last || l.Conn.Idle() {
				last, still = now, 0
			}
		})
		still++
		return still > 10
	})
}

// Close in the middle of a blocked write: the streams are told, the goroutines
// end.
func TestCloseDuringABlockedWrite(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		l, p := h.caller(t, tr)
		giveUnread(p, 4<<20)
		h.awaitBlocked(l)
		reason := errors.New("enough")
		h.do(func() { l.Close(reason); l.Close(io.EOF); l.Finish(io.EOF) })
		if got := h.awaitEnd(l); !errors.Is(got, reason) {
			t.Errorf("reason: %v", got)
		}
		if h.noted("lost sent=true") != 1 || len(h.links) != 0 {
			t.Errorf("told %q, %d links", h.events, len(h.links))
		}
	})
}

// The peer's end is noticed, also when it came together with its last bytes:
// that gives no readiness event of its own.
func TestEndTogetherWithData(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		for range 20 {
			l, p := h.caller(t, tr)
			p.Fragile()
			request(p, 1, testkit.NoEnd, "/sink")
			if tr.half {
				p.CloseWrite()
			} else {
				p.Close()
			}
			if reason := h.awaitEnd(l); !errors.Is(reason, io.EOF) && !errors.Is(reason, io.ErrClosedPipe) {
				t.Fatalf("reason: %v", reason)
			}
			p.Close()
		}
		if h.noted("lost sent=true") == 0 {
			t.Error("no stream was told")
		}
	})
}

// Finish sends what is left, then says that nothing more comes, and waits for
// the peer to do the same.
func TestFinishSendsEverything(t *testing.T) {
	const size = 256 << 10
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		l, p := h.caller(t, tr)
		giveUnread(p, size)
		testkit.Eventually(t, patience, "the call", func() (begun bool) {
			h.do(func() { begun = l.Conn.LastPeerStream() == 1 })
			return begun
		})
		p.ReadAgain()
		p.WantHeaders(1, testkit.NoEnd)
		p.WantDataBytes(1, make([]byte, size), testkit.NoEnd)
		reason := errors.New("drained")
		h.do(func() {
			l.Conn.GoAway(1, 0, "bye")
			l.Finish(reason)
			l.Finish(io.EOF)
		})
		wantEnd(p, 1)
		p.WantGoAway(http2.ErrCodeNo)
		p.WantClosed()
		p.Close()
		if got := h.awaitEnd(l); !errors.Is(got, reason) {
			t.Errorf("reason: %v", got)
		}
	})
}

// After Finish the peer's bytes are read and dropped, so that closing does not
// reset the connection and destroy what it has not read yet.
func TestFinishWhileThePeerSends(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		l, p := h.caller(t, tr)
		p.Fragile()
		request(p, 1, testkit.NoEnd, "/sink")
		p.WantHeaders(1, testkit.NoEnd)
		p.Skip(testkit.WindowUpdate)
		h.do(func() {
			l.Conn.GoAway(1, 0, "bye")
			l.Finish(io.EOF)
		})
		for range 3 {
			p.WriteData(1, testkit.NoEnd, make([]byte, 16<<10))
		}
		p.WantGoAway(http2.ErrCodeNo)
		p.WantClosed()
		p.Close()
		h.awaitEnd(l)
		if h.noted("lost sent=true") != 1 {
			t.Errorf("told %q", h.events)
		}
	})
}

// A peer that breaks the protocol is told why before the end.
func TestProtocolError(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		l, p := h.caller(t, tr)
		p.Fragile()
		p.WriteFrame(http2.FramePing, 0, 0, []byte("short"))
		p.WantGoAway(http2.ErrCodeFrameSize)
		p.WantClosed()
		p.Close()
		if reason := h.awaitEnd(l); reason == nil || reason.Error() != "FRAME_SIZE_ERROR: ping_size" {
			t.Errorf("reason: %v", reason)
		}
	})
}

// NotHTTP2 answers in the peer's own protocol, or hands the connection over.
func (h *host) NotHTTP2(l *Link, first []byte) {
	if h.other != nil {
		nc, err := l.Detach(first)
		if err != nil {
			h.note("detach: " + err.Error())
			return
		}
		h.other <- nc
		return
	}
	h.note("not HTTP/2: " + string(bytes.TrimSpace(first)))
	l.Conn.Raw([]byte("HTTP/1.1 505 no\r\n\r\n"))
}

// RFC 9113 3.4, R22: a peer that speaks something else gets that answer and
// nothing in front of it.
func TestGarbageInPlaceOfThePreface(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		ours, theirs := tr.pair(t)
		l := h.serve(ours)
		if _, err := theirs.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(theirs)
		if err != nil || string(got) != "HTTP/1.1 505 no\r\n\r\n" {
			t.Errorf("got %q, %v", got, err)
		}
		theirs.Close()
		h.awaitEnd(l)
		if h.noted("not HTTP/2: GET / HTTP/1.1") != 1 {
			t.Errorf("told %q", h.events)
		}
	})
}

// Many connections at once, each with calls under way: more than one look at
// the kernel's list brings.
func TestManyConnections(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		peers := make([]*testkit.Peer, 150)
		for i := range peers {
			_, peers[i] = h.caller(t, tr)
		}
		for round := range uint32(5) {
			id := 2*round + 1
			for _, p := range peers {
				request(p, id, testkit.NoEnd, "/echo")
				p.WriteData(id, testkit.End, []byte("ping"))
			}
			for _, p := range peers {
				p.WantHeaders(id, testkit.NoEnd)
				p.WantDataBytes(id, []byte("ping"), testkit.NoEnd)
				wantEnd(p, id)
			}
		}
	})
}

// Stop ends everything, whatever the connections were about.
func TestStopLeavesNothing(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		idle, _ := h.caller(t, tr)
		busy, p := h.caller(t, tr)
		giveUnread(p, 4<<20)
		h.awaitBlocked(busy)
		ours, _ := tr.pair(t)
		silent := h.serve(ours)
		h.Stop()
		h.Stop()
		for _, l := range []*Link{idle, busy, silent} {
			if reason := h.awaitEnd(l); !errors.Is(reason, errStopped) {
				t.Errorf("reason: %v", reason)
			}
		}
	})
}
