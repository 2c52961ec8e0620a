//go:build real || soak

package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A worker whose slots are all held gets no call: every call goes to the other
// one, and none waits behind a call that takes for ever.
func TestCallsPassAHeldWorker(t *testing.T) {
	const slots, calls = 2, 200
	t.Setenv("CABRANK_STREAM_SLOTS", strconv.Itoa(2*slots)) // all
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "2", "--slots", strconv.Itoa(slots), "--queue-timeout", "1m").Booted(2)
	conn := harness.Dial(t, c.Addr)
	holding, release := context.WithCancel(t.Context())
	defer release()
	held := holdWorker(holding, t, conn, 2*slots)

	numbers := make(chan int, calls)
	for number := range calls {
		numbers <- number
	}
	close(numbers)
	var callers sync.WaitGroup
	for range 2 * slots {
		callers.Go(func() {
			for number := range numbers {
				if got := harness.CallIo(t.Context(), conn, strconv.Itoa(number), time.Millisecond); got.Err != nil || got.Worker == held {
					t.Errorf("call %d: worker %q, %v; %s is held", number, got.Worker, got.Err, held)
				}
			}
		})
	}
	callers.Wait()
	release()
}

// holdWorker takes all slots of two workers by streams and frees those of one:
// the other, whose name it returns, stays held until ctx ends.
func holdWorker(ctx context.Context, t *testing.T, conn *grpc.ClientConn, slots int) string {
	t.Helper()
	byWorker := map[string][]grpc.BidiStreamingClient[workpb.ChatMessage, workpb.ChatMessage]{}
	held := ""
	for range slots {
		stream, err := workpb.NewWorkClient(conn).Chat(ctx)
		testkit.Must(t, err)
		header, err := stream.Header()
		testkit.Need(t, err == nil && len(header.Get("x-worker")) == 1, "header %v, %v", header, err)
		held = header.Get("x-worker")[0]
		byWorker[held] = append(byWorker[held], stream)
	}
	for worker, streams := range byWorker {
		testkit.Need(t, len(streams) == slots/2, "%d of %d streams at %s", len(streams), slots, worker)
		if worker == held {
			continue
		}
		for _, stream := range streams {
			testkit.Must(t, stream.CloseSend())
			_, err := stream.Recv()
			testkit.Need(t, errors.Is(err, io.EOF), "the end of a stream: %v", err)
		}
	}
	return held
}

