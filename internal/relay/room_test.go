package relay

import (
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A call counts with the memory that it takes.
func TestCallSize(t *testing.T) {
	if size := unsafe.Sizeof(call{}) + unsafe.Sizeof(requestHead{}); size > callSize || size < callSize/4*3 {
		t.Errorf("a call takes %d bytes, and is counted with %d", size, callSize)
	}
}

// beside is an attack on the memory of a relay whose one slot is taken, while small calls of
// other callers wait for it.
type beside struct {
	*rig
	worker *testkit.Peer
	good   []*testkit.Peer
	next   uint32 // stream of each good caller's waiting call
}

const goodCallers = 5

func newBeside(t *testing.T, total int64) *beside {
	t.Helper()
	b := &beside{rig: newPipeRig(t, func(o *Options) { o.BufferTotal = total })}
	_, b.worker = b.pipeWorker("w1", 1)
	for range goodCallers {
		b.good = append(b.good, b.pipeCaller())
	}
	b.next = teach(b.good[0], b.worker) // that callers of the method speak first
	b.good[0].WriteHeaders(b.next, end, request(hello)...)
	b.worker.WantHeaders(b.next, end)
	for _, p := range b.good {
		p.WriteHeaders(b.next+2, noEnd, request(hello)...)
		p.WriteData(b.next+2, end, hi())
	}
	b.wantWaiting(goodCallers)
	return b
}

// teach has a method answered so often that its order is known.
func teach(caller, worker *testkit.Peer) (next uint32) {
	for n := range uint32(enoughAnswers) {
		caller.WriteHeaders(1+2*n, noEnd, request(hello)...)
		caller.WriteData(1+2*n, end, hi())
		worker.WantHeaders(1+2*n, noEnd)
		worker.WantDataBytes(1+2*n, hi(), end)
		reply(worker, 1+2*n)
		wantReply(caller, 1+2*n)
	}
	return 1 + 2*enoughAnswers
}

// attacker is a caller that makes large HEADERS of few octets with its table.
func (b *beside) attacker() (p *testkit.Peer, wide []byte) {
	b.t.Helper()
	p = b.pipeCaller()
	p.Fragile()
	p.AnyOrder()
	p.Skip(testkit.Headers, testkit.Data, testkit.RST, testkit.WindowUpdate)
	p.WriteHeaders(1, end, request(checkPath, "b", strings.Repeat("b", 3800))...)
	return p, append(block(request(hello)...), 0xbe, 0xbe, 0xbe)
}

// wantWithin checks the memory in use.
func (b *beside) wantWithin(most int64) {
	b.t.Helper()
	synctest.Wait()
	if used := b.budget.Used(); used > most {
		b.t.Fatalf("%d KiB are in use, want at most %d", used>>10, most>>10)
	}
}

// wantServed ends the attack and has every good caller's call served in its turn.
func (b *beside) wantServed(attackers []*testkit.Peer) {
	b.t.Helper()
	b.wantWaitingOf(b.good)
	for _, p := range attackers {
		p.Close()
	}
	reply(b.worker, b.next)
	wantReply(b.good[0], b.next)
	for i := range b.good {
		id := b.next + 2 + 2*uint32(i)
		b.worker.WantHeaders(id, noEnd)
		b.worker.WantDataBytes(id, hi(), end)
		reply(b.worker, id)
	}
	for _, p := range b.good {
		wantReply(p, b.next+2)
	}
}

// wantWaitingOf checks that the calls of these callers were not given up.
func (b *beside) wantWaitingOf(good []*testkit.Peer) {
	b.t.Helper()
	for i, p := range good {
		p.AnyOrder()
		p.WritePing([8]byte{1})
		if f := p.WantFrame(); f.Kind != testkit.PingAck {
			b.t.Fatalf("good caller %d was sent %v", i, f)
		}
	}
}

// R11: whatever many attackers have wait here counts, and is bounded: it costs their own
// newest calls, or their own connections, and callers beside them notice nothing.
func TestMemoryIsBounded(t *testing.T) {
	calls := func(of int, last testkit.EndStream, block func(wide []byte) []byte) func(*beside, *testkit.Peer, []byte) {
		return func(_ *beside, p *testkit.Peer, wide []byte) {
			p.Batch(func() {
				for n := range of {
					p.WriteBlock(stream(n+1), last, block(wide), 16<<10)
				}
			})
		}
	}
	as := func(wide []byte) []byte { return wide }
	for name, c := range map[string]struct {
		total     int64
		attackers int
		attack    func(b *beside, p *testkit.Peer, wide []byte)
		ends      bool // connections, and not calls alone
	}{
		// Some 50 KB on the wire are 11 MiB here.
		"HEADERS in the queue":   {2 << 20, 10, calls(70, end, as), false},
		"HEADERS waited for":     {2 << 20, 10, calls(70, noEnd, as), false},
		"small calls, thousands": {2 << 20, 40, calls(240, noEnd, func([]byte) []byte { return block(request(hello)...) }), false},
		"half header blocks": {1 << 20, 20, func(_ *beside, p *testkit.Peer, _ []byte) {
			p.WriteHeadersFragment(3, end, false, make([]byte, 16<<10))
			for range 3 {
				p.WriteContinuation(3, false, make([]byte, 15<<10))
			}
		}, true},
		"answers that pile up": {4 << 20, 20, answersPileUp, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBeside(t, c.total)
				var all []*testkit.Peer
				for range c.attackers {
					p, wide := b.attacker()
					c.attack(b, p, wide)
					all = append(all, p)
					b.wantWithin(c.total + 64<<10)
				}
				given := b.counted("buffer_full")
				if c.ends {
					given = b.ended(ofCaller, "buffer_full")
				}
				if given == 0 {
					t.Error("nothing was given up")
				}
				b.wantServed(all)
			})
		})
	}
}

