package relay

import (
	"bytes"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

const lastID = 1<<31 - 1

// drain runs Drain beside the test and returns what waits for its end.
func (g *rig) drain(timeout time.Duration, hurry <-chan struct{}) (wait func()) {
	done := make(chan struct{})
	go func() { defer close(done); g.Drain(timeout, hurry) }() // bounded by timeout
	g.t.Cleanup(func() { <-done })
	return func() { <-done }
}

// R17: the two-step GOAWAY. Between the steps streams are served, after them
// refused as not started; calls in flight and queued finish; then the
// connection ends in good order.
func TestDrain(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller, idle := g.caller(), g.caller()
	caller.AnyOrder()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	caller.WriteHeaders(3, end, request(hello)...)
	g.wantWaiting(1)
	wait := g.drain(soon, nil)
	for _, c := range []*testkit.Peer{caller, idle} {
		if last := c.WantGoAway(http2.ErrCodeNo); last != lastID {
			t.Errorf("first GOAWAY: last %d", last)
		}
	}
	idle.WritePingAck(idle.WantPing())
	if last := idle.WantGoAway(http2.ErrCodeNo); last != 0 {
		t.Errorf("final GOAWAY of an idle connection: last %d", last)
	}
	idle.WantClosed()

	ping := caller.WantPing()
	caller.WriteHeaders(5, end, request(hello)...) // it was under way
	g.wantWaiting(2)
	caller.WritePingAck(ping)
	if last := caller.WantGoAway(http2.ErrCodeNo); last != 5 {
		t.Errorf("final GOAWAY: last %d, want 5", last)
	}
	caller.WriteHeaders(7, end, request(hello)...)
	caller.WantRST(7, http2.ErrCodeRefusedStream)
	reply(worker, 1)
	wantReply(caller, 1)
	for _, stream := range []uint32{3, 5} {
		worker.WantHeaders(stream, end)
		reply(worker, stream)
		wantReply(caller, stream)
	}
	caller.WantClosed()
	wait()
}

// R17: a caller that does not answer the PING gets the final GOAWAY after a
// second.
func TestDrainWithoutPong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		caller := g.pipeCaller()
		began := time.Now()
		wait := g.drain(10*time.Second, nil)
		caller.WantGoAway(http2.ErrCodeNo)
		caller.WantPing()
		caller.WantIdle()
		caller.WantGoAway(http2.ErrCodeNo)
		wantTook(t, began, time.Second)
		caller.WantClosed()
		wait()
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("the drain took %v", took)
		}
	})
}

// R17: what is left after drain_timeout, or at a second signal, is answered and
// not reset, running or queued.
func TestDrainLeftovers(t *testing.T) {
	for _, hurried := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := newPipeRig(t)
			_, worker := g.pipeWorker("w1", 2)
			caller := g.pipeCaller()
			caller.Skip(testkit.GoAway, testkit.Ping)
			caller.AnyOrder()
			for stream := uint32(1); stream <= 7; stream += 2 {
				caller.WriteHeaders(stream, noEnd, request(hello)...)
			}
			worker.WantHeaders(1, noEnd)
			worker.WantHeaders(3, noEnd)
			worker.WriteHeaders(3, noEnd, responseHead()...)
			caller.WantFields(3, noEnd, responseHead()...)
			hurry := make(chan struct{})
			began, want := time.Now(), 3*time.Second
			wait := g.drain(want, hurry)
			if hurried {
				want = 2 * time.Second
				pass(want)
				close(hurry)
			}
			wantStatus(caller, 1, "14", "cabrank: shutting down")
			caller.WantFields(3, end, "grpc-status", "14", "grpc-message", "cabrank: shutting down")
			wantStatus(caller, 5, "14", "cabrank: shutting down")
			wantStatus(caller, 7, "14", "cabrank: shutting down")
			wantTook(t, began, want)
			worker.Skip(testkit.RST) // both are cancelled, in no order
			wait()
			if took := time.Since(began); took > want+time.Second {
				t.Errorf("the drain took %v", took)
			}
		})
	}
}

// R17: watchers are told NOT_SERVING at once, UNAVAILABLE with the final
// GOAWAY, and hold nothing up.
func TestDrainEndsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.AnyOrder()
		askHealth(caller, 1, watchPath, "")
		wantHealth(caller, 1, grpcwire.HealthServing)
		caller.WriteHeaders(3, noEnd, request(watchPath)...) // its question never ends
		wait := g.drain(20*time.Second, nil)
		caller.WantDataBytes(1, healthMessage(grpcwire.HealthNotServing), noEnd)
		began := time.Now()
		caller.WantGoAway(http2.ErrCodeNo)
		caller.WritePingAck(caller.WantPing())
		caller.WantFields(1, end, "grpc-status", "14", "grpc-message", "cabrank: shutting down")
		wantStatus(caller, 3, "14", "cabrank: shutting down")
		wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the drain took %v", took)
		}
	})
}

