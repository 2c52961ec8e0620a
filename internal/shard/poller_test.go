package shard

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

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
				if l.closed && !errors.Is(l.reason, errAlone) {
					t.Errorf("reason: %v", l.reason)
				}
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
		if err := <-posted; err != nil {
			t.Error(err)
		}
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
