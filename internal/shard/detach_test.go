package shard

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
)

// handOver has the host give away what does not speak HTTP/2.
func (h *host) handOver() { h.other = make(chan net.Conn, 1) }

// detached waits for the next connection that was handed over.
func (h *host) detached() net.Conn {
	h.t.Helper()
	return testkit.Take(h.t, h.other, patience, "nothing was handed over")
}

// strangers are first bytes that no HTTP/2 connection has, those that begin like its
// preface among them.
func strangers() []string {
	return []string{
		"GET / HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\n\r\n", "PUT / HTTP/1.1\r\n\r\n", "PATCH / HTTP/1.1\r\n\r\n",
		"PRI * HTTP/1.1\r\n\r\n", h2.Preface[:len(h2.Preface)-1] + "\r", "\x16\x03\x01\x02\x00", "x",
	}
}

// R22: a connection that turns out to speak something else is given away with every
// byte that was read, however they came, and is an ordinary one from then on: what
// follows arrives, answers and half-closes leave, the poller knows nothing of it.
func TestDetach(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		for _, first := range strangers() {
			for _, step := range []int{1, 3, len(first)} {
				h.handOver()
				ours, theirs := tr.pair(h.t)
				l := h.serve(ours)
				go feedByPieces(h.t, theirs, first, step) // ends when all is read
				nc := h.detached()
				checkDetached(h, tr, nc, theirs, first)
				h.do(func() {
					testkit.Want(h.t, l.Closed() && len(h.links) == 0, "the shard has %d links", len(h.links))
				})
				testkit.Want(h.t, len(h.ended) == 0, "the watcher was told of an end")
			}
		}
	})
}

// feedByPieces writes text so that each piece is read by itself.
func feedByPieces(t testing.TB, to io.Writer, text string, step int) {
	t.Helper()
	for len(text) > 0 {
		n := min(step, len(text))
		if _, err := io.WriteString(to, text[:n]); err != nil {
			t.Error(err)
			return
		}
		text = text[n:]
	}
}

// checkDetached talks over a connection both ways, to its end.
func checkDetached(h *host, tr transport, nc, theirs net.Conn, first string) {
	h.t.Helper()
	const more, answer = "and more", "an answer"
	got := make([]byte, len(first)+len(more))
	_, err := io.ReadFull(nc, got[:len(first)])
	testkit.Need(h.t, err == nil, "got %q, %v", got, err)
	go func() { _, _ = io.WriteString(theirs, more) }() // ends with the read below
	_, err = io.ReadFull(nc, got[len(first):])
	testkit.Need(h.t, err == nil && string(got) == first+more, "got %q, %v; want %q", got, err, first+more)
	go func() { // ends with the read below
		_, _ = io.WriteString(nc, answer)
		if tr.half {
			_ = nc.(interface{ CloseWrite() error }).CloseWrite()
		} else {
			_ = nc.Close()
		}
	}()
	all, err := io.ReadAll(theirs)
	testkit.Want(h.t, err == nil && string(all) == answer, "the peer got %q, %v", all, err)
	_ = theirs.Close()
	if tr.half {
		n, err := nc.Read(got)
		testkit.Want(h.t, n == 0 && errors.Is(err, io.EOF), "after the peer's end: %d bytes, %v", n, err)
	}
	_ = nc.Close()
}

// A peer that speaks HTTP/2 is never given away, in whatever pieces its preface
// comes, while others are, one after the other: numbers of descriptors come back at
// once, and no event goes astray.
func TestDetachUnderLoad(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		h.handOver()
		var all sync.WaitGroup
		all.Go(func() { h.echoDetached() })
		const callers, rounds = 4, 25
		var working sync.WaitGroup
		for caller := range callers {
			working.Go(func() {
				for round := range rounds {
					first := strangers()[(caller+round)%len(strangers())]
					askStranger(h, tr, first, 1+round%3)
				}
			})
			working.Go(func() {
				for range rounds {
					askByDribble(h, tr)
				}
			})
		}
		working.Wait()
		close(h.other)
		all.Wait()
		testkit.Eventually(t, patience, "the last link to end", func() (none bool) {
			h.do(func() { none = len(h.links) == 0 })
			return none
		})
	})
}

// echoDetached answers everything that is handed over with its own bytes.
func (h *host) echoDetached() {
	var echoes sync.WaitGroup
	for nc := range h.other {
		echoes.Go(func() {
			defer nc.Close()
			_, _ = io.Copy(nc, nc)
		})
	}
	echoes.Wait()
}

// askStranger has its first bytes echoed.
func askStranger(h *host, tr transport, first string, step int) {
	ours, theirs := tr.pair(h.t)
	defer theirs.Close()
	h.serve(ours)
	go feedByPieces(h.t, theirs, first, step) // ends when they are read
	got := make([]byte, len(first))
	_, err := io.ReadFull(theirs, got)
	testkit.Want(h.t, err == nil && string(got) == first, "got %q, %v; want %q", got, err, first)
}

// askByDribble makes a call over HTTP/2, byte by byte.
func askByDribble(h *host, tr transport) {
	ours, theirs := tr.pair(h.t)
	h.serve(ours)
	p := testkit.NewCaller(h.t, theirs)
	p.Dribble(1)
	p.Greet()
	request(p, 1, testkit.End, "/echo")
	p.WantHeaders(1, testkit.NoEnd)
	wantEnd(p, 1)
	p.Close()
}

// A connection that was given away can be given back: another engine reads all of it. A
// shard that stops has nothing to do with what it gave away.
func TestDetachedComesBack(t *testing.T) {
	everywhere(t, func(h *host, tr transport) {
		t := h.t
		h.handOver()
		ours, theirs := tr.pair(t)
		h.serve(ours)
		const first = "yes"
		go feedByPieces(t, theirs, first, 1) // ends when all is read
		h.serve(h.detached())
		again := h.detached()
		h.Stop()
		checkDetached(h, tr, again, theirs, first)
	})
}

// outOfDescriptors is a transport of which no connection can be made.
type outOfDescriptors struct{ noTransport }

func (outOfDescriptors) detach() (net.Conn, error) { return nil, syscall.EMFILE }

// A link that cannot be given away has ended, and its watcher is told so.
func TestDetachFails(t *testing.T) {
	testkit.CheckLeaks(t)
	h := newHost(t)
	h.handOver()
	for _, want := range []error{syscall.EMFILE, errNoConn} {
		var l *Link
		h.do(func() {
			l = h.NewLink(h.config(true), service{h}, h)
			l.driver = outOfDescriptors{}
			if errors.Is(want, errNoConn) {
				h.Join(h.NewLink(h.config(false), service{h}, h), l)
			}
			l.feed([]byte("GET"))
		})
		reason := h.awaitEnd(l)
		testkit.Want(t, errors.Is(reason, want), "reason: %v, want %v", reason, want)
		testkit.Want(t, h.noted("detach: "+want.Error()) == 1, "told %q", h.events)
	}
}
