//go:build soak

package web_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	rounds = 21 // of calls by every door
	// mostApart is how far apart the deadlines may be that workers see, door by door.
	mostApart = 5 * time.Millisecond
	// soonGone is within which time a call is cancelled whose caller has left.
	soonGone = 100 * time.Millisecond
)

// watched is a worker in this process that tells by when its calls have to end, and when
// they were cancelled.
type watched struct {
	workpb.UnimplementedWorkServer

	until chan time.Time
	gone  chan time.Time
}

// see tells of a call, and waits for its cancellation if it is asked to pause.
func (w *watched) see(ctx context.Context, millis uint32) error {
	deadline, _ := ctx.Deadline()
	w.until <- deadline
	if millis == 0 {
		return nil
	}
	<-ctx.Done()
	w.gone <- time.Now()
	return ctx.Err()
}

// Io implements workpb.WorkServer.
func (w *watched) Io(ctx context.Context, r *workpb.IoRequest) (*workpb.IoReply, error) {
	return &workpb.IoReply{}, w.see(ctx, r.GetMillis())
}

// Count has sent a number when it pauses.
func (w *watched) Count(r *workpb.CountRequest, out grpc.ServerStreamingServer[workpb.Number]) error {
	if err := out.Send(&workpb.Number{Value: 1}); err != nil {
		return err
	}
	return w.see(out.Context(), r.GetPauseMillis())
}

// startWatched starts cabrank before such a worker.
func startWatched(t *testing.T) (*watched, *harness.Cabrank) {
	t.Helper()
	w := &watched{until: make(chan time.Time, 1), gone: make(chan time.Time, 1)}
	ln := testkit.Listen(t)
	server, served := grpc.NewServer(), make(chan error, 1)
	workpb.RegisterWorkServer(server, w)
	go func() { served <- server.Serve(ln) }() // ends with Stop
	t.Cleanup(func() { server.Stop(); <-served })
	text := fmt.Sprintf("upstreams: [%q]\ndescriptors: [%s]\nmethods: {%sIo: {idempotent: true}}\nsocket: {path: [/ws], methods: [%s*]}\n", ln.Addr(), descriptors(t), workService, workService)
	config := harness.WriteFile(t, "cabrank.yml", text)
	c := harness.StartCabrank(t, "--config", config, "--slots", "1000") // a worker may be at a call that was cancelled
	c.WaitReady(harness.Patience)
	return w, c
}

// next is what a worker tells.
func next(t *testing.T, of <-chan time.Time, what string) time.Time {
	t.Helper()
	return testkit.Take(t, of, harness.Patience, "the worker sees no %s", what)
}

// spread is times from the shortest to the longest.
type spread []time.Duration

func (s spread) median() time.Duration { return s[len(s)/2] }

func (s spread) String() string {
	return fmt.Sprintf("%.2f\t%.2f\t%.2f", ms(s[0]), ms(s.median()), ms(s[len(s)-1]))
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// spreadOf is that of a few times.
func spreadOf(n int, one func() time.Duration) (s spread) {
	for range n {
		s = append(s, one())
	}
	slices.Sort(s)
	return s
}

// A call with a timeout has the same deadline at its worker whatever door it has come by: what
// doors take of it, at the median, differs by 5 ms at most.
func TestDeadlinesByEveryDoor(t *testing.T) {
	w, c := startWatched(t)
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, "door\tfrom the call to what its deadline counts from, ms: least\tmedian\tmost\t")
	var medians spread
	for _, way := range waysTo(c.Addr) {
		call := way.open(t)
		once := func() time.Duration {
			began := time.Now()
			ctx, cancel := context.WithDeadline(t.Context(), began.Add(timeout))
			defer cancel()
			err := call(ctx, false, 0)
			testkit.Need(t, err == nil, "%s: %v", way.name, err)
			return next(t, w.until, "deadline").Sub(began) - timeout
		}
		once() // which makes connections
		late := spreadOf(rounds, once)
		fmt.Fprintf(rows, "%s\t%v\t\n", way.name, late)
		medians = append(medians, late.median())
	}
	rows.Flush()
	apart := slices.Max(medians) - slices.Min(medians)
	t.Logf("\n%sthe medians are %.2f ms apart", table.String(), ms(apart))
	testkit.Want(t, apart <= mostApart, "the medians are %v apart, at most %v may they be", apart, mostApart)
	c.Stop()
}

// A caller that leaves, by a reset of HTTP/2 or the end of its connection, has the call of its
// worker cancelled within 100 ms: by every door, whether it waits for an answer or for more of
// one.
func TestCallersLeaveByEveryDoor(t *testing.T) {
	w, c := startWatched(t)
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, "door\tcancelled after, ms: least\tmedian\tmost\t")
	for _, way := range waysTo(c.Addr) {
		for _, stream := range []bool{false, true} {
			if stream && way.onlyUnary {
				continue
			}
			kind := map[bool]string{false: "unary", true: "stream"}[stream]
			took := spreadOf(rounds, func() time.Duration {
				call := way.open(t)
				ctx, leave := context.WithTimeout(t.Context(), timeout)
				defer leave()
				ended := make(chan error, 1)
				go func() { ended <- call(ctx, stream, 1) }() // ends with ctx
				next(t, w.until, "call")
				left := time.Now()
				leave()
				took := next(t, w.gone, "cancellation").Sub(left)
				err := <-ended
				testkit.Want(t, err != nil, "%s, %s: an answer", way.name, kind)
				return took
			})
			fmt.Fprintf(rows, "%s, %s\t%v\t\n", way.name, kind, took)
			if most := took[len(took)-1]; most > soonGone {
				t.Errorf("%s, %s: a call was cancelled after %v, at most %v may it take", way.name, kind, most, soonGone)
			}
		}
	}
	rows.Flush()
	t.Logf("\n%s", table.String())
	c.WaitMetric("cabrank_in_flight", 0)
	c.Stop()
}
