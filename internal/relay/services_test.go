package relay

import (
	"fmt"
	"testing"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
)

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
	testkit.Must(t, proto.Unmarshal(body[grpcwire.PrefixLen:], &got))
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

// Names that strangers ask for do not fill the memory: the oldest goes.
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
