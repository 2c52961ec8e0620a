package relay

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// pair is an endpoint with two slots, and one with one slot after join. Calls of
// hello are known to take 10 ms. Tests fill slots so that each call has one
// place to go, whatever the choice among free ones.
type pair struct {
	*rig
	ends   [2]*Endpoint
	peers  [2]*testkit.Peer
	caller *testkit.Peer
	next   uint32 // stream of the caller
	seen   [2]uint32
}

func newPair(t *testing.T, change ...func(*Options)) *pair {
	t.Helper()
	p := &pair{rig: newPipeRig(t, change...), next: 1, seen: [2]uint32{1, 1}}
	p.add(0, 2)
	p.caller = p.pipeCaller()
	p.caller.AnyOrder()
	for range 4 * enoughRuns { // they fade
		p.answered(0)
	}
	return p
}

func (p *pair) add(i, slots int) {
	p.t.Helper()
	p.ends[i] = p.AddEndpoint([]string{"w1", "w2"}[i], slots, true)
	p.peers[i] = testkit.NewWorker(p.t, p.pipe(p.ends[i]))
	p.peers[i].Greet()
	p.peers[i].Skip(testkit.WindowUpdate)
}

// join brings in the second endpoint.
func (p *pair) join() { p.t.Helper(); p.add(1, 1) }

// call has the caller begin a call that arrives at a worker.
func (p *pair) call(at int) (downstream, upstream uint32) {
	p.t.Helper()
	downstream = p.begin()
	return downstream, p.arrives(at)
}

func (p *pair) begin() (downstream uint32) {
	p.t.Helper()
	downstream = p.next
	p.next += 2
	p.caller.WriteHeaders(downstream, end, request(hello)...)
	return downstream
}

func (p *pair) arrives(at int) (upstream uint32) {
	p.t.Helper()
	upstream = p.seen[at]
	p.seen[at] += 2
	p.peers[at].WantHeaders(upstream, end)
	return upstream
}

// giveUp has the caller leave a call.
func (p *pair) giveUp(at int, downstream, upstream uint32) {
	p.t.Helper()
	p.caller.WriteRST(downstream, http2.ErrCodeCancel)
	p.peers[at].WantRST(upstream, http2.ErrCodeCancel)
}

// answered makes a call at a worker that takes 10 ms.
func (p *pair) answered(at int) {
	p.t.Helper()
	down, up := p.call(at)
	pass(10 * time.Millisecond)
	reply(p.peers[at], up)
	wantReply(p.caller, down)
	pass(time.Millisecond) // what is sent with the last byte counts as before it
}

// speaks has a worker answer calls for more than a second.
func (p *pair) speaks(at int) {
	p.t.Helper()
	for range 4 {
		pass(300 * time.Millisecond)
		p.answered(at)
	}
	pass(quietAfter + time.Millisecond)
}

func (p *pair) suspects() (of [2]bool) {
	for i, e := range p.Rank().Endpoints {
		of[i] = e.Suspect
	}
	return of
}

// overdue is what their watchers see of the endpoints, who look again and again.
func (p *pair) overdue() (of [2]bool) {
	for range 2 {
		for i, e := range p.ends {
			if e != nil {
				of[i] = p.Activity(e).Overdue
			}
		}
	}
	return of
}

// R6: when all are silent at once, because every call is long or what they wait
// for is slow, nobody is suspect.
func TestNobodyIsSuspectWhenAllAreSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		var open [3][2]uint32
		for i, at := range []int{0, 0, 1} {
			if at == 1 {
				p.join()
			}
			open[i][0], open[i][1] = p.call(at)
		}
		for range 40 {
			pass(quietAfter + time.Millisecond)
			if got := p.overdue(); got != [2]bool{} {
				t.Fatalf("overdue: %v", got)
			}
		}
		for i, at := range []int{0, 0, 1} {
			reply(p.peers[at], open[i][1])
			wantReply(p.caller, open[i][0])
		}
	})
}

// R6: of an endpoint that is overdue the relay knows and does not act;
// who watches it asks and says what comes of it. The first byte opens it again.
func TestOverdueIsForWhoWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		a, upA := p.call(0)
		b, upB := p.call(0)
		p.join()
		p.speaks(1)
		if got := p.suspects(); got[0] || p.overdue() != [2]bool{true, false} {
			t.Fatalf("suspects %v, overdue %v", got, p.overdue())
		}
		p.Suspect(p.ends[0], true)
		if got := p.suspects(); !got[0] {
			t.Error("not suspect")
		}
		reply(p.peers[0], upA)
		wantReply(p.caller, a)
		if got := p.suspects(); got[0] {
			t.Error("still suspect after the first byte")
		}
		pass(quietAfter + time.Millisecond)
		if p.overdue()[0] {
			t.Error("still overdue")
		}
		reply(p.peers[0], upB)
		wantReply(p.caller, b)
	})
}

// R6: an answer is awaited from the end of the request on, also where that is passed on
// as it comes because it is too large to be kept.
func TestOverdueAfterAnUpload(t *testing.T) {
	for name, bytes := range map[string]int{"kept": 64 << 10, "passed on": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, func(o *Options) { o.ReplayBytes = bytes })
				for range 2 { // all slots
					down, up := p.next, p.seen[0]
					p.next, p.seen[0] = p.next+2, p.seen[0]+2
					p.caller.WriteHeaders(down, noEnd, request(hello)...)
					p.caller.WriteData(down, noEnd, hi())
					p.peers[0].WantHeaders(up, noEnd)
					p.peers[0].WantDataBytes(up, hi(), noEnd)
					p.caller.WriteData(down, end, hi())
					p.peers[0].WantDataBytes(up, hi(), end)
				}
				p.join()
				p.speaks(1)
				if !p.overdue()[0] {
					t.Errorf("not overdue: %+v", p.Activity(p.ends[0]))
				}
			})
		})
	}
}

