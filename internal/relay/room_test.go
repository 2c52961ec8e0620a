package relay

import (
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What a call is counted with is what it takes.
func TestCallSize(t *testing.T) {
	if size := unsafe.Sizeof(call{}) + unsafe.Sizeof(form{}); size > callSize || size < callSize/4*3 {
		t.Errorf("a call takes %d bytes, and is counted with %d", size, callSize)
	}
}

// beside is an attack on the memory of a relay with one slot, which is taken, beside
// callers whose small calls wait for it.
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

// attacker is a caller whose table holds enough for large HEADERS by few octets.
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

// R11: HEADERS count, of calls in the queue and of those whose request is waited
// for outside of it: some 50 KB on the wire are 11 MiB here.
func TestHeadersAreBounded(t *testing.T) {
	for name, last := range map[string]testkit.EndStream{"in the queue": end, "waited for": noEnd} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const total = 2 << 20
				b := newBeside(t, total)
				var all []*testkit.Peer
				for range 10 {
					p, wide := b.attacker()
					p.Batch(func() {
						for n := range 70 {
							p.WriteBlock(stream(n+1), last, wide, 16<<10)
						}
					})
					all = append(all, p)
					b.wantWithin(total + 64<<10)
				}
				if b.counted("buffer_full") == 0 {
					t.Error("nothing was given up")
				}
				b.wantServed(all)
			})
		})
	}
}

// R11: small calls by the thousand count too: each takes memory, though its HEADERS
// are a few bytes.
func TestSmallCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 2 << 20
		b := newBeside(t, total)
		var all []*testkit.Peer
		for range 40 {
			p, _ := b.attacker()
			head := block(request(hello)...)
			p.Batch(func() {
				for n := range 240 {
					p.WriteBlock(stream(n+1), noEnd, head, 16<<10)
				}
			})
			all = append(all, p)
			b.wantWithin(total + 64<<10)
		}
		if b.counted("buffer_full") == 0 {
			t.Error("nothing was given up of 9,600 calls, 30 MiB")
		}
		b.wantServed(all)
	})
}

// R11: header blocks that do not come to their end count, and cost their own
// connections.
func TestHalfHeadersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 1 << 20
		b := newBeside(t, total)
		var all []*testkit.Peer
		for range 20 {
			p, _ := b.attacker()
			p.WriteHeadersFragment(3, end, false, make([]byte, 16<<10))
			for range 3 {
				p.WriteContinuation(3, false, make([]byte, 15<<10))
			}
			all = append(all, p)
			synctest.Wait()
		}
		b.wantWithin(total + 64<<10)
		if n := b.ended(ofCaller, "buffer_full"); n == 0 {
			t.Error("no connection was ended")
		}
		b.wantServed(all)
	})
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

// R11: answers that pile up for a caller that does not read cost its connection when
// room is short.
func TestAnswersThatPileUpAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 4 << 20
		b := newBeside(t, total)
		var all []*testkit.Peer
		late := append(block(request(hello)...), block("grpc-timeout", "soon")...)
		for range 20 {
			p, _ := b.attacker()
			synctest.Wait()
			p.StopReading()
			all = append(all, p)
			for n := 0; n < 8000 && b.ended(ofCaller, "buffer_full") == 0; n += 500 {
				p.Batch(func() {
					for i := range 500 {
						p.WriteBlock(stream(n+i+1), end, late, 16<<10)
					}
				})
				b.wantWithin(total + 1<<20)
			}
		}
		if b.ended(ofCaller, "buffer_full") == 0 {
			t.Error("no connection was ended")
		}
		b.wantServed(all)
	})
}

// R11: who holds most gives up, on whichever shard it is.
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
