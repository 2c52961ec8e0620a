package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/whatif"
)

// Calibration is how the times of a service are measured.
type Calibration struct {
	// Slots are the numbers of calls at a time of each worker: one measurement each.
	Slots []int
	// Workers is how many workers are behind the address.
	Workers int
	// Warmup comes before each measurement, which takes Duration.
	Warmup, Duration time.Duration
	// TimeKey is the header or trailer in which workers tell their time, as
	// whatif.ParseTime reads it; empty if they do not.
	TimeKey string
	// Seed draws the requests.
	Seed uint64
}

const (
	// echoPath is what an echo calls. A server without this service says so at once,
	// which is as good.
	echoPath = "/grpc.health.v1.Health/Check"
	// Echoes are made one at a time with pauses between them, as calls of handlers
	// that take some time are.
	echoTime  = 2 * time.Second
	echoPause = 5 * time.Millisecond
	// leastTimes is how many calls have to be answered.
	leastTimes = 20
	// mostFailed is the share of the calls that may fail.
	mostFailed = 0.01
)

// Calibrate measures what the service takes for a call while all slots are busy: so
// many callers call at once, and each waits for its answer. watch is that of Run.
//
// Errors: one line, also for a service that does not answer well.
func (p *Prepared) Calibrate(ctx context.Context, o Calibration, watch func(traffic.Live)) (all []whatif.Calibration, err error) {
	var echo time.Duration
	if o.TimeKey == "" {
		if echo, err = p.echo(ctx); err != nil {
			return nil, err
		}
	}
	for _, slots := range o.Slots {
		c, err := p.calibrate(ctx, o, slots, watch)
		if err != nil {
			return nil, err
		}
		if o.TimeKey == "" {
			c.Echo = echo
			c.Source += fmt.Sprintf(", less %v for an echo", echo.Round(10*time.Microsecond))
		}
		all = append(all, c)
	}
	return all, nil
}

func (p *Prepared) calibrate(ctx context.Context, o Calibration, slots int, watch func(traffic.Live)) (whatif.Calibration, error) {
	c := whatif.Calibration{Slots: slots, Workers: o.Workers}
	var told *toldTimes
	client := traffic.Client(p.client)
	if o.TimeKey != "" {
		told = newToldTimes(p.client, o.Warmup, byWord)
		client = told
	}
	used := watchService(p.load.PIDs, o.Warmup)
	record, err := p.together(ctx, o, slots, client, watch)
	processes := used.end()
	if err != nil {
		return c, err
	}
	for _, process := range processes {
		c.CPU += process.CPU / time.Duration(record.Calls.Answered.Count())
	}
	c.Times, c.Failed = record.Calls.Answered, record.Calls.Failed.Count()
	c.Source = fmt.Sprintf("%d calls, %d at a time", c.Times.Count(), slots*o.Workers)
	if told != nil {
		if told.err != nil {
			return c, fmt.Errorf("--time-key %s: %w", o.TimeKey, told.err)
		}
		c.Told, c.Times = true, told.times
		c.Echo = told.rest.At(0.5)
		c.Source += fmt.Sprintf(", as the worker told in %s", o.TimeKey)
	}
	return c, nil
}

// Beside measures what a call takes beside the time that is known of it by its number,
// with all slots busy: the median. echo is the part of it that is no matter of the
// worker.
//
// Errors: as those of Calibrate.
func (p *Prepared) Beside(ctx context.Context, o Calibration, known func(number uint64) time.Duration) (rest, echo time.Duration, err error) {
	if echo, err = p.echo(ctx); err != nil {
		return 0, 0, err
	}
	told := newToldTimes(p.client, o.Warmup, func(call traffic.Call, _ traffic.Answer) (time.Duration, error) {
		return known(call.Number), nil
	})
	if _, err = p.together(ctx, o, o.Slots[0], told, nil); err != nil {
		return 0, 0, err
	}
	return told.rest.At(0.5), echo, nil
}

// together has as many callers call as there are slots, each waiting for its answer.
func (p *Prepared) together(ctx context.Context, o Calibration, slots int, client traffic.Client, watch func(traffic.Live)) (*traffic.Record, error) {
	plan, err := traffic.Options{Callers: slots * o.Workers, Warmup: o.Warmup, Duration: o.Duration, Seed: o.Seed}.Plan()
	if err != nil {
		return nil, err
	}
	record, err := p.record(ctx, plan, client, watch)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return record, settled(record, slots*o.Workers)
}