// R6: a worker owes an answer to calls that were sent to their end and of which
// it has not said a byte; to others it may have nothing to say.
func TestActivityOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		e, worker := p.ends[0], p.peers[0]
		down, up := p.next, p.seen[0]
		p.caller.WriteHeaders(down, noEnd, request(hello)...)
		pass(20 * time.Millisecond)
		worker.WantHeaders(up, noEnd)
		pass(2 * time.Second)
		if got := p.Activity(e); !got.Owed.IsZero() || got.InFlight != 1 {
			t.Errorf("with a request that has not ended: %+v", got)
		}
		p.caller.WriteData(down, end, hi())
		worker.WantData(up, end)
		began := time.Now()
		pass(time.Second + quietAfter)
		got := p.Activity(e)
		if got.Method != hello {
			t.Errorf("the call that is owed an answer is of %q", got.Method)
		}
		if got.Owed.IsZero() || got.Heard.After(began) || got.Longest != 10*time.Millisecond {
			t.Errorf("with a call that is not answered: %+v", got)
		}
		worker.WriteHeaders(up, noEnd, responseHead()...)
		p.caller.WantFields(down, noEnd, responseHead()...)
		pass(2 * time.Second)
		if got := p.Activity(e); !got.Owed.IsZero() || got.Heard.After(began) {
			t.Errorf("with an answer of which only HEADERS have come: %+v", got)
		}
		worker.WriteData(up, noEnd, hi())
		p.caller.WantDataBytes(down, hi(), noEnd)
		pass(2 * time.Second)
		if got := p.Activity(e); !got.Owed.IsZero() || !got.Heard.After(began) {
			t.Errorf("with a stream that was begun: %+v", got)
		}
		left := time.Now()
		p.giveUp(0, down, up)
		pass(quietAfter + time.Millisecond)
		if got := p.Activity(e); got.Left.Before(left) || got.InFlight != 0 {
			t.Errorf("after the caller has left at %v: %+v", left, got)
		}
	})
}

// Whoever reads the log of a hung worker learns of which method a call was, also one that
// nobody has answered before, and one whose caller has left.
func TestMethodOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		e, worker := p.ends[0], p.peers[0]
		for _, path := range []string{"/shop.Orders/New", "/shop.Orders/" + strings.Repeat("x", 300)} {
			down, up := p.next, p.seen[0]
			p.next, p.seen[0] = p.next+2, p.seen[0]+2
			p.caller.WriteHeaders(down, end, request(path)...)
			pass(time.Second)
			worker.WantHeaders(up, end)
			pass(quietAfter)
			if got := p.Activity(e).Method; got != path[:min(len(path), mostPath)] {
				t.Errorf("while a call to %.20s runs: %q", path, got)
			}
			p.giveUp(0, down, up)
			pass(quietAfter)
			if got := p.Activity(e).Method; got != path[:min(len(path), mostPath)] {
				t.Errorf("after a call to %.20s was given up: %q", path, got)
			}
		}
	})
}

// A call that was given up teaches nothing about how long calls run. One that was
// lost with its worker after the hang timeout has the next ones of its method get
// more time, but only once: a method that hangs is not given more and more. What
// counts of a stream is the time until its answer begins.
func TestLongestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, func(o *Options) { o.HangTimeout = 30 * time.Second })
		m := p.stands[0].methodOf([]byte(hello))
		longest := func(what string, began, want time.Duration) {
			t.Helper()
			if got := p.runsOf(m).Longest(began); got != want {
				t.Errorf("longest run %v after %s, want %v", got, what, want)
			}
		}
		stream, up := p.call(0)
		pass(20 * time.Millisecond)
		p.peers[0].WriteHeaders(up, noEnd, responseHead()...)
		p.peers[0].WriteData(up, noEnd, hi())
		p.caller.WantFields(stream, noEnd, responseHead()...)
		p.caller.WantDataBytes(stream, hi(), noEnd)
		pass(time.Hour)
		p.giveUp(0, stream, up)
		longest("a stream of an hour", p.now(), 20*time.Millisecond)

		down, up := p.call(0)
		pass(40 * time.Second)
		p.giveUp(0, down, up)
		longest("a call that was given up", p.now(), 20*time.Millisecond)

		for _, lost := range []struct{ runs, want time.Duration }{
			{29 * time.Second, 20 * time.Millisecond}, // not for its silence
			{time.Minute, time.Minute},
			{3 * time.Minute, 20 * time.Millisecond},
			{time.Minute, 20 * time.Millisecond},
		} {
			began := p.now()
			down, _ = p.call(0)
			pass(lost.runs)
			p.peers[0].Close()
			wantStatus(p.caller, down, "14", "cabrank: worker lost")
			longest("one that was lost after "+lost.runs.String(), p.now(), lost.want)
			longest("one that was lost, for one that began before", began-time.Second, 20*time.Millisecond)
			p.peers[0] = testkit.NewWorker(t, p.pipe(p.ends[0]))
			p.peers[0].Greet()
			p.peers[0].Skip(testkit.WindowUpdate)
			p.seen[0] = 1
		}
	})
}
