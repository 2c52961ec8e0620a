package trial

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/cabrank/cabrank/internal/ranksim"
	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/work"
)

type startError struct{ cause error }

func (e *startError) Error() string { return e.cause.Error() }
func (e *startError) Unwrap() error { return e.cause }

// headStart is how long generators have to begin at the same moment.
const headStart = 20 * time.Millisecond

func (t *trial) block(ctx context.Context, i int) error {
	c := &t.cells[i]
	p := Progress{Block: i + 1, Blocks: len(t.cells), Arm: c.arm.Name, Load: c.load.Name, Round: c.round, Left: t.left(i)}
	t.tell(p)
	b := result.Block{Arm: c.arm.Name, Load: c.load.Name, Round: c.round, Order: c.order, Seed: c.seed, Began: time.Now()}
	record, err := t.measure(ctx, c, &b)
	if err != nil {
		return err
	}
	b.Took = time.Since(b.Began)
	if b.Raw, err = result.SaveRecord(t.Folder, len(t.run.Blocks)+1, record); err != nil {
		return err
	}
	t.run.Blocks = append(t.run.Blocks, b)
	t.run.Took = t.elapsed()
	p.Done, p.Left = &b, t.left(i+1)
	t.tell(p)
	return result.Save(t.Folder, t.run)
}

func (t *trial) tell(p Progress) {
	if t.Tell != nil {
		t.Tell(p)
	}
}

func (t *trial) measure(ctx context.Context, c *cell, b *result.Block) (*traffic.Record, error) {
	plan, err := c.load.Plan(c.seed)
	if err != nil {
		return nil, err
	}
	if c.arm.Front.Kind == scenario.FrontSimulated {
		return t.simulate(ctx, c, plan, b)
	}
	stand, err := t.Start(ctx, c.arm, c.load)
	if err != nil {
		return nil, &startError{err}
	}
	defer stand.Close()
	for _, note := range stand.Notes() {
		t.note(note)
	}
	crew, err := t.hire(c, stand, plan)
	if err != nil {
		return nil, err
	}
	defer crew.close()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	before := stand.Usage()
	noise := func() float64 { return 0 }
	if t.Noise != nil {
		noise = t.Noise()
	}
	at := time.Now().Add(headStart)
	undisturb := disturb(ctx, stand, c.load.Events, at.Add(plan.Warmup))
	record, busy, err := crew.run(ctx, at)
	b.Events = undisturb()
	if err != nil {
		return nil, err
	}
	b.Noise = noise()
	b.Processes = append(crew.processes, rig.Between(before, stand.Usage())...)
	b.Measure(record, workersAt(c.arm, c.load))
	t.against(c, plan, b, record)
	b.Marks = result.Marks(record, busy, b.Noise)
	if record.Cut {
		t.run.Cut = true
		b.Marks = append(b.Marks, "ended early")
	}
	return record, nil
}

// workersAt is how many workers there are in a block, those that are added included.
func workersAt(a *scenario.Arm, l *scenario.Load) int {
	n := cmp.Or(l.Workers, a.Workers.Count)
	for _, e := range l.Events {
		if e.Do == scenario.DoAdd {
			n++
		}
	}
	return n
}

// disturb does events at their moments since the counted part began. Bursts are in the
// plan; they are only told. end ends what is under way, and tells what was done.
func disturb(ctx context.Context, stand Stand, events []scenario.Event, from time.Time) (end func() []result.Event) {
	ctx, cancel := context.WithCancel(ctx)
	done := make([]result.Event, len(events)) // each is written by its own goroutine
	var doing sync.WaitGroup
	for i, e := range events {
		if e.Do == scenario.DoBurst {
			done[i] = result.Event{Did: e.String(), At: e.At, Took: e.For}
			continue
		}
		doing.Go(func() {
			if testbed.Wait(ctx, time.Until(from.Add(e.At))) != nil {
				return
			}
			began := time.Now()
			did, err := stand.Do(ctx, e)
			done[i] = result.Event{Did: did, At: began.Sub(from), Took: time.Since(began)}
			if err != nil {
				done[i].Err = err.Error()
			}
		})
	}
	return func() []result.Event {
		cancel()
		doing.Wait()
		return slices.DeleteFunc(done, func(e result.Event) bool { return e.Did == "" })
	}
}

