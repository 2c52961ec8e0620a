package harness

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/demo/demopb"
)

// SoakTime is how long the soak runs; SOAK_TIME changes it.
func SoakTime(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("SOAK_TIME")
	if text == "" {
		return 2 * time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SOAK_TIME: %v", err)
	}
	return d
}

// SoakTally is what the callers of a soak have seen.
type SoakTally struct {
	mu       sync.Mutex
	Took     []time.Duration // of calls that succeeded
	Failures map[string]int  // by message
}

func (s *SoakTally) count(took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.Took = append(s.Took, took)
		return
	}
	if status.Code(err) == codes.Unavailable {
		s.Failures[status.Convert(err).Message()]++
		return
	}
	s.Failures[err.Error()]++
}

// SoakCaller makes calls one after the other until ctx ends.
func SoakCaller(ctx context.Context, t testing.TB, addr string, tally *SoakTally) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	greeter := demopb.NewGreeterClient(conn)
	for ctx.Err() == nil {
		began := time.Now()
		_, err := greeter.SayHello(context.WithoutCancel(ctx), &demopb.HelloRequest{Name: "soak"})
		tally.count(time.Since(began), err)
	}
}

// RandomSeed is CHAOS_SEED, to repeat a run, or the given one.
func RandomSeed(t testing.TB, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv("CHAOS_SEED")
	if text == "" {
		return otherwise
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("CHAOS_SEED: %v", err)
	}
	return seed
}
