package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// moment has endpoints be silent for a moment.
func moment() { pass(quietAfter + time.Millisecond) }

// R5, R6: a call that was given up unanswered may hold a thread, until its worker
// shows that it has one.
func TestGivenUpCallsAreOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		e := p.ends[0]
		var first, latest, left time.Time
		for i := range 2 {
			latest = time.Now()
			if i == 0 {
				first = latest
			}
			down, up := p.call(0)
			pass(2 * time.Second)
			left = time.Now()
			p.giveUp(0, down, up)
		}
		moment()
		got := p.Activity(e)
		if got.InFlight != 0 || got.GivenUp != 2 || !got.First.Equal(first) || !got.Latest.Equal(latest) || !got.Left.Equal(left) || !got.Owed.IsZero() {
			t.Errorf("after two calls from %v and %v to %v: %+v", first, latest, left, got)
		}
		p.answered(0)
		moment()
		if got := p.Activity(e); got.GivenUp != 0 {
			t.Errorf("after an answer: %+v", got)
		}
	})
}

// R5, R6: an attempt that lost its race to a hedge was given up like any other.
func TestAttemptsThatLostAreOwed(t *testing.T) {
	for name, first := range map[string]bool{"the first attempt": true, "the hedge": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRace(t)
				r.hedge()
				winner, loser, at := r.w1, r.w2, 1
				if first {
					winner, loser, at = r.w2, r.w1, 0
				}
				reply(winner, 1)
				wantReply(r.caller, 1)
				loser.WantRST(1, http2.ErrCodeCancel)
				moment()
				if got := r.Activity(r.allEndpoints()[at]); got.GivenUp != 1 {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// R6: streams that wait for their callers, in every slot, need all threads: none is
// held by a call that was given up.
func TestIdleStreamsProveThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		down, up := p.call(0)
		p.giveUp(0, down, up)
		for streams := 1; streams <= 2; streams++ {
			p.caller.WriteHeaders(p.next, noEnd, request(hello)...)
			p.next += 2
			pass(20 * time.Millisecond)
			p.peers[0].WantHeaders(p.seen[0], noEnd)
			p.seen[0] += 2
			moment()
			if got := p.Activity(p.ends[0]); got.InFlight != streams || got.GivenUp != 2-streams {
				t.Errorf("with %d idle streams: %+v", streams, got)
			}
		}
		p.caller.Close()
	})
}

// R1, R6: a worker's word that it has no free thread, and what its library says by
// itself when a deadline passes, are no signs of life.
func TestWhatIsNoSignOfLife(t *testing.T) {
	late := func(status string) func(*testkit.Peer, uint32) {
		return func(w *testkit.Peer, stream uint32) {
			pass(time.Second - time.Millisecond)
			w.WriteHeaders(stream, end, append(responseHead(), "grpc-status", status)...)
		}
	}
	for name, test := range map[string]struct {
		say    func(*testkit.Peer, uint32)
		blocks int // that the caller gets; 0: the call moves
		given  int
	}{
		"refusal in one block":  {refuseWhole(rubyBusy), 1, 0},
		"refusal in two blocks": {refuseInTwo(rubyBusy), 2, 0},
		"REFUSED_STREAM":        {refuseByReset, 0, 0},
		"DEADLINE_EXCEEDED":     {late("4"), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				moment()
				was := p.Activity(p.ends[0])
				before := was.Heard
				down := p.next
				p.next += 2
				p.caller.WriteHeaders(down, end, request(hello, "grpc-timeout", "1S")...)
				up := p.arrives(0)
				test.say(p.peers[0], up)
				if test.blocks == 0 {
					up = p.arrives(0)
				}
				for i := range test.blocks {
					p.caller.WantHeaders(down, i == test.blocks-1)
				}
				moment()
				if got := p.Activity(p.ends[0]); !got.Heard.Equal(before) || got.GivenUp != test.given {
					t.Errorf("heard at %v, was %v; %d calls given up, want %d", got.Heard, before, got.GivenUp, test.given)
				}
				if got := p.Activity(p.ends[0]); !got.Answered.Equal(was.Answered) || test.given == 0 && got.Served != was.Served {
					t.Errorf("taken for an answer: at %v, was %v; served %d, was %d", got.Answered, was.Answered, got.Served, was.Served)
				}
				if test.blocks == 0 {
					reply(p.peers[0], up)
					wantReply(p.caller, down)
				}
				p.answered(0)
				moment()
				if got := p.Activity(p.ends[0]); !got.Heard.After(before) || got.GivenUp != 0 {
					t.Errorf("after an answer: %+v", got)
				}
			})
		})
	}
}