// settled says in a line why a record is no calibration, or nil.
func settled(r *traffic.Record, callers int) error {
	answered := r.Calls.Answered.Count()
	if failed := r.Due - answered; float64(failed) > mostFailed*float64(r.Due) {
		why := ""
		if len(r.Failures) > 0 {
			why = fmt.Sprintf(": %s, %.100s", codes.Code(r.Failures[0].Code), r.Failures[0].Message)
		}
		return fmt.Errorf("with %d calls at a time %d of %d were not answered%s; has each worker so many slots?", callers, failed, r.Due, why)
	}
	if answered < leastTimes {
		return fmt.Errorf("%d calls were answered in %v, %d are needed: measure for longer", answered, r.Counted, leastTimes)
	}
	return nil
}

// record makes a load without a report.
func (p *Prepared) record(ctx context.Context, plan traffic.Plan, client traffic.Client, watch func(traffic.Live)) (*traffic.Record, error) {
	load := traffic.New(plan, client)
	done := make(chan struct{})
	var watching sync.WaitGroup
	if watch != nil {
		watching.Go(func() { follow(load, watch, done) }) // ends with the load
	}
	r, err := load.Run(ctx)
	close(done)
	watching.Wait()
	return r, err
}

// echo measures what a call costs that does nothing.
func (p *Prepared) echo(ctx context.Context) (time.Duration, error) {
	client, err := caller.New(caller.Options{
		Target: p.load.Address, Method: echoPath, Strategy: p.load.Strategy, Metadata: p.load.Metadata,
		Credentials: p.load.Credentials,
		Messages:    func(uint64) [][]byte { return [][]byte{nil} },
	})
	if err != nil {
		return 0, err
	}
	defer client.Close()
	plan, err := traffic.Options{Callers: 1, Think: echoPause, Warmup: echoTime / 4, Duration: echoTime}.Plan()
	if err != nil {
		return 0, err
	}
	r, err := p.record(ctx, plan, anyAnswer{client}, nil)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return 0, err
	}
	if r.Calls.Answered.Count() < leastTimes {
		return 0, fmt.Errorf("%s does not answer %s in time, from which the cost of an echo is known", p.load.Address, echoPath)
	}
	return r.Calls.Answered.At(0.5), nil
}

// anyAnswer takes whatever the server says for an answer.
type anyAnswer struct{ traffic.Client }

func (c anyAnswer) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	a := c.Client.Call(ctx, call)
	switch codes.Code(a.Code) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
	default:
		a.Code = 0
	}
	return a
}

// toldTimes takes apart how long calls take: what the worker needed, and the rest.
type toldTimes struct {
	client traffic.Client
	told   func(traffic.Call, traffic.Answer) (time.Duration, error)
	from   time.Time // the end of the warm-up

	lock  sync.Mutex
	times *latency.Histogram
	rest  *latency.Histogram
	err   error // the first
}

func newToldTimes(client traffic.Client, warmup time.Duration, told func(traffic.Call, traffic.Answer) (time.Duration, error)) *toldTimes {
	return &toldTimes{client: client, told: told, from: time.Now().Add(warmup), times: latency.New(), rest: latency.New()}
}

// byWord reads what the worker says, from where its name would be.
func byWord(_ traffic.Call, a traffic.Answer) (time.Duration, error) {
	if a.Worker == "" {
		return 0, errors.New("an answer has no such header and no such trailer")
	}
	return whatif.ParseTime(a.Worker)
}

// Call makes a call of the client.
func (t *toldTimes) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	began := time.Now()
	a := t.client.Call(ctx, call)
	if a.Code != 0 {
		return a
	}
	took := time.Since(began)
	d, err := t.told(call, a)
	a.Worker = "" // no name: there would be one for each call
	t.lock.Lock()
	defer t.lock.Unlock()
	if err != nil {
		if t.err == nil {
			t.err = err
		}
		return a
	}
	if began.After(t.from) {
		t.times.Record(d)
		t.rest.Record(took - d)
	}
	return a
}

// Messages are those of calls by their number, drawn by a seed.
//
// Errors: as those of Prepare.
func (p *Prepared) Messages(ctx context.Context, seed uint64) (func(number uint64) [][]byte, error) {
	data := p.load.Data
	data.Seed = seed
	requests, err := p.method.Requests(ctx, data)
	if err != nil {
		return nil, err
	}
	return requests.Messages, nil
}
