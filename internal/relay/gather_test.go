package relay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

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

// R9, the bar: 20 callers that send a byte at a time do not hold workers, so that
// each of the others finds a slot at once.
func TestByteAtATimeBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := stallRig(t)
		var workers [2]*testkit.Peer
		for i := range workers {
			_, workers[i] = g.pipeWorker("w", 1)
			workers[i].AnyOrder()
		}
		caller := g.pipeCaller()
		slow := make([]*testkit.Peer, 20)
		message := append([]byte{0, 0, 0, 0, 100}, make([]byte, 100)...)
		answered := [2]uint32{1, 1}
		serve := func(stream uint32) {
			caller.WriteHeaders(stream, noEnd, request(hello)...)
			caller.WriteData(stream, end, hi())
			synctest.Wait()
			i := 0
			if g.Rank().Endpoints[0].InFlight == 0 {
				i = 1
			}
			workers[i].WantHeaders(answered[i], noEnd)
			workers[i].WantDataBytes(answered[i], hi(), end)
			pass(time.Millisecond)
			reply(workers[i], answered[i])
			answered[i] += 2
			wantReply(caller, stream)
		}
		stream := uint32(1)
		for range 2 * enoughAnswers {
			serve(stream)
			stream += 2
		}
		for i := range slow {
			slow[i] = g.pipeCaller()
			slow[i].WriteHeaders(1, noEnd, request(hello)...)
		}
		for n := range message[:len(message)-1] {
			pass(100 * time.Millisecond)
			for _, p := range slow {
				p.WriteData(1, noEnd, message[n:n+1])
			}
			serve(stream)
			stream += 2
		}
		if m := g.Stats().of(t, hello); m.Wait.Sum != 0 {
			t.Errorf("calls have waited for %v s in all", m.Wait.Sum)
		}
		for _, p := range slow {
			p.Close()
		}
	})
}
