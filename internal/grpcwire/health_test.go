package grpcwire

import (
	"bytes"
	"errors"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestParseHealthCheckRequest(t *testing.T) {
	for _, service := range []string{"", "helloworld.Greeter", "é"} {
		msg, err := proto.Marshal(&healthpb.HealthCheckRequest{Service: service})
		testkit.Must(t, err)
		got, err := ParseHealthCheckRequest(msg)
		testkit.Want(t, err == nil && string(got) == service, "service %q was read as %q, %v", service, got, err)
	}
}

// A field from a later version of the message is passed over, and the last of
// two services counts, as for any protobuf reader.
func TestParseHealthCheckRequestOfTomorrow(t *testing.T) {
	msg := []byte("\x0a\x01a\x10\x96\x01\x1a\x02xy\x0a\x01b")
	got, err := ParseHealthCheckRequest(msg)
	testkit.Want(t, err == nil && string(got) == "b", "read as %q, %v", got, err)
}

func TestParseHealthCheckRequestRefuses(t *testing.T) {
	for _, msg := range []string{"\x0a", "\x0a\x05ab", "\xff", "\x0a\x01\xff", "\x0f\x00", "\x00", "\x10"} {
		got, err := ParseHealthCheckRequest([]byte(msg))
		testkit.Want(t, errors.Is(err, ErrHealthRequest), "%x was read as %q, %v", msg, got, err)
	}
}

func FuzzHealthRequest(f *testing.F) {
	for _, msg := range []string{"", "\x0a\x01a", "\x0a\x05ab", "\x0a\x01a\x10\x96\x01\x0a\x01b", "\x0b\x0c", "\x0a\x01\xff"} {
		f.Add([]byte(msg))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		service, err := ParseHealthCheckRequest(msg)
		var want healthpb.HealthCheckRequest
		if theirs := proto.Unmarshal(msg, &want); theirs == nil && (err != nil || string(service) != want.GetService()) {
			t.Errorf("%x was read as %q, %v; protobuf: %q", msg, service, err, want.GetService())
		} else if theirs != nil && err == nil && !bytes.Contains(msg, service) {
			t.Errorf("%x was read as %q; protobuf: %v", msg, service, theirs)
		}
	})
}

func TestAppendHealthCheckResponse(t *testing.T) {
	for _, status := range []HealthStatus{HealthUnknown, HealthServing, HealthNotServing, HealthServiceUnknown} {
		got := AppendHealthCheckResponse([]byte("x"), status)
		want, err := proto.Marshal(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_ServingStatus(status)})
		testkit.Must(t, err)
		prefix, err := ParsePrefix(got[1:])
		testkit.Want(t, err == nil && !prefix.Compressed && int(prefix.Length) == len(want) && bytes.Equal(got[1+PrefixLen:], want),
			"status %d became %x; want the message %x", status, got[1:], want)
	}
}

func TestHealthAllocatesNothing(t *testing.T) {
	dst, msg := make([]byte, 0, 16), []byte("\x0a\x01a")
	allocs := testing.AllocsPerRun(100, func() {
		_, err := ParseHealthCheckRequest(msg)
		testkit.Must(t, err)
		dst = AppendHealthCheckResponse(dst[:0], HealthServing)
	})
	testkit.Want(t, allocs == 0, "%v allocations", allocs)
}
