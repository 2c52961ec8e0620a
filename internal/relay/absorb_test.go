package relay

import (
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// deafCaller connects a caller in memory that gives no credit for answers.
func (g *rig) deafCaller() *testkit.Peer {
	g.t.Helper()
	p := testkit.NewCaller(g.t, g.dialPipe())
	p.Greet(noWindow())
	p.Skip(testkit.WindowUpdate)
	p.AnyOrder()
	return p
}

// ask makes a call of a deaf caller and has the worker begin its answer.
func (g *rig) askDeaf(caller, worker *testkit.Peer, stream, at uint32) {
	g.t.Helper()
	caller.WriteHeaders(stream, end, request(hello)...)
	worker.WantHeaders(at, end)
	worker.WriteHeaders(at, noEnd, responseHead()...)
}

// wantAbsorbed compares what is lent in all.
func (g *rig) wantAbsorbed(want int64) {
	g.t.Helper()
	if got := g.absorbed.Load(); got != want {
		g.t.Errorf("credit for %d bytes was given ahead, want %d", got, want)
	}
}

// R9: a caller that takes its answer slowly, later or not to the end finds every
// byte in its place, and nothing stays in the ledgers.
func TestAbsorbedAnswersArriveWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, func(o *Options) { o.AbsorbBytes = 256 << 10 })
		_, worker := g.pipeWorker("w1", 3)
		caller := g.deafCaller()
		caller.WriteWindowUpdate(0, 1<<24)
		body := make([]byte, 700_000)
		for i := range body {
			body[i] = byte(i % 251)
		}
		g.askDeaf(caller, worker, 1, 1)
		caller.WantFields(1, noEnd, responseHead()...)
		sent, got := 0, 0
		for got < len(body) {
			for synctest.Wait(); sent < len(body); synctest.Wait() {
				n := min(int(streamWindow+worker.Credit(1))-sent, len(body)-sent, 10_000)
				if n == 0 {
					break
				}
				worker.WriteData(1, noEnd, body[sent:sent+n])
				sent += n
			}
			if held := sent - got; held > 256<<10 {
				t.Fatalf("%d bytes wait", held)
			}
			step := min(30_000, len(body)-got)
			caller.WriteWindowUpdate(1, uint32(step))
			for want := got + step; got < want; {
				p := caller.WantData(1, noEnd)
				if string(p) != string(body[got:got+len(p)]) {
					t.Fatalf("other bytes behind %d", got)
				}
				got += len(p)
			}
		}
		worker.WriteHeaders(1, end, "grpc-status", "0")
		caller.WantFields(1, end, "grpc-status", "0")
		g.wantAbsorbed(0)
		for _, leave := range []func(){
			func() { caller.WriteRST(3, http2.ErrCodeCancel) },
			caller.Close,
		} {
			stream := uint32(3)
			if worker.Credit(3) > 0 {
				stream = 5
			}
			g.askDeaf(caller, worker, stream, stream)
			pour(worker, stream, 0)
			leave()
			worker.WantRST(stream, http2.ErrCodeCancel)
			g.wantAbsorbed(0)
		}
	})
}

// R9: 1,000 callers do not read, each on a connection of its own. What waits for
// them is what their windows hold and half of buffer_total; callers that read are served.
func TestThousandCallersDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, window, total = 1000, 8 << 10, 16 << 20
		g := newPipeRig(t, func(o *Options) {
			o.BufferTotal, o.Limits.Window, o.Limits.Connections = total, window, callers+1
		})
		chunk := make([]byte, window/2)
		sent := int64(0)
		for _, first := range []int64{window, window / 2} { // one connection takes no 1,000 calls (R14)
			_, worker := g.pipeWorker("w", callers/2) // the second one comes under pressure (R11)
			for stream := uint32(1); stream < callers; stream += 2 {
				g.askDeaf(g.deafCaller(), worker, stream, stream)
				for mine := int64(0); ; mine += int64(len(chunk)) {
					synctest.Wait()
					if first+worker.Credit(stream)-mine < int64(len(chunk)) {
						sent += mine
						break
					}
					worker.WriteData(stream, noEnd, chunk)
				}
			}
		}
		if most := int64(callers*window + total/2); sent > most || sent < callers*window/2 {
			t.Errorf("%d bytes wait, want at most %d", sent, most)
		}
		if lent := g.absorbed.Load(); lent > total/2 || lent < total/4 {
			t.Errorf("credit for %d bytes was given ahead", lent)
		}
		if used := g.budget.Used(); used > 2*(callers*window+total/2) {
			t.Errorf("%d bytes are in use", used)
		}
		_, worker := g.pipeWorker("w3", 1)
		other := g.pipeCaller()
		other.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		reply(worker, 1)
		wantReply(other, 1)
	})
}
