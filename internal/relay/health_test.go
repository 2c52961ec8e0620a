package relay

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

const (
	checkPath   = "/grpc.health.v1.Health/Check"
	watchPath   = "/grpc.health.v1.Health/Watch"
	reflectPath = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
)

func healthMessage(s grpcwire.HealthStatus) []byte { return grpcwire.AppendHealthCheckResponse(nil, s) }

// askHealth sends a question about a service.
func askHealth(caller *testkit.Peer, stream uint32, path, service string) {
	msg := append([]byte{0, 0, 0, 0, byte(len(service) + 2), 0x0a, byte(len(service))}, service...)
	caller.Batch(func() {
		caller.WriteHeaders(stream, noEnd, request(path)...)
		caller.WriteData(stream, end, msg)
	})
}

func wantHealth(caller *testkit.Peer, stream uint32, s grpcwire.HealthStatus) {
	caller.WantFields(stream, noEnd, responseHead()...)
	caller.WantDataBytes(stream, healthMessage(s), noEnd)
}

// R7: Check is answered at the door for every service, by what the relay as a
// whole can do, and takes no slot.
func TestHealthCheck(t *testing.T) {
	g := newRig(t)
	caller := g.caller()
	check := func(stream uint32, service string, want grpcwire.HealthStatus) {
		t.Helper()
		askHealth(caller, stream, checkPath, service)
		wantHealth(caller, stream, want)
		caller.WantFields(stream, end, "grpc-status", "0")
	}
	check(1, "", grpcwire.HealthNotServing)
	e, accept := g.worker("w1", 1)
	check(3, "", grpcwire.HealthServing)
	check(5, "test.Greeter", grpcwire.HealthServing)
	caller.WriteHeaders(7, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	check(9, "", grpcwire.HealthServing) // busy is not sick
	g.Down(e)
	check(11, "", grpcwire.HealthNotServing)
	g.Up(e, "tcp", "127.0.0.1:1")
	g.StopServing()
	check(13, "", grpcwire.HealthNotServing)
	reply(worker, 1)
	wantReply(caller, 7)
	worker.WantClosed() // it had moved, and nothing of health came here
}

// The name "liveness" is about Cabrank itself, for probes that would have it started anew;
// "readiness" and every other name are about its workers.
func TestHealthOfTheProcess(t *testing.T) {
	g := newRig(t)
	caller := g.caller()
	check := func(stream uint32, service string, want grpcwire.HealthStatus) {
		t.Helper()
		askHealth(caller, stream, checkPath, service)
		wantHealth(caller, stream, want)
		caller.WantFields(stream, end, "grpc-status", "0")
	}
	check(1, "liveness", grpcwire.HealthServing)
	check(3, "readiness", grpcwire.HealthNotServing)
	check(5, strings.Repeat("x", 100)+"liveness", grpcwire.HealthNotServing)
	askHealth(caller, 7, watchPath, "liveness")
	wantHealth(caller, 7, grpcwire.HealthServing)
	askHealth(caller, 9, watchPath, "readiness")
	wantHealth(caller, 9, grpcwire.HealthNotServing)
	// In pieces, and with a message that is not what its prefix says.
	caller.WriteHeaders(11, noEnd, request(checkPath)...)
	question := append([]byte{0, 0, 0, 0, 10, 0x0a, 8}, "liveness"...)
	caller.WriteData(11, noEnd, question[:9])
	caller.WriteData(11, end, question[9:])
	wantHealth(caller, 11, grpcwire.HealthServing)
	caller.WantFields(11, end, "grpc-status", "0")
	caller.WriteHeaders(13, noEnd, request(checkPath)...)
	caller.WriteData(13, end, append(question, 0))
	wantHealth(caller, 13, grpcwire.HealthNotServing)
	caller.WantFields(13, end, "grpc-status", "0")
	g.worker("w1", 1)
	caller.WantDataBytes(9, healthMessage(grpcwire.HealthServing), noEnd) // of the other nothing has changed
	check(15, "readiness", grpcwire.HealthServing)
}

// min_ready counts.
func TestHealthNeedsMinReady(t *testing.T) {
	g := newRig(t, func(o *Options) { o.MinReady = 2 })
	g.worker("w1", 1)
	if g.Serving() {
		t.Error("serving with 1 of 2")
	}
	g.worker("w2", 1)
	if !g.Serving() || g.rank.Ready() != 2 {
		t.Error("not serving with 2 of 2")
	}
}

// A question with an empty body, or whose END_STREAM comes alone, is answered.
func TestHealthCheckForms(t *testing.T) {
	g := newRig(t)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(checkPath)...)
	wantHealth(caller, 1, grpcwire.HealthNotServing)
	caller.WantFields(1, end, "grpc-status", "0")
	caller.WriteHeaders(3, noEnd, request(checkPath)...)
	caller.WriteData(3, noEnd, []byte{0, 0, 0, 0, 0})
	caller.WantIdle()
	caller.WriteData(3, end, nil)
	wantHealth(caller, 3, grpcwire.HealthNotServing)
	caller.WantFields(3, end, "grpc-status", "0")
	caller.WriteHeaders(5, noEnd, request(checkPath)...)
	caller.WriteHeaders(5, end, "x-last", "1")
	wantHealth(caller, 5, grpcwire.HealthNotServing)
	caller.WantFields(5, end, "grpc-status", "0")
	// One that never ends its question ends at its deadline.
	caller.WriteHeaders(7, noEnd, request(checkPath, "grpc-timeout", "20m")...)
	wantStatus(caller, 7, "4", "cabrank: deadline exceeded")
	caller.WantRST(7, http2.ErrCodeNo)
}

