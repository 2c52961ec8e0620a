//go:build real

package real_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A worker with one thread gets the next call when it has finished the one
// before, and not a moment earlier: no call fails (R1, R2).
func TestRubyWithOneThreadTakesSequentialCalls(t *testing.T) {
	c := startLangCabrank(t, "ruby", "--workers", "1", "--slots", "1")
	failed := callCPU(t, dialLang(t, c.Addr), 10_000, 1)
	if len(failed) > 0 {
		t.Errorf("failed calls by status: %v", failed)
	}
	c.Stop()
}

// Ruby's pool refuses calls even when there are no more of them than threads;
// no caller of cabrank ever sees that (R1).
func TestRubyRefusalsStayInside(t *testing.T) {
	const slots = 8
	t.Run("without cabrank", func(t *testing.T) {
		addr := startLangWorker(t, "ruby", fmt.Sprintf("RAILS_MAX_THREADS=%d", slots))
		if failed := callCPU(t, dialLang(t, addr), 2000, 20); failed["ResourceExhausted: No free threads in thread pool"] == 0 {
			t.Errorf("this worker never refuses, so the test proves nothing: %v", failed)
		}
	})
	c := startLangCabrank(t, "ruby", "--workers", "1", "--slots", strconv.Itoa(slots))
	for _, inFlight := range []int{4, 8, 10, 20} {
		t.Run(fmt.Sprintf("%d in flight", inFlight), func(t *testing.T) {
			if failed := callCPU(t, dialLang(t, c.Addr), 2000, inFlight); len(failed) > 0 {
				t.Errorf("failed calls by status: %v", failed)
			}
		})
	}
	c.Stop()
}

// callCPU makes n short calls over one connection, inFlight at a time, and
// counts those that failed by code and message.
func callCPU(t *testing.T, conn *grpc.ClientConn, n, inFlight int) map[string]int {
	t.Helper()
	client := workpb.NewWorkClient(conn)
	var (
		callers sync.WaitGroup
		begun   atomic.Int64
		mu      sync.Mutex
	)
	failed := map[string]int{} // guarded by mu
	for range inFlight {
		callers.Go(func() {
			for begun.Add(1) <= int64(n) {
				if err := callCPUOnce(t.Context(), client); err != nil {
					mu.Lock()
					failed[status.Code(err).String()+": "+status.Convert(err).Message()]++
					mu.Unlock()
				}
			}
		})
	}
	callers.Wait()
	return failed
}

// An application's own RESOURCE_EXHAUSTED looks like a refusal, but it may have
// spent something: it is passed on and the call is not made again (R1).
func TestOwnResourceExhaustedRunsOnce(t *testing.T) {
	for _, lang := range langs {
		t.Run(lang+" worker", func(t *testing.T) {
			c := startLangCabrank(t, lang, "--workers", "1")
			client := workpb.NewWorkClient(dialLang(t, c.Addr))
			for calls := 1; calls <= 5; calls++ {
				if got := exhaust(t, client); got != strconv.Itoa(calls) {
					t.Fatalf("after %d calls the worker has run %s", calls, got)
				}
			}
			c.Stop()
		})
	}
}

// exhaust makes the worker spend its quota and returns how often it ever did.
func exhaust(t *testing.T, client workpb.WorkClient) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callBound)
	defer cancel()
	var trailer metadata.MD
	_, err := client.Fail(ctx, &workpb.FailRequest{
		Code: uint32(codes.ResourceExhausted), Message: "quota spent", Reason: "QUOTA",
	}, grpc.Trailer(&trailer))
	if got := status.Convert(err); got.Code() != codes.ResourceExhausted || got.Message() != "quota spent" {
		t.Fatalf("got %v, want the worker's own answer", err)
	}
	if executions := trailer.Get("x-executions"); len(executions) == 1 {
		return executions[0]
	}
	t.Fatalf("no x-executions in the trailer %v", trailer)
	return ""
}

// At a deadline a grpc-go worker resets its stream with CANCEL: without cabrank
// its callers are told CANCELLED for every fifth deadline or so, when the
// worker's clock is ahead of theirs. Behind cabrank, whose clock runs too, a
// caller that waits is told DEADLINE_EXCEEDED, whoever noticed first (R13).
func TestDeadlineAtTheWorkerIsNamed(t *testing.T) {
	const calls = 200 // fewer than the streams that a connection may have
	c := startLangCabrank(t, "go", "--workers", "1", "--slots", strconv.Itoa(calls))
	caller := testkit.DialCaller(t, c.Addr) // keeps no clock of its own
	caller.Greet()
	caller.Skip(testkit.Settings, testkit.WindowUpdate, testkit.Ping)
	for i := range calls {
		stream := uint32(2*i + 1)
		caller.WriteHeaders(stream, testkit.NoEnd,
			":method", "POST", ":scheme", "http", ":authority", c.Addr, ":path", workpb.Work_Io_FullMethodName,
			"content-type", "application/grpc", "te", "trailers", "grpc-timeout", fmt.Sprintf("%dm", 50+i))
		caller.WriteData(stream, testkit.End, grpcMessage(t, &workpb.IoRequest{Millis: 60_000}))
	}
	ends := map[string]int{}
	for range calls {
		ends[endOfCall(caller.WantFrame())]++
	}
	if want := "grpc-status 4"; ends[want] != calls {
		t.Errorf("calls by their end: %v, want %d times %s", ends, calls, want)
	}
	caller.Close()
	c.Stop()
}

// endOfCall names the status in a block of trailers, or any other frame.
func endOfCall(f testkit.Frame) string {
	if f.Kind == testkit.Headers && f.End {
		return "grpc-status " + testkit.Value(f.Fields, "grpc-status")
	}
	return fmt.Sprintf("%v %v", f.Kind, f.Code)
}

// grpcMessage is a message with its prefix: one byte for "not compressed", four
// for the length.
func grpcMessage(t *testing.T, m proto.Message) []byte {
	t.Helper()
	payload, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(payload))), payload...)
}

// So many cancels on one connection and a Node worker ends it, with everybody's
// calls on it: what R14 is for.
func TestNodeEndsConnectionsForCancels(t *testing.T) {
	worker := tap(t, startLangWorker(t, "node"))
	client := workpb.NewWorkClient(dialLang(t, worker.addr))
	for worker.goAways() == 0 {
		if err := cancelOnce(t.Context(), client); err != nil && worker.goAways() == 0 {
			t.Fatal(err)
		}
		if n := worker.resets(); n > 5000 {
			t.Fatalf("%d cancels and no GOAWAY: the test of cabrank proves nothing", n)
		}
	}
	t.Logf("GOAWAY after %d cancels", worker.resets())
}

// Behind cabrank it never comes to that (R14). The minute is in `make soak`.
func TestCancelsBehindCabrank(t *testing.T) { cancelStorm(t, 8*time.Second) }
