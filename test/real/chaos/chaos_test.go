//go:build real || soak

// Package chaos_test has everything happen at once, by chance and for long: faults,
// changes by the operator, load; docs/conformance.md says what holds.
package chaos_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Callers that leave, run out of time, upload and hang up, over workers that
// are killed and frozen: afterwards no slot and no place in the queue is lost,
// every slot can be had, and no call has failed in another way than those that
// were asked for.
func TestNoSlotIsLostInChaos(t *testing.T) {
	const (
		seed             = 42
		workers, slots   = 3, 4
		callers, seconds = 40, 6
	)
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", strconv.Itoa(workers), "--slots", strconv.Itoa(slots)).Booted(workers)
	ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
	defer cancel()
	var all sync.WaitGroup
	unexpected := make(chan error, 1)
	for caller := range callers {
		conn := harness.Dial(t, c.Addr)
		random := rand.New(rand.NewPCG(seed, uint64(caller)))
		all.Go(func() {
			for ctx.Err() == nil {
				if err := chaoticCall(t.Context(), conn, random); err != nil {
					select {
					case unexpected <- err:
					default:
					}
				}
			}
		})
	}
	disturb(ctx, c, rand.New(rand.NewPCG(seed, callers)))
	all.Wait()
	select {
	case err := <-unexpected:
		t.Errorf("a call ended with %v", err)
	default:
	}
	c.WaitMetric("cabrank_worker_state", workers, "state", "ready")
	c.WaitMetric("cabrank_in_flight", 0)
	c.WaitMetric("cabrank_queue_length", 0)
	wantAllSlots(t, c, workers*slots)
}

// chaoticCall makes one call of a random kind; the error is one that no kind
// may have.
func chaoticCall(ctx context.Context, conn *grpc.ClientConn, random *rand.Rand) error {
	work := time.Duration(random.IntN(20)) * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, harness.CallBound)
	defer cancel()
	switch random.IntN(5) {
	case 0: // leaves at any time
		time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, cancel)
		return unlessExpected(harness.CallIo(limited, conn, "leaves", work).Err, codes.Canceled)
	case 1: // has too little time
		short, end := context.WithTimeout(limited, time.Duration(1+random.IntN(20))*time.Millisecond)
		defer end()
		return unlessExpected(harness.CallIo(short, conn, "short", work).Err, codes.DeadlineExceeded)
	case 2: // uploads
		return unlessExpected(harness.Upload(limited, conn, strings.Repeat("u", random.IntN(300<<10))))
	case 3: // hangs up in the middle of a stream
		stream, err := workpb.NewWorkClient(conn).Chat(limited)
		if err == nil {
			_ = stream.Send(&workpb.ChatMessage{Text: strings.Repeat("h", random.IntN(300<<10))})
		}
		return nil
	default:
		return unlessExpected(harness.CallIo(limited, conn, "whole", work).Err)
	}
}

// unlessExpected returns nil for what may come: success, the codes of the kind,
// the loss of a worker.
func unlessExpected(err error, expected ...codes.Code) error {
	got := status.Convert(err)
	for _, code := range append(expected, codes.OK) {
		if got.Code() == code {
			return nil
		}
	}
	lost := got.Code() == codes.Unavailable && got.Message() == "cabrank: worker lost"
	// What grpc-go makes of a loss in the middle of a message.
	cut := got.Code() == codes.Internal && got.Message() == "unexpected EOF"
	if lost || cut {
		return nil
	}
	return err
}

// disturb kills or freezes a random worker now and then until ctx ends.
func disturb(ctx context.Context, c *harness.Cabrank, random *rand.Rand) {
	pause := time.NewTicker(500 * time.Millisecond)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		pids := c.ReadyPIDs("worker-" + strconv.Itoa(1+random.IntN(3)))
		pid := pids[len(pids)-1]
		if random.IntN(2) == 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be dead already
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		time.AfterFunc(300*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
}

// wantAllSlots takes as many calls at a time as there are slots.
func wantAllSlots(t *testing.T, c *harness.Cabrank, slots int) {
	t.Helper()
	conn := harness.Dial(t, c.Addr)
	ctx, release := context.WithCancel(t.Context())
	defer release()
	for range slots {
		stream, err := workpb.NewWorkClient(conn).Chat(ctx)
		testkit.Must(t, err)
		_, err = stream.Header()
		testkit.Need(t, err == nil, "a slot could not be had: %v", err)
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