// R7: Watch tells every change, also when the same happens twice.
func TestHealthWatch(t *testing.T) {
	g := newRig(t)
	caller := g.caller()
	askHealth(caller, 1, watchPath, "")
	wantHealth(caller, 1, grpcwire.HealthNotServing)
	e, _ := g.worker("w1", 1)
	caller.WantDataBytes(1, healthMessage(grpcwire.HealthServing), noEnd)
	g.Down(e)
	caller.WantDataBytes(1, healthMessage(grpcwire.HealthNotServing), noEnd)
	g.Down(e)
	caller.WantIdle()
	g.Up(e, "tcp", "127.0.0.1:1")
	caller.WantDataBytes(1, healthMessage(grpcwire.HealthServing), noEnd)
	g.StopServing()
	caller.WantDataBytes(1, healthMessage(grpcwire.HealthNotServing), noEnd)
	caller.WriteRST(1, http2.ErrCodeCancel)
	caller.WantIdle()
}

// A watcher that does not read keeps one message waiting, the latest, and what
// it has begun to read is not cut.
func TestHealthWatchSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		caller := g.pipeCaller()
		caller.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3})
		caller.WantSettingsAck()
		askHealth(caller, 1, watchPath, "")
		caller.WantFields(1, noEnd, responseHead()...)
		first, last := healthMessage(grpcwire.HealthNotServing), healthMessage(grpcwire.HealthServing)
		caller.WantDataBytes(1, first[:3], noEnd)
		e := g.AddEndpoint("w1", 1, true)
		for range 100 {
			g.Up(e, "none", "")
			g.Down(e)
		}
		g.Up(e, "none", "")
		caller.WantIdle()
		caller.WriteWindowUpdate(1, 1000)
		caller.WantDataBytes(1, append(first[3:], last...), noEnd)
		caller.WantIdle()
	})
}