// R17: a caller that does not read holds the drain up for a bounded time, with
// an answer waiting for its window, for its socket, or for its greeting.
func TestDrainDoesNotHang(t *testing.T) {
	for name, script := range map[string]func(g *rig, worker *testkit.Peer){
		"no window": func(g *rig, worker *testkit.Peer) {
			caller := g.pipeCaller()
			caller.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			caller.WriteHeaders(1, end, request(hello)...)
			worker.WantHeaders(1, end)
			reply(worker, 1)
		},
		"stuck socket": func(g *rig, worker *testkit.Peer) {
			caller := g.pipeCaller()
			caller.StopReading()
			caller.WriteHeaders(1, end, request(hello)...)
			worker.WantHeaders(1, end)
			reply(worker, 1)
		},
		"no greeting": func(g *rig, _ *testkit.Peer) {
			ours, theirs := net.Pipe()
			g.t.Cleanup(func() { theirs.Close() })
			g.ServeConn(ours)
		},
		"silent worker": func(g *rig, worker *testkit.Peer) {
			g.pipeCaller().WriteHeaders(1, end, request(hello)...)
			worker.WantHeaders(1, end)
			worker.StopReading()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newPipeRig(t)
				_, worker := g.pipeWorker("w1", 1)
				script(g, worker)
				synctest.Wait()
				began := time.Now()
				g.Drain(5*time.Second, nil)
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("the drain took %v", took)
				}
			})
		})
	}
}

// R17: the answers of the end are flushed, and a caller that goes on sending
// into the closed house still gets them: half-close comes before close.
func TestDrainFlushes(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.Skip(testkit.GoAway, testkit.Ping)
	caller.WriteHeaders(1, noEnd, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, noEnd)
	wait := g.drain(10*time.Millisecond, nil)
	caller.Fragile()
	for range 20 {
		caller.WriteData(1, noEnd, make([]byte, 1000))
	}
	wantStatus(caller, 1, "14", "cabrank: shutting down")
	caller.WantRST(1, http2.ErrCodeNo)
	caller.WantClosed()
	wait()
}

// A large answer that the caller is still reading reaches it whole.
func TestDrainWaitsForReaders(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.Refill()
	caller.Skip(testkit.GoAway)
	caller.AnyOrder()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	body := bytes.Repeat(hi(), 50_000)
	sent := make(chan struct{})
	go func() { // ends with its last frame
		defer close(sent)
		worker.WriteHeaders(1, noEnd, responseHead()...)
		worker.WriteBody(1, noEnd, body)
		worker.WriteHeaders(1, end, "grpc-status", "0")
	}()
	caller.WantFields(1, noEnd, responseHead()...)
	wait := g.drain(soon, nil)
	caller.WritePingAck(caller.WantPing())
	caller.WantDataBytes(1, body, noEnd)
	caller.WantFields(1, end, "grpc-status", "0")
	<-sent
	wait()
}

// After a drain nobody is let in.
func TestDrainClosesDoor(t *testing.T) {
	g := newRig(t)
	path := filepath.Join(t.TempDir(), "door") // a port could be somebody else's soon
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(ln) }() // ended by the drain
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, "the door to be open", func() bool { return g.connections.Load() == 1 })
	conn.Close()
	g.Drain(time.Second, nil)
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		t.Error("the door still accepts")
	}
	if err := <-served; !errors.Is(err, door.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	g.Drain(time.Second, nil) // once more changes nothing
	if err := g.Serve(ln); !errors.Is(err, door.ErrClosed) {
		t.Errorf("Serve after a drain: %v", err)
	}
}

// Close ends everything at once, whatever is under way.
func TestCloseInTheMiddle(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	for stream := uint32(1); stream < 40; stream += 2 {
		caller.WriteHeaders(stream, noEnd, request(hello)...)
		caller.WriteData(stream, noEnd, hi())
	}
	accept().WantHeaders(1, noEnd)
	askHealth(caller, 41, watchPath, "")
	g.wantWaiting(19)
	g.Close()
	caller.Skip(testkit.Headers, testkit.Data, testkit.RST)
	caller.WantClosed()
}

// A connection that comes after the end is closed.
func TestServeConnAfterClose(t *testing.T) {
	g := newRig(t)
	g.Close()
	ours, theirs := net.Pipe()
	g.ServeConn(ours)
	if _, err := theirs.Read(make([]byte, 1)); err == nil {
		t.Error("somebody answered")
	}
}
