//go:build real || soak

package languages_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// An application's own RESOURCE_EXHAUSTED looks like a refusal, but it may have
// spent something: it is passed on and the call is not made again (R1).
func TestOwnResourceExhaustedRunsOnce(t *testing.T) {
	for _, lang := range harness.Langs() {
		t.Run(lang+" worker", func(t *testing.T) {
			c := harness.StartLangCabrank(t, lang, "--workers", "1")
			client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
			for calls := 1; calls <= 5; calls++ {
				got := exhaust(t, client)
				testkit.Need(t, got == strconv.Itoa(calls), "after %d calls the worker has run %s", calls, got)
			}
			c.Stop()
		})
	}
}

// exhaust makes the worker spend its quota and returns how often it ever did.
func exhaust(t *testing.T, client workpb.WorkClient) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
	defer cancel()
	var trailer metadata.MD
	_, err := client.Fail(ctx, &workpb.FailRequest{
		Code: uint32(codes.ResourceExhausted), Message: "quota spent", Reason: "QUOTA",
	}, grpc.Trailer(&trailer))
	got := status.Convert(err)
	testkit.Need(t, got.Code() == codes.ResourceExhausted && got.Message() == "quota spent", "got %v, want the worker's own answer", err)
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
	c := harness.StartLangCabrank(t, "go", "--workers", "1", "--slots", strconv.Itoa(calls))
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
	want := "grpc-status 4"
	testkit.Want(t, ends[want] == calls, "calls by their end: %v, want %d times %s", ends, calls, want)
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
	testkit.Must(t, err)
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(payload))), payload...)
}

// So many cancels on one connection and a Node worker ends it, with everybody's
// calls on it: what R14 is for.
func TestNodeEndsConnectionsForCancels(t *testing.T) {
	worker := harness.Tap(t, harness.StartLangWorker(t, "node"))
	client := workpb.NewWorkClient(harness.Dial(t, worker.Addr))
	for worker.GoAways() == 0 {
		err := harness.CancelOnce(t.Context(), client)
		testkit.Need(t, err == nil || worker.GoAways() != 0, "%v", err)
		n := worker.Resets()
		testkit.Need(t, n <= 5000, "%d cancels and no GOAWAY: the test of cabrank proves nothing", n)
	}
	t.Logf("GOAWAY after %d cancels", worker.Resets())
}

// Behind cabrank it never comes to that (R14).
func TestCancelsBehindCabrank(t *testing.T) { harness.CancelStorm(t, time.Minute) }

// A worker that takes the number of its threads from CABRANK_SLOTS has one for each
// call that it gets: more streams than any number it could have of its own are all
// answered while all are open.
func TestThreadsFollowSlots(t *testing.T) {
	const slots = 12
	t.Setenv("CABRANK_STREAM_SLOTS", strconv.Itoa(slots)) // all
	for _, lang := range []string{"python", "ruby"} {
		t.Run(lang, func(t *testing.T) {
			c := harness.StartLangCabrank(t, lang, "--workers", "1", "--slots", strconv.Itoa(slots), "--transport", "unix")
			ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
			defer cancel()
			client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
			for i := range slots {
				stream, err := client.Chat(ctx)
				if err == nil {
					err = stream.Send(&workpb.ChatMessage{Text: "there?"})
				}
				if err == nil {
					_, err = stream.Recv()
				}
				testkit.Need(t, err == nil, "stream %d of %d: %v", i+1, slots, err)
			}
			cancel()
			c.Stop()
		})
	}
}

// A rolling restart of workers in every language, threaded and asynchronous,
// under calls and streams that never pause: none of them fails, and every worker
// has been replaced at its end.
func TestRollsLoseNoCallInAnyLanguage(t *testing.T) {
	for _, lang := range harness.Langs() {
		t.Run(lang+" worker", func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "control.sock")
			c := harness.StartLangCabrank(t, lang, "--workers", "2", "--min-ready", "2", "--transport", "unix", "--control", socket)
			op := harness.NewOperator(t, socket)
			client := workpb.NewWorkClient(harness.Dial(t, c.Addr))
			load := harness.StartLoop(t, 3, harness.Working(client, harness.CallCPUOnce))
			streams := harness.StartLoop(t, 1, harness.Working(client, harness.StreamOnce))
			for range 2 {
				testkit.Must(t, op.Run(2*harness.LangBound, "restart"))
			}
			load.WantNoFailure()
			streams.WantNoFailure()
			state, err := op.Status()
			testkit.Must(t, err)
			testkit.Want(t, state.Generation == 3 && state.Ready == 2,
				"generation %d, %d ready; want 3 and 2", state.Generation, state.Ready)
			c.Stop()
		})
	}
}