// Generator makes calls in a process of its own: agent.Process is one, and explains the methods.
type Generator interface { //nolint:interfacebloat // the life of a process
	PID() int                       // that of the process
	Ready() (how string, err error) // waits until it can begin
	Begin(at time.Time)             // has it begin at a moment
	Stop()                          // has no more calls start
	Wait() (*agent.Answer, error)   // returns what it has come to
	Close()                         // ends it
}

// Hire starts generators for Options.Hire, as processes.
func Hire(command []string, job agent.Job) (Generator, error) { return agent.Start(command, job) }

type crew struct {
	all       []Generator
	processes []result.Process
}

// hire starts the generators of a block and waits until each can begin.
func (t *trial) hire(c *cell, stand Stand, plan traffic.Plan) (*crew, error) {
	n, client := t.generators(c.arm, c.load), c.arm.Client
	job, err := jobOf(t.Scenario, c.load, plan.Seed)
	if err != nil {
		return nil, err
	}
	job.Target, job.Strategy, job.DNSInterval, job.Way, job.Raw = stand.Target(), client.Connections, client.DNSInterval, client.Way, client.Raw
	if client.Connections == caller.PerCall {
		plan.Most = min(plan.Most, caller.PerCall.MostUnderWay()) // of each generator
	}
	var jobs []agent.Job
	for part := range n {
		plan.Part, plan.Parts = part, n
		job.Plan = plan
		jobs = append(jobs, job)
	}
	return t.crew(stand, c.arm.Client.Cores, jobs, func(how string) { t.note(fmt.Sprintf("%s: %s.", c.arm.Name, how)) })
}

// jobOf is what is called at a load.
func jobOf(s *scenario.Scenario, l *scenario.Load, seed uint64) (job agent.Job, err error) {
	name, data, messages := s.CallAt(l)
	job.Calls = caller.Calls{
		Method: name, Files: method.Files{Names: s.Proto, Imports: s.Imports},
		Data: method.Data{Name: "data", Text: []byte(data), Seed: seed, Messages: messages},
	}
	job.Gateway = caller.GatewayOptions{Path: s.HTTP.Path, Ready: s.HTTP.Ready, Seed: seed}
	job.WorkerKey = s.WorkerKey
	job.Metadata, err = caller.ParseMetadata(s.Metadata)
	return job, err
}

// crew starts a generator for each job and waits until each can begin, and has said how.
func (t *trial) crew(stand Stand, cores string, jobs []agent.Job, said func(how string)) (*crew, error) {
	hired := &crew{}
	for _, job := range jobs {
		p, err := t.Hire(pinned(cores, stand.Caller(t.Agent)), job)
		if err != nil {
			hired.close()
			return nil, err
		}
		hired.all = append(hired.all, p)
	}
	for _, p := range hired.all {
		how, err := p.Ready()
		if err != nil {
			hired.close()
			return nil, err
		}
		said(how)
	}
	return hired, nil
}

// pinned is a command that runs on some cores, all if there are none.
func pinned(cores string, command []string) []string {
	if cores == "" {
		return command
	}
	return append([]string{"taskset", "-c", cores}, command...)
}

