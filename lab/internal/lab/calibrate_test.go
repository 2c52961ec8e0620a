package lab

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/caller"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// sleeper answers each call after the same time, says so in a header, and refuses more
// than its slots; it has no health service.
type sleeper struct {
	takes       time.Duration
	slots       int64
	under, most atomic.Int64
}

func (s *sleeper) serve(_ any, stream grpc.ServerStream) error {
	if name, _ := grpc.MethodFromServerStream(stream); name == echoPath {
		return status.Error(codes.Unimplemented, "no health service")
	}
	now := s.under.Add(1)
	defer s.under.Add(-1)
	s.most.Store(max(s.most.Load(), now))
	if now > s.slots {
		return status.Error(codes.ResourceExhausted, "no thread is free")
	}
	if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	timer := time.NewTimer(s.takes)
	defer timer.Stop()
	<-timer.C
	if err := stream.SetHeader(metadata.Pairs("x-took", s.takes.String())); err != nil {
		return err
	}
	return stream.SendMsg(&emptypb.Empty{})
}

// prepared is a service that can be measured.
func prepared(t *testing.T, s *sleeper, key string) *Prepared {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(s.serve))
	go func() { _ = server.Serve(l) }() // ends with Stop
	t.Cleanup(server.Stop)
	p := &Prepared{load: Load{Address: l.Addr().String(), Strategy: caller.Single()}}
	p.client, err = caller.New(caller.Options{
		Target: p.load.Address, Method: "/a.B/C", Strategy: caller.Single(), WorkerKey: key,
		Messages: func(uint64) [][]byte { return [][]byte{nil} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// All slots are busy at once and nobody waits; what an echo costs is taken off.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	s := &sleeper{takes: 20 * time.Millisecond, slots: 3}
	all, err := prepared(t, s, "").Calibrate(t.Context(), Calibration{Slots: []int{1, 3}, Workers: 1, Duration: time.Second}, nil)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for i, slots := range []int{1, 3} {
		c := all[i]
		if c.Slots != slots || c.Echo <= 0 || c.Failed != 0 || c.Service().At(0.5) < s.takes-c.Echo || c.Service().Count() < 3 {
			t.Errorf("%d slots: %+v, p50 %v of %d", slots, c, c.Service().At(0.5), c.Service().Count())
		}
	}
	if s.most.Load() != 3 {
		t.Errorf("%d calls at a time, want 3", s.most.Load())
	}
}

// The worker's own word counts, and the rest of a call is what it costs beside.
func TestCalibrateByTheWorkersWord(t *testing.T) {
	t.Parallel()
	s := &sleeper{takes: 10 * time.Millisecond, slots: 1}
	o := Calibration{Slots: []int{1}, Workers: 1, Warmup: 100 * time.Millisecond, Duration: time.Second, TimeKey: "x-took"}
	all, err := prepared(t, s, o.TimeKey).Calibrate(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := all[0]; !c.Told || c.Service().At(1).Round(100*time.Microsecond) != s.takes || c.Echo <= 0 {
		t.Errorf("%+v, up to %v", c, c.Service().At(1))
	}
	o.TimeKey = "other"
	if _, err := prepared(t, s, o.TimeKey).Calibrate(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), "--time-key other: an answer has no such header") {
		t.Error(err)
	}
}

// A worker with fewer slots is no place to measure.
func TestCalibrateTooManySlots(t *testing.T) {
	t.Parallel()
	s := &sleeper{takes: 10 * time.Millisecond, slots: 2}
	_, err := prepared(t, s, "").Calibrate(t.Context(), Calibration{Slots: []int{4}, Workers: 1, Duration: time.Second}, nil)
	if err == nil || !strings.Contains(err.Error(), "were not answered: ResourceExhausted, no thread is free; has each worker so many slots?") {
		t.Error(err)
	}
}
