package relay

import (
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// waitingSize is what a call that waits takes beside its bytes: its HEADERS and its
// path are in buffers of 1 KiB.
const waitingSize = callSize + 2<<10

// wantHeld compares the bytes that wait for all callers, beside that.
func (g *rig) wantHeld(want int) {
	g.t.Helper()
	g.each(func(st *stand) {
		for cc := range st.callers {
			want -= cc.held
			for p := cc.waiting.oldest; p != nil; p = p.newer {
				want += callSize + cap(p.of.form.head) + cap(p.of.form.path)
			}
		}
	})
	if want != 0 {
		g.t.Errorf("%d bytes fewer are held than should be", want)
	}
}

// someWaiting returns a call that has been to the rank and can be given up.
func (st *stand) someWaiting() *call {
	for cc := range st.callers {
		if c := cc.waiting.first(); c != nil && c.state != callGathering {
			return c
		}
	}
	return nil
}

// R11: a caller that takes none of its answers gets no new calls when so many
// bytes wait for it; others do, and it does again when it has taken them.
func TestAnswersThatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		g := newPipeRig(t, func(o *Options) { o.Limits.Buffer = limit })
		_, worker := g.pipeWorker("w1", 1)
		caller := testkit.NewCaller(t, g.dialPipe())
		caller.Greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		caller.Skip(testkit.WindowUpdate)
		caller.AnyOrder()
		served := uint32(0)
		for stream := uint32(1); ; stream += 2 {
			caller.WriteHeaders(stream, end, request(hello)...)
			synctest.Wait()
			if g.counted("buffer_full") > 0 {
				wantStatus(caller, stream, "8", "cabrank: queue full")
				break
			}
			worker.WantHeaders(stream, end)
			worker.WriteHeaders(stream, noEnd, responseHead()...)
			for range 4 {
				worker.WriteData(stream, noEnd, make([]byte, streamWindow/4))
			}
			worker.WriteHeaders(stream, end, "grpc-status", "0")
			synctest.Wait()
			served++
		}
		if served < limit/streamWindow || served > limit/streamWindow+1 {
			t.Errorf("%d answers of 64 KiB wait", served)
		}
		other := g.pipeCaller()
		other.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(2*served+1, end)
		reply(worker, 2*served+1)
		wantReply(other, 1)
		caller.WriteWindowUpdate(0, 1<<30)
		caller.WriteWindowUpdate(1, 1<<20)
		caller.WriteWindowUpdate(3, 1<<20)
		synctest.Wait()
		caller.WriteHeaders(2*served+3, end, request(hello)...)
		worker.WantHeaders(2*served+3, end)
		reply(worker, 2*served+3)
		caller.WantFields(2*served+3, noEnd, responseHead()...)
		g.wantHeld(int(served-2)*streamWindow + 1<<10) // and one small answer
		caller.Close()
	})
}
