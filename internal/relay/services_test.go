package relay

import (
	"fmt"
	"testing"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
)

// R7: a service that workers describe is answered for by its name, as the workers say; one
// that no worker has is not found. While a worker has not said what it serves, a name that
// is in no list is about the relay as a whole.
func TestHealthByName(t *testing.T) {
	g := newRig(t)
	caller := g.caller()
	stream := uint32(1)
	check := func(service string, want grpcwire.HealthStatus) {
		t.Helper()
		askHealth(caller, stream, checkPath, service)
		if want == grpcwire.HealthServiceUnknown {
			wantStatus(caller, stream, "5", "unknown service")
		} else {
			wantHealth(caller, stream, want)
			caller.WantFields(stream, end, "grpc-status", "0")
		}
		stream += 2
	}
	const yes, no, unknown = grpcwire.HealthServing, grpcwire.HealthNotServing, grpcwire.HealthServiceUnknown
	check("a.A", no)
	e1, _ := g.worker("w1", 1)
	check("a.A", yes)
	g.Describe(e1, map[string]bool{"a.A": true, "b.B": false})
	check("a.A", yes)
	check("b.B", no)
	check("c.C", unknown)
	check("", yes)
	check("readiness", yes)
	check("liveness", yes)
	e2, _ := g.worker("w2", 1)
	check("b.B", no)
	check("c.C", yes) // w2 may have it
	g.Describe(e2, map[string]bool{"a.A": false, "b.B": true})
	check("a.A", yes) // at one of them
	check("b.B", yes)
	check("c.C", unknown)
	g.Down(e2)
	check("b.B", no)
	g.Down(e1)
	check("a.A", no)
	check("c.C", no)
	g.Up(e1, "tcp", "127.0.0.1:1")
	check("c.C", yes) // another process is there
	g.Describe(e1, map[string]bool{})
	check("a.A", unknown)
}

// R7: whoever watches a name is told of each change, also that there is no such service.
func TestHealthWatchByName(t *testing.T) {
	g := newRig(t)
	caller := g.caller()
	e, _ := g.worker("w1", 1)
	g.Describe(e, map[string]bool{"a.A": true})
	askHealth(caller, 1, watchPath, "a.A")
	wantHealth(caller, 1, grpcwire.HealthServing)
	askHealth(caller, 3, watchPath, "c.C")
	wantHealth(caller, 3, grpcwire.HealthServiceUnknown)
	g.Describe(e, map[string]bool{"a.A": false})
	caller.WantDataBytes(1, healthMessage(grpcwire.HealthNotServing), noEnd)
	g.Describe(e, map[string]bool{"a.A": false, "c.C": true})
	caller.WantDataBytes(3, healthMessage(grpcwire.HealthServing), noEnd)
	g.Describe(e, map[string]bool{"a.A": false, "c.C": true})
	caller.WantIdle()
}

// R7: List tells of all services and of the relay.
func TestHealthList(t *testing.T) {
	g := newRig(t)
	caller := g.caller()
	e, _ := g.worker("w1", 1)
	g.Describe(e, map[string]bool{"a.A": true, "b.B": false})
	caller.WriteHeaders(1, end, request("/grpc.health.v1.Health/List")...)
	caller.WantFields(1, noEnd, responseHead()...)
	body := caller.WantData(1, noEnd)
	caller.WantFields(1, end, "grpc-status", "0")
	var got grpc_health_v1.HealthListResponse
	if err := proto.Unmarshal(body[grpcwire.PrefixLen:], &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]grpc_health_v1.HealthCheckResponse_ServingStatus{"": 1, "liveness": 1, "readiness": 1, "a.A": 1, "b.B": 2}
	if len(got.GetStatuses()) != len(want) {
		t.Errorf("the list has %v", got.GetStatuses())
	}
	for name, status := range want {
		if got.GetStatuses()[name].GetStatus() != status {
			t.Errorf("%q is %v, want %v", name, got.GetStatuses()[name], status)
		}
	}
}

// A call of a method that a worker has said it does not have, of a service that no worker
// lists, is answered at once, with every slot taken. A service that is in no list and is
// served all the same gets its calls.
func TestCallOfNoMethod(t *testing.T) {
	const check, unlisted = "/AWS.ALB/healthcheck", "/hidden.Service/Call"
	g := newRig(t)
	caller := g.caller()
	e, accept := g.worker("w1", 1)
	g.Describe(e, map[string]bool{"test.Greeter": true})
	var worker *testkit.Peer
	next, seen := uint32(1), uint32(1)
	toWorker := func(path, status string) {
		t.Helper()
		caller.WriteHeaders(next, end, request(path)...)
		if worker == nil {
			worker = accept()
		}
		worker.WantHeaders(seen, end)
		worker.WriteHeaders(seen, end, ":status", "200", "content-type", "application/grpc", "grpc-status", status)
		caller.WantFields(next, end, ":status", "200", "content-type", "application/grpc", "grpc-status", status)
		next, seen = next+2, seen+2
	}
	toWorker(unlisted, "0")
	toWorker("/hidden.Service/Other", "12")
	toWorker("/hidden.Service/Third", "0")
	toWorker(unlisted, "0")
	toWorker("/test.Greeter/None", "12")
	toWorker("/test.Greeter/None", "12")
	toWorker(check, "12")
	caller.WriteHeaders(next, end, request(hello)...)
	worker.WantHeaders(seen, end) // the only slot
	busy := next
	next += 2
	caller.WriteHeaders(next, end, request(check)...)
	wantStatus(caller, next, "12", "cabrank: no worker has this method")
	next += 2
	reply(worker, seen)
	seen += 2
	wantReply(caller, busy)
	g.Describe(e, map[string]bool{"test.Greeter": true}) // what was known may be old
	toWorker(check, "12")
}

// What strangers ask for does not fill the memory: the oldest name goes.
func TestAbsentMethodsAreBounded(t *testing.T) {
	var s services
	s.replace(&description{whole: true})
	path := func(i int) []byte { return fmt.Appendf(nil, "/s%d/m", i) }
	for i := range maxAbsent + 1 {
		s.answeredUnimplemented(path(i))
		s.answeredUnimplemented(path(i))
	}
	if s.lacks(path(0)) || !s.lacks(path(1)) || !s.lacks(path(maxAbsent)) {
		t.Error("not the oldest has gone")
	}
	s.replace(&description{})
	if s.lacks(path(1)) {
		t.Error("it is remembered after a change")
	}
}