// run has all of them begin at a moment, and merges what they come to. busy is the share
// of the cores that they have used together.
func (c *crew) run(ctx context.Context, at time.Time) (whole *traffic.Record, busy float64, err error) {
	unwatch := context.AfterFunc(ctx, func() { c.each(Generator.Stop) })
	defer unwatch()
	c.each(func(g Generator) { g.Begin(at) })
	answers := make([]*agent.Answer, len(c.all))
	var waiting errgroup.Group
	for i, p := range c.all {
		waiting.Go(func() (err error) {
			answers[i], err = p.Wait()
			return err
		})
	}
	if err := waiting.Wait(); err != nil {
		return nil, 0, err
	}
	for i, a := range answers {
		c.processes = append(c.processes, result.Process{
			Role: fmt.Sprintf("generator %d", i+1), PID: c.all[i].PID(), CPU: a.CPU, RSS: a.PeakRSS, PeakRSS: a.PeakRSS,
		})
		busy += a.Busy()
		if whole == nil {
			whole = a.Record
			continue
		}
		if err := whole.Merge(a.Record); err != nil {
			return nil, 0, err
		}
	}
	return whole, busy, nil
}

func (c *crew) each(do func(Generator)) {
	for _, g := range c.all {
		do(g)
	}
}

func (c *crew) close() {
	c.each(Generator.Stop) // all at once, before any is waited for
	c.each(Generator.Close)
}

// against holds a block against a perfect queue for the same calls, where there is one:
// for workers whose calls say how long they take, all alike, with a number of slots, in an
// open loop without deadlines and disturbances.
func (t *trial) against(c *cell, plan traffic.Plan, b *result.Block, r *traffic.Record) {
	w := c.arm.Workers
	slots := w.Slots * workersAt(c.arm, c.load)
	method, data, _ := t.Scenario.CallAt(c.load)
	if method != workMethod || w.Program != scenario.ProgramWorker || len(c.load.Events) > 0 {
		return
	}
	times, err := timesOf(data, plan.Seed)
	if err != nil {
		return // then nobody could have called
	}
	if best := idealQueue(plan, times, slots); best != nil {
		b.Against(r, best)
	}
}

// workMethod is the one whose calls say how long they take.
const workMethod = "cabrank.lab.v1.Worker/Work"

// timesOf tells how long the call of a number takes at an idle worker. It reads the template
// of the requests, as those who call do, with the seed of their plan.
//
// Errors: one line for a template that is none of the method's.
func timesOf(data string, seed uint64) (func(number uint64) time.Duration, error) {
	m, err := method.FromRegistry(protoregistry.GlobalFiles, workMethod)
	if err != nil {
		return nil, err
	}
	requests, err := m.Requests(method.Data{Name: "data", Text: []byte(data), Seed: seed})
	if err != nil {
		return nil, err
	}
	return func(number uint64) time.Duration {
		var request work.WorkRequest
		if messages := requests.Messages(number); len(messages) == 0 || proto.Unmarshal(messages[0], &request) != nil {
			return 0 // no such call was made, or it was encoded above
		}
		return time.Duration((request.GetSleepMs() + request.GetCpuMs()) * float64(time.Millisecond))
	}, nil
}

// idealQueue returns how long the counted calls of a plan take in one queue for so many
// slots, without any cost (M/G/k where arrivals are Poisson); nil for plans of which that
// cannot be told: in a closed loop answers decide when calls come, and with deadlines not all
// calls are served.
func idealQueue(p traffic.Plan, times func(number uint64) time.Duration, slots int) *latency.Histogram {
	if !p.Open() || p.Timeout > 0 || slots < 1 {
		return nil
	}
	p.Part, p.Parts = 0, 1 // all of them stand in one line
	var calls []ranksim.Call
	var counted []bool
	for a := range p.Arrivals() {
		calls = append(calls, ranksim.Call{Arrives: a.Due, Service: times(a.Number)})
		counted = append(counted, a.Counted)
	}
	all := latency.New()
	for i, r := range ranksim.FirstCome(calls, slots, ranksim.Handlers{}).Records {
		if counted[i] {
			all.Record(r.Sojourn)
		}
	}
	return all
}
