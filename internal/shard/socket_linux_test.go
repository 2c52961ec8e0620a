package shard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R11: a read brings as many bytes as can be handled in their time, and learns anew
// when others come.
func TestReadsFitTheirTime(t *testing.T) {
	d := &socket{link: &Link{caller: true}, most: firstRead}
	for i, read := range []struct {
		bytes int
		took  time.Duration
		most  int
	}{
		{firstRead, readTime / 100, 2 * firstRead}, // it was full, and there was time
		{300, 10 * readTime, 2 * firstRead},        // so few bytes tell nothing
		{2 * firstRead, 4 * readTime, firstRead / 2},
		{firstRead / 2, readTime / 100, firstRead},
		{firstRead, 100 * readTime, leastRead},
		{leastRead, readTime, leastRead},
		{leastRead, readTime / 1000, 2 * leastRead},
	} {
		d.learn(read.bytes, read.took)
		testkit.Want(t, d.most == read.most, "read %d: the next one brings %d bytes, not %d", i, d.most, read.most)
	}
	for range 20 {
		d.learn(d.most, 1)
	}
	testkit.Want(t, d.most == mostOfCaller, "cheap bytes are read %d at a time, not %d", d.most, mostOfCaller)
}

// Answers of TLS to a peer that does not read them are bounded.
func TestAnswersOfTLSAreBounded(t *testing.T) {
	h := newHost(t)
	l, p := h.caller(t, transport{name: "tls", pair: tlsPair, raw: true})
	p.Fragile()
	h.do(func() {
		d, _ := l.driver.(*socket)
		d.blocked, d.records.out = true, make([]byte, mostUnsent+1)
	})
	request(p, 1, testkit.End, "/sink")
	reason := h.awaitEnd(l)
	testkit.Want(t, errors.Is(reason, errUnsent), "reason: %v", reason)
	p.Close()
}

// R11: what a peer goes on to send when it has broken the rules is not read, it is told
// why, and it is gone soon.
func TestBrokenPeersAreNotRead(t *testing.T) {
	over(t, transports[:3], func(h *host, tr transport) {
		t := h.t
		ours, theirs := tr.pair(t)
		l := h.serve(ours)
		told := make(chan []byte, 1)
		go func() { // ends with the connection
			said, _ := io.ReadAll(theirs)
			told <- said
		}()
		const settings, dataOnStream0 = "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		_, err := io.WriteString(theirs, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settings+dataOnStream0)
		testkit.Must(t, err)
		more, most, sent := make([]byte, 64<<10), 256<<20, 0
		for err := error(nil); err == nil && sent < most; {
			var n int
			n, err = theirs.Write(more)
			sent += n
		}
		testkit.Want(t, sent <= most/4, "%d bytes were taken from it", sent)
		h.awaitEnd(l)
		const goAway = "\x07\x00\x00\x00\x00\x00" // type, flags, stream
		if said := <-told; !bytes.Contains(said, []byte(goAway)) {
			t.Errorf("it was told %q", said)
		}
		_ = theirs.Close()
	})
}

// What becomes ready while a turn reads is read in the same turn, before
// anything is sent.
func TestLateComersJoinTheTurn(t *testing.T) {
	testkit.CheckLeaks(t)
	h := newHost(t)
	unix := transports[1] // what is written to it can be read at once
	first, a := h.caller(t, unix)
	second, b := h.caller(t, unix)
	together := make(chan bool, 1)
	h.do(func() {
		for _, l := range []*Link{first, second} {
			l.driver.(*socket).cost = readCost{} // neither waits in turn
		}
		h.asked = func(path string) {
			switch path {
			case "/first":
				request(b, 1, testkit.End, "/second")
			case "/second":
				together <- !first.Conn.Idle()
			}
		}
	})
	request(a, 1, testkit.End, "/first")
	for _, p := range []*testkit.Peer{a, b} {
		p.WantHeaders(1, testkit.NoEnd)
		wantEnd(p, 1)
	}
	if !<-together {
		t.Error("the first call was answered before the second was read")
	}
}

// R11: a caller that has used up its share is read when the others have been, although
// its bytes were there first.
func TestWhoHasUsedUpItsShareWaits(t *testing.T) {
	testkit.CheckLeaks(t)
	h := newHost(t)
	busy, a := h.caller(t, transports[1])
	quiet, b := h.caller(t, transports[1])
	order := make(chan string, 2)
	h.do(func() {
		h.asked = func(path string) { order <- path }
		busy.driver.(*socket).cost = readCost{owed: mostOwed, asked: h.now + time.Hour}
		quiet.driver.(*socket).cost = readCost{}
		request(a, 1, testkit.End, "/busy")
		request(b, 1, testkit.End, "/quiet")
	})
	for _, p := range []*testkit.Peer{a, b} {
		p.WantHeaders(1, testkit.NoEnd)
		wantEnd(p, 1)
	}
	testkit.Equal(t, <-order, "/quiet", "the first that is read")
}

// A socket that was given away is registered no longer: it stays open, and its events
// would come under a number that another one may have by then.
func TestDetachedIsForgotten(t *testing.T) {
	over(t, transports[:3], func(h *host, tr transport) {
		t := h.t
		h.handOver()
		for round := range 20 {
			ours, theirs := tr.pair(t)
			before := openDescriptors(t)
			h.serve(ours)
			go feedByPieces(t, theirs, "GET /", 1) // ends when all is read
			nc := h.detached()
			n := h.watched()
			testkit.Need(t, n == 0, "%d sockets are still registered with the poller", n)
			if now := openDescriptors(t); now != before && round > 0 { // the poller is made for the first
				t.Errorf("%d descriptors are open, %d before", now, before)
			}
			checkDetached(h, tr, nc, theirs, "GET /")
		}
	})
}

// watched counts the descriptors that the poller's epoll instance reports on.
func (h *host) watched() (n int) {
	h.t.Helper()
	var info []byte
	var err error
	h.do(func() { info, err = os.ReadFile(fmt.Sprint("/proc/self/fdinfo/", h.poller.fd)) })
	testkit.Must(h.t, err)
	for line := range strings.Lines(string(info)) {
		if strings.HasPrefix(line, "tfd:") {
			n++
		}
	}
	return n
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	testkit.Must(t, err)
	return len(open)
}