// Health runs in the worker's own pool, so a busy Python worker answers no
// check (R6). It stays in the rank; cabrank answers health questions itself,
// and a thousand that watch it take no slot (R7).
func TestBusyIsNotSick(t *testing.T) {
	const (
		workers, slots = 2, 2
		heldFor        = 4 * time.Second // six checks that nobody answers
		watchers       = 1000
	)
	env := append(harness.LangEnv(t), "POOL_SIZE=2", "HEALTH_CHECK_INTERVAL=100ms", "HEALTH_CHECK_TIMEOUT=500ms")
	args := append([]string{"--transport", "unix", "--workers", "2", "--slots", "2", "--"}, harness.ReadLangExample(t, "python").Worker...)
	c := harness.StartCabrankEnv(t, env, args...).Booted(workers)
	watch := watchHealth(t, c.Addr, watchers)

	conn := harness.Dial(t, c.Addr)
	harness.CallIo(t.Context(), conn, "a call that ends: now its method may have all slots", time.Millisecond)
	held := make(chan harness.Outcome, workers*slots)
	for i := range workers * slots {
		go func() { held <- harness.CallIo(t.Context(), conn, strconv.Itoa(i), heldFor) }()
	}
	c.WaitMetric("cabrank_in_flight", workers*slots)
	readiness := c.WatchProbe("readiness")
	questions := 0
	for ended := 0; ended < workers*slots; {
		askHealth(t, conn)
		questions++
		select {
		case got := <-held:
			ended++
			testkit.Want(t, got.Err == nil, "a held call: %v", got.Err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	seen := readiness.Stop()
	testkit.Want(t, seen[http.StatusOK] != 0 && len(seen) == 1, "readiness by status while all slots were held: %v, want only 200", seen)
	lines := c.LogLines("worker takes no calls")
	testkit.Want(t, len(lines) == 0 && questions >= 10, "after %d health questions workers were taken out: %v", questions, lines)
	c.WaitMetric("cabrank_in_flight", 0) // with all watchers still there
	watch.want(healthpb.HealthCheckResponse_SERVING)
	c.Stop()
	watch.want(healthpb.HealthCheckResponse_NOT_SERVING) // said before the end (R17)
}

// askHealth wants an answer at once although nothing is free.
func askHealth(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
	defer cancel()
	reply, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	testkit.Need(t, err == nil && reply.GetStatus() == healthpb.HealthCheckResponse_SERVING,
		"Health/Check: %v, %v; want SERVING", reply.GetStatus(), err)
}

// healthWatch is a number of open Watch streams.
type healthWatch struct {
	t      *testing.T
	number int

	mu    sync.Mutex
	last  map[int]healthpb.HealthCheckResponse_ServingStatus // by stream; guarded by mu
	ended []error                                            // guarded by mu
}

// watchHealth opens n Watch streams, 200 on a connection, and returns when
// each has had its first answer.
func watchHealth(t *testing.T, addr string, n int) *healthWatch {
	t.Helper()
	w := &healthWatch{t: t, number: n, last: map[int]healthpb.HealthCheckResponse_ServingStatus{}}
	var conn *grpc.ClientConn
	for i := range n {
		if i%200 == 0 {
			conn = harness.Dial(t, addr)
		}
		stream, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		testkit.Must(t, err)
		go w.follow(i, stream) // ends with the test's context
	}
	testkit.Eventually(t, harness.Patience, fmt.Sprintf("%d Watch streams", n), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.last) == n
	})
	return w
}

func (w *healthWatch) follow(i int, stream grpc.ServerStreamingClient[healthpb.HealthCheckResponse]) {
	for {
		reply, err := stream.Recv()
		w.mu.Lock()
		if err != nil {
			w.ended = append(w.ended, err)
			w.mu.Unlock()
			return
		}
		w.last[i] = reply.GetStatus()
		w.mu.Unlock()
	}
}

// want waits until the last word of all streams is as wanted. Streams may have
// ended only after another word than SERVING.
func (w *healthWatch) want(status healthpb.HealthCheckResponse_ServingStatus) {
	w.t.Helper()
	testkit.Eventually(w.t, harness.Patience, fmt.Sprintf("%d Watch streams to say %v", w.number, status), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		saying := 0
		for _, last := range w.last {
			if last == status {
				saying++
			}
		}
		return saying == w.number
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if status == healthpb.HealthCheckResponse_SERVING && len(w.ended) > 0 {
		w.t.Errorf("%d Watch streams have ended, the first with %v", len(w.ended), w.ended[0])
	}
}

// A queue that is full and a wait that is too long are told apart, and both
// from a house without workers.
func TestWhyACallHadToWait(t *testing.T) {
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--slots", "1", "--queue", "1", "--queue-timeout", "3s").Booted(1)
	conn := harness.Dial(t, c.Addr)
	holder, stopHolding := context.WithCancel(t.Context())
	defer stopHolding()
	go harness.CallIo(holder, conn, "holder", harness.CallBound)
	c.WaitTaken(1)

	waiting := harness.GoIo(t.Context(), conn, "waiting", 0)
	c.WaitMetric("cabrank_queue_length", 1)
	harness.WantStatus(t, harness.CallIo(t.Context(), conn, "refused", 0).Err, codes.ResourceExhausted, "cabrank: queue full")
	harness.WantStatus(t, (<-waiting).Err, codes.ResourceExhausted, "cabrank: no free slot in time")

	// The caller's own deadline, before and after the call has a slot.
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	testkit.Want(t, harness.CallIo(short, conn, "short", 0).Err != nil, "a call without a slot was answered")
	stopHolding()
	c.WaitMetric("cabrank_in_flight", 0)
	testkit.Equal(t, c.Metric("cabrank_refusals_total", "reason", "queue_full"), 1, "refusals for a full queue")
}

// Without a worker that is ready calls wait, and are told so when they have waited too long.
func TestNoWorkerReady(t *testing.T) {
	c := harness.StartFault(t, harness.FaultWorker(t, "-boot", "1h"), "--workers", "1", "--queue-timeout", "200ms")
	conn := harness.Dial(t, c.Addr)
	harness.WantStatus(t, harness.CallIo(t.Context(), conn, "1", 0).Err, codes.Unavailable, "cabrank: no worker ready")
}