// R7: 1,000 open watches take no slot, hold up no drain and leave nothing.
func TestManyWatches(t *testing.T) {
	g := newRig(t, func(o *Options) { o.Shards = 2 })
	const conns, each = 4, 250
	var callers [conns]*testkit.Peer
	for i := range callers {
		callers[i] = g.caller()
		callers[i].AnyOrder()
		callers[i].Batch(func() {
			for n := range uint32(each) {
				askHealth(callers[i], 1+2*n, watchPath, "")
			}
		})
	}
	_, accept := g.worker("w1", conns)
	for _, c := range callers {
		for n := range uint32(each) {
			c.WantHeaders(1+2*n, noEnd)
			c.WantData(1+2*n, noEnd)
		}
		c.WriteRST(1, http2.ErrCodeCancel)
		c.WriteHeaders(501, end, request(hello)...)
	}
	if n := g.running(); n > conns {
		t.Errorf("%d calls hold up a drain", n)
	}
	for range 2 { // one connection from each shard, two calls on it
		worker := accept()
		worker.WantHeaders(1, end)
		reply(worker, 1)
		worker.WantHeaders(3, end)
		reply(worker, 3)
	}
	for _, c := range callers {
		wantReply(c, 501)
	}
}

// R7: reflection goes past the slots, at most 4 calls at a time; the fifth
// waits like any other call.
func TestReflectionAside(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 1)
	caller := g.caller()
	caller.AnyOrder()
	caller.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.AnyOrder()
	worker.WantHeaders(1, end)
	for n := range uint32(4) {
		caller.WriteHeaders(3+2*n, noEnd, request(reflectPath)...)
		worker.WantHeaders(3+2*n, noEnd)
	}
	caller.WriteHeaders(11, noEnd, request(reflectPath)...)
	g.wantWaiting(1)
	g.wantInFlight(1)
	// It is a stream like any other, and its place is free when it ends.
	caller.WriteData(3, noEnd, hi())
	worker.WantDataBytes(3, hi(), noEnd)
	worker.WriteHeaders(3, noEnd, responseHead()...)
	worker.WriteData(3, noEnd, hi())
	worker.WriteHeaders(3, end, "grpc-status", "0")
	wantReply(caller, 3)
	caller.WantRST(3, http2.ErrCodeNo)
	worker.WantRST(3, http2.ErrCodeCancel)
	caller.WriteHeaders(13, noEnd, request(reflectPath)...)
	worker.WantHeaders(11, noEnd)
	caller.WriteRST(5, http2.ErrCodeCancel)
	worker.WantRST(5, http2.ErrCodeCancel)
	worker.WriteRST(7, http2.ErrCodeInternal)
	caller.WantRST(7, http2.ErrCodeInternal)
	reply(worker, 1)
	wantReply(caller, 1)
	worker.WantHeaders(13, noEnd) // the fifth has the slot now
	g.wantInFlight(1)
}

// R7: with nobody ready, reflection waits in the queue.
func TestReflectionWaits(t *testing.T) {
	g := newRig(t)
	caller := g.caller()
	caller.WriteHeaders(1, end, request(reflectPath)...)
	g.wantWaiting(1)
	if n := g.asides.Load(); n != 0 {
		t.Errorf("a call that waits holds %d places aside", n)
	}
	_, accept := g.worker("w1", 1)
	worker := accept()
	worker.WantHeaders(1, end)
	reply(worker, 1)
	wantReply(caller, 1)
}

// R7: a reflection call that is silent for 60 s ends; each byte counts.
func TestReflectionIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, noEnd, request(reflectPath)...)
		worker.WantHeaders(1, noEnd)
		pass(50 * time.Second)
		caller.WriteData(1, noEnd, hi())
		worker.WantDataBytes(1, hi(), noEnd)
		pass(50 * time.Second)
		worker.WriteHeaders(1, noEnd, responseHead()...)
		caller.WantFields(1, noEnd, responseHead()...)
		pass(59 * time.Second)
		caller.WantIdle()
		pass(time.Second + 2*time.Millisecond)
		caller.WantFields(1, end, "grpc-status", "14", "grpc-message", "cabrank: reflection idle")
		caller.WantRST(1, http2.ErrCodeNo)
		worker.WantRST(1, http2.ErrCodeCancel)
	})
}