// answersPileUp has answers wait for a caller that does not read, until that costs some
// connection.
func answersPileUp(b *beside, p *testkit.Peer, _ []byte) {
	late := append(block(request(hello)...), block("grpc-timeout", "soon")...)
	synctest.Wait()
	p.StopReading()
	for n := 0; n < 8000 && b.ended(ofCaller, "buffer_full") == 0; n += 500 {
		p.Batch(func() {
			for i := range 500 {
				p.WriteBlock(stream(n+i+1), end, late, 16<<10)
			}
		})
		b.wantWithin(4<<20 + 1<<20)
	}
}

// Whoever loses its connection so is told why.
func TestHalfHeadersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeside(t, 32<<10)
		p, _ := b.attacker()
		p.WriteHeadersFragment(3, end, false, make([]byte, 16<<10))
		p.WriteContinuation(3, false, make([]byte, 16<<10))
		p.WriteContinuation(3, false, make([]byte, 16<<10))
		p.WantGoAway(http2.ErrCodeEnhanceYourCalm)
		b.wantServed(nil)
	})
}

// R11: the connection that holds most gives up, on any shard.
func TestOtherShardGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 1 << 20
		b := &beside{rig: newPipeRig(t, func(o *Options) { o.Shards, o.BufferTotal = 2, total })}
		attacker, wide := b.attacker()
		good := b.pipeCaller() // on the other shard
		good.WriteHeaders(1, noEnd, request(hello)...)
		good.WriteData(1, noEnd, append([]byte{0, 0, 0, 80, 0}, make([]byte, 15<<10)...))
		attacker.Batch(func() {
			for n := range 62 { // nearly all there is
				attacker.WriteBlock(stream(n+1), end, wide, 16<<10)
			}
		})
		synctest.Wait()
		good.WriteHeaders(3, noEnd, request(hello)...)
		for range 2 {
			good.WriteData(3, noEnd, append([]byte{0, 0, 0, 80, 0}, make([]byte, 15<<10)...))
		}
		b.wantWithin(total)
		b.wantWaitingOf([]*testkit.Peer{good})
		if b.counted("buffer_full") == 0 {
			t.Error("nothing was given up")
		}
		attacker.Close()
		good.Close()
	})
}
