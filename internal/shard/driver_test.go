package shard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

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
		got := h.awaitEnd(l)
		testkit.Want(t, errors.Is(got, reason), "reason: %v", got)
		testkit.Want(t, h.noted("lost sent=true") == 1 && len(h.links) == 0, "told %q, %d links", h.events, len(h.links))
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
			reason := h.awaitEnd(l)
			testkit.Need(t, errors.Is(reason, io.EOF) || errors.Is(reason, io.ErrClosedPipe), "reason: %v", reason)
			p.Close()
		}
		testkit.Want(t, h.noted("lost sent=true") != 0, "no stream was told")
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
		got := h.awaitEnd(l)
		testkit.Want(t, errors.Is(got, reason), "reason: %v", got)
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
		testkit.Want(t, h.noted("lost sent=true") == 1, "told %q", h.events)
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
		reason := h.awaitEnd(l)
		testkit.Want(t, reason != nil && reason.Error() == "FRAME_SIZE_ERROR: ping_size", "reason: %v", reason)
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
		_, err := theirs.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		testkit.Must(t, err)
		got, err := io.ReadAll(theirs)
		testkit.Want(t, err == nil && string(got) == "HTTP/1.1 505 no\r\n\r\n", "got %q, %v", got, err)
		theirs.Close()
		h.awaitEnd(l)
		testkit.Want(t, h.noted("not HTTP/2: GET / HTTP/1.1") == 1, "told %q", h.events)
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
			reason := h.awaitEnd(l)
			testkit.Want(t, errors.Is(reason, errStopped), "reason: %v", reason)
		}
	})
}

// A link that is ended by what another one has read in the same round is not
// read any more, whichever of them comes first.
func TestLinkEndedByAnotherOfItsRound(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		var links []*Link
		var peers []*testkit.Peer
		for range 5 {
			l, p := h.caller(t, tr)
			p.Fragile()
			p.Skip(testkit.Headers)
			links, peers = append(links, l), append(peers, p)
		}
		h.do(func() { // all are ready when the lock is free
			for _, p := range peers {
				if tr.raw { // a pipe would wait for its reader
					request(p, 1, testkit.End, "/alone")
				}
			}
		})
		if !tr.raw {
			request(peers[0], 1, testkit.End, "/alone")
		}
		testkit.Eventually(t, patience, "one link to be left", func() (alone bool) {
			h.do(func() { alone = len(h.links) == 1 })
			return alone
		})
		h.do(func() {
			for _, l := range links {
				testkit.Want(t, !l.closed || errors.Is(l.reason, errAlone), "reason: %v", l.reason)
			}
		})
	})
}

// A task that is posted while sockets are read and written runs all the same.
func TestPostedTasksBesideTraffic(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		_, p := h.caller(t, tr)
		posted := make(chan error, 1)
		go func() { posted <- h.postInTurn(500) }() // ended below
		for i := range uint32(100) {
			id := 2*i + 1
			request(p, id, testkit.NoEnd, "/echo")
			p.WriteData(id, testkit.End, []byte("beside"))
			p.WantHeaders(id, testkit.NoEnd)
			p.WantDataBytes(id, []byte("beside"), testkit.NoEnd)
			wantEnd(p, id)
		}
		testkit.Must(t, <-posted)
	})
}

// postInTurn posts tasks, each when the one before has run.
func (h *host) postInTurn(n int) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	ran := make(chan struct{}, 1)
	for i := range n {
		h.Post(task(func(time.Duration) { ran <- struct{}{} }))
		select {
		case <-ran:
		case <-late.C:
			return fmt.Errorf("task %d has not run", i)
		}
	}
	return nil
}
