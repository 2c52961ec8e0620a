//go:build real || soak

package workers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// scaleService is the mean time that a call of a scaleLoad runs.
const scaleService = 50 * time.Millisecond

// phase is a time with one rate of calls.
type phase struct {
	rate float64 // per second
	last time.Duration
}

// scaleLoad starts calls at random moments that never wait for answers, as many
// independent callers do. It measures what each has waited: its time from when it
// was due, less what it ran.
type scaleLoad struct {
	calls sync.WaitGroup

	mu     sync.Mutex
	waits  []time.Duration
	failed map[codes.Code]int
}

// offer runs the phases one after the other and returns when all calls have ended.
func offer(t *testing.T, addr string, seed uint64, phases ...phase) *scaleLoad {
	t.Helper()
	l := &scaleLoad{failed: make(map[codes.Code]int)}
	client := workpb.NewWorkClient(harness.Dial(t, addr))
	random := rand.New(rand.NewPCG(seed, 1))
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	due, end, number := time.Now(), time.Now(), 0
	for _, p := range phases {
		for end = end.Add(p.last); ; number++ {
			due = due.Add(time.Duration(random.ExpFloat64() / p.rate * float64(time.Second)))
			if due.After(end) {
				due = end
				break
			}
			alarm.Reset(time.Until(due))
			<-alarm.C
			run := time.Duration(random.ExpFloat64() * float64(scaleService)).Truncate(time.Millisecond)
			id, at := fmt.Sprint("scale-", number), due
			l.calls.Go(func() { l.call(t.Context(), client, id, at, run) })
		}
	}
	l.calls.Wait()
	slices.Sort(l.waits)
	return l
}

func (l *scaleLoad) call(ctx context.Context, client workpb.WorkClient, id string, due time.Time, run time.Duration) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, harness.CallIDKey, id), harness.CallBound)
	defer cancel()
	_, err := client.Io(ctx, &workpb.IoRequest{Millis: uint32(run.Milliseconds())})
	wait := max(time.Since(due)-run, 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed[status.Code(err)]++
		return
	}
	l.waits = append(l.waits, wait)
}

// wait is a quantile of the waits.
func (l *scaleLoad) wait(q float64) time.Duration {
	if len(l.waits) == 0 {
		return 0
	}
	return l.waits[min(int(q*float64(len(l.waits))), len(l.waits)-1)]
}

// headcount adds up for how long there were how many workers.
type headcount struct {
	quit chan struct{}
	done chan struct{}

	// Read after stop.
	seconds float64
	most    int
	changes int
}

// countHeads looks at the workers twice a second until stop.
func countHeads(c *harness.Cabrank, o *harness.Operator) *headcount {
	h := &headcount{quit: make(chan struct{}), done: make(chan struct{})}
	go func() { // ended by stop
		defer close(h.done)
		look := time.NewTicker(500 * time.Millisecond)
		defer look.Stop()
		last, before := time.Now(), 0
		for {
			select {
			case <-h.quit:
				return
			case <-look.C:
			}
			now, err := o.Status()
			if err != nil {
				c.T.Error(err)
				return
			}
			at := time.Now()
			h.seconds += at.Sub(last).Seconds() * float64(len(now.Workers))
			h.most = max(h.most, len(now.Workers))
			if before > 0 && now.Wanted != before {
				h.changes++
			}
			last, before = at, now.Wanted
		}
	}()
	return h
}

func (h *headcount) stop() {
	close(h.quit)
	<-h.done
}

// Workers come with a step of the load before a call fails, and a load that stays
// the same keeps them. That they go again takes five minutes: the soak waits.
func TestWorkersFollowTheLoad(t *testing.T) {
	c := harness.StartControlled(t, harness.FaultWorker(t, "-boot", "300ms"), "--workers", "1-4", "--slots", "2")
	testkit.Want(t, c.Must("scale", "1") != "", "cabrank scale 1 said nothing")
	offer(t, c.Addr, 1, phase{12, 3 * time.Second}) // more than one worker needs, held by hand
	if s := c.Status(); s.Wanted != 1 {
		t.Errorf("%d workers after scale 1", s.Wanted)
	}
	c.Must("scale", "auto")
	// 2.2 slots are busy: 2.2 + 1.5 sqrt(2.2) of two per worker are wanted.
	load := offer(t, c.Addr, 2, phase{2, 2 * time.Second}, phase{44, 6 * time.Second})
	testkit.Want(t, len(load.failed) == 0, "calls failed: %v", load.failed)
	s := c.Status()
	testkit.Want(t, s.Wanted >= 3 && s.Ready >= 3, "after the step %d workers are wanted and %d ready, want 3 or 4", s.Wanted, s.Ready)
	if c.Metric("cabrank_workers_wanted") != float64(s.Wanted) || c.Metric("cabrank_scale_decisions_total") == 0 {
		t.Errorf("the metrics do not tell: %s", c.MetricsText())
	}
	heads := countHeads(c.Cabrank, c.Op)
	load = offer(t, c.Addr, 3, phase{44, 8 * time.Second})
	heads.stop()
	testkit.Want(t, len(load.failed) == 0, "calls failed: %v", load.failed)
	if now := c.Status(); now.Wanted < s.Wanted || heads.changes > 1 {
		t.Errorf("from %d to %d workers in %d changes while the load stayed the same", s.Wanted, now.Wanted, heads.changes)
	}
}

// After an upgrade (R20) the load is what it was, and so is the number of workers.
func TestUpgradeKeepsTheNumberOfWorkers(t *testing.T) {
	m := harness.StartManaged(t, nil, nil, slices.Concat([]string{"--transport", "unix", "--workers", "1-4", "--"}, harness.FaultWorker(t))...)
	for _, n := range []string{"3", "auto"} {
		testkit.Must(t, m.Control.Run(harness.Patience, "scale", n))
	}
	m.SignalTo(m.Main, syscall.SIGUSR2)
	m.WaitLog(harness.Patience, "took over")
	m.Main = m.Successor()
	if err := m.Control.Await(harness.Patience, "three workers", func(s *harness.OperatorStatus) bool { return s.PID == m.Main && s.Wanted == 3 && s.Ready == 3 }); err != nil {
		t.Error(err)
	}
}
