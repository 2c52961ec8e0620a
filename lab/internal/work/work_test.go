package work

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// start serves until the test ends.
func start(t *testing.T, o Options) (*Worker, WorkerClient) {
	t.Helper()
	o.Addr, o.Name = "127.0.0.1:0", "w7"
	w, err := New(o)
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	addrs, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() { ended <- w.Serve(ctx, func(a net.Addr) { addrs <- a }) }()
	conn, err := grpc.NewClient((<-addrs).String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	t.Cleanup(func() {
		conn.Close()
		cancel()
		err := <-ended
		testkit.Want(t, err == nil, "%v", err)
	})
	return w, NewWorkerClient(conn)
}

// took makes one call.
func took(t *testing.T, c WorkerClient, r *WorkRequest) time.Duration {
	t.Helper()
	began := time.Now()
	_, err := c.Work(t.Context(), r)
	testkit.Must(t, err)
	return time.Since(began)
}

func TestWork(t *testing.T) {
	w, c := start(t, Options{Full: Unlimited, SlowBy: 50 * time.Millisecond, SlowTimes: 3})
	var header metadata.MD
	reply, err := c.Work(t.Context(), &WorkRequest{Message: "hi"}, grpc.Header(&header))
	testkit.Need(t, err == nil && reply.GetMessage() == "hi" && reply.GetWorker() == "w7" && header.Get(NameKey)[0] == "w7",
		"%v, %v, %v", reply, header, err)
	if d := took(t, c, &WorkRequest{SleepMs: 20, CpuMs: 10}); d < 30*time.Millisecond {
		t.Errorf("20 ms of sleep and 10 ms of CPU took %v", d)
	}
	w.SetSlow(true)
	if d := took(t, c, &WorkRequest{SleepMs: 20}); d < 110*time.Millisecond {
		t.Errorf("three times 20 ms and 50 ms took %v", d)
	}
	w.SetSlow(false)
	for _, r := range []*WorkRequest{{SleepMs: -1}, {CpuMs: 1e9}} {
		_, err = c.Work(t.Context(), r)
		testkit.Want(t, status.Code(err) == codes.InvalidArgument, "%v: %v", r, err)
	}
}

// With one slot, the second call is refused, or waits.
func TestFull(t *testing.T) {
	for full, takes := range map[Full]time.Duration{Queue: 100 * time.Millisecond, Refuse: 2 * time.Second} {
		_, c := start(t, Options{Slots: 1, Full: full})
		var wait sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		began := time.Now()
		for range 3 {
			wait.Go(func() {
				_, err := c.Work(t.Context(), &WorkRequest{SleepMs: float64(takes.Milliseconds())})
				mu.Lock()
				defer mu.Unlock()
				if status.Code(err) == codes.ResourceExhausted {
					refused++
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if whole := time.Since(began); full == Queue && (refused > 0 || whole < 3*takes) || full == Refuse && refused != 2 {
			t.Errorf("%s: %d refused, all in %v", full, refused, whole)
		}
	}
}

// A call that waits for a slot ends at its deadline.
func TestDeadlineInQueue(t *testing.T) {
	w, c := start(t, Options{Slots: 1, Full: Queue})
	w.slots <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Work(ctx, &WorkRequest{})
	testkit.Want(t, status.Code(err) == codes.DeadlineExceeded, "%v", err)
	<-w.slots
}

// What waits in a worker that keeps its calls runs when its caller has long gone.
func TestKeep(t *testing.T) {
	w, c := start(t, Options{Slots: 1, Full: Keep})
	w.slots <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // time to get there
	defer cancel()
	_, err := c.Work(ctx, &WorkRequest{SleepMs: 1000})
	testkit.Want(t, status.Code(err) == codes.DeadlineExceeded, "%v", err)
	<-w.slots
	d := took(t, c, &WorkRequest{})
	testkit.Want(t, d >= 50*time.Millisecond, "the next call took %v, behind one of a second", d)
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"where?":                    {Full: Unlimited},
		`full "x": want queue`:      {Addr: "a:1", Full: "x"},
		"0 slots: want 1 or more":   {Addr: "a:1", Full: Queue},
		"must not be below 0, or a": {Addr: "a:1", Full: Unlimited, SlowTimes: -1},
	} {
		_, err := New(o)
		testkit.Refused(t, err, want)
	}
}
