package check

import (
	"context"
	"maps"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/schema"
)

const (
	// maxServices is how many services one endpoint can describe, and maxService how
	// long the name of each is, in bytes. One that says more describes nothing.
	maxServices = 256
	maxService  = 255
	// describeTimeout bounds a question to an endpoint about what it serves: it may wait
	// there behind the calls of an endpoint that takes one at a time.
	describeTimeout = 10 * time.Second
	// describeEvery is the time between two questions about the health of a service.
	describeEvery = 5 * time.Second
)

// Describer asks an endpoint which services it has, by reflection, and how it calls the
// health of each. The questions take no slot.
//
// Life: Describe, which returns when nothing more can be learned or its context ends.
type Describer struct {
	// Network, Address and Dial are as those of Options.
	Network, Address string
	Dial             func(ctx context.Context, network, address string) (net.Conn, error)
	// Tell gets what was learned, whenever it has changed: every service that the endpoint
	// describes, false for those that it calls NOT_SERVING. The map is not changed
	// afterwards. It is called from the goroutine of Describe.
	Tell func(services map[string]bool)

	every time.Duration // describeEvery, but for tests
}

// Describe asks until ctx ends, or until the endpoint has said all that it will ever say:
// that it has no reflection, or which services it has if it knows of the health of none.
// An endpoint that cannot be reached, or does not answer in time, is asked again.
func (d *Describer) Describe(ctx context.Context) {
	if d.every == 0 {
		d.every = describeEvery
	}
	conn, err := connection(&Options{Network: d.Network, Address: d.Address, Dial: d.Dial}, d.every, describeTimeout)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // nothing is lost with it
	names, found := d.list(ctx, conn)
	if !found {
		return
	}
	now := map[string]bool{}
	for _, name := range names {
		now[name] = true
	}
	asked := &served{client: grpc_health_v1.NewHealthClient(conn), of: names}
	for told := map[string]bool(nil); ; {
		asked.look(ctx, now)
		if ctx.Err() != nil {
			return
		}
		if told == nil || !maps.Equal(told, now) {
			told = maps.Clone(now)
			d.Tell(told)
		}
		if len(asked.of) == 0 || !pause(ctx, d.every) {
			return
		}
	}
}

// list has the names of the services; false: the endpoint will not say.
func (d *Describer) list(ctx context.Context, conn *grpc.ClientConn) ([]string, bool) {
	for {
		names, err := services(ctx, conn)
		switch status.Code(err) {
		case codes.OK:
			return names, isShort(names)
		case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Canceled:
		default:
			return nil, false
		}
		if !pause(ctx, d.every) {
			return nil, false
		}
	}
}

// isShort reports whether a list is within the bounds.
func isShort(names []string) bool {
	for _, name := range names {
		if name == "" || len(name) > maxService {
			return false
		}
	}
	return len(names) <= maxServices
}

// services asks by reflection.
func services(ctx context.Context, conn *grpc.ClientConn) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	talk := schema.NewReflection(func(ctx context.Context, path string) (schema.Stream, error) {
		return conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path)
	})
	defer talk.Close()
	return talk.Services(ctx)
}

// served asks for the health of services.
type served struct {
	client grpc_health_v1.HealthClient
	of     []string // those of whose health the endpoint has not refused to speak
}

// look brings the health of the services up to date. One that does not answer in time
// keeps what it has.
func (s *served) look(ctx context.Context, serving map[string]bool) {
	var known []string
	for _, name := range s.of {
		if strings.HasPrefix(name, "grpc.") {
			continue // of gRPC itself, as health and reflection are
		}
		asking, cancel := context.WithTimeout(ctx, describeTimeout)
		answer, err := s.client.Check(asking, &grpc_health_v1.HealthCheckRequest{Service: name})
		cancel()
		switch status.Code(err) {
		case codes.OK:
			serving[name] = answer.GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING
		case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Canceled:
		default: // it knows nothing of it, or says nothing to us
			serving[name] = true
			continue
		}
		known = append(known, name)
	}
	s.of = known
}

// pause reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
