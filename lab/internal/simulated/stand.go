package simulated

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/internal/whatif"
	"github.com/cabrank/cabrank/lab/internal/work/workerpb"
)

// stand is an arm that does not run.
type stand struct {
	arms           *Arms
	learned        *learned
	policy         whatif.Policy
	workers, slots int
	at             string
}

func (s *stand) Target() string                   { return s.at }
func (s *stand) Caller(command []string) []string { return command }
func (s *stand) Usage() []result.Process          { return nil }
func (s *stand) Notes() []string                  { return s.learned.notes(s.slots) }

// Virtual implements trial.Virtual.
func (s *stand) Virtual() {}

func (s *stand) Do(context.Context, scenario.Event) (string, error) {
	return "", errors.New("nothing happens to what is simulated")
}

func (s *stand) Close() {
	s.arms.mu.Lock()
	defer s.arms.mu.Unlock()
	delete(s.arms.stands, s.at)
}

// The queue of `cabrank run` without flags.
const (
	queueLength  = 1000
	queueTimeout = 30 * time.Second
)

// generator simulates a load in place of making it.
type generator struct {
	stand *stand
	plan  traffic.Plan
	live  traffic.Live
}

func (g *generator) PID() int               { return 0 }
func (g *generator) Ready() (string, error) { return "simulated, nobody is called", nil }
func (g *generator) Begin(time.Time)        {}
func (g *generator) Stop()                  {}
func (g *generator) Live() traffic.Live     { return g.live }
func (g *generator) Close()                 {}

// Wait returns what the load comes to. Of several generators the first has all calls.
func (g *generator) Wait() (*agent.Answer, error) {
	first := g.plan.Part == 0
	g.plan.Part, g.plan.Parts = 0, 0
	answer := &agent.Answer{Took: g.plan.Length(), Cores: 1}
	var err error
	if !first {
		answer.Record, err = traffic.NewReplay(g.plan).Record()
		return answer, err
	}
	s := g.stand
	service, err := s.learned.service(g.plan.Seed)
	if err != nil {
		return nil, err
	}
	answer.Record, err = whatif.Replay{
		Plan: g.plan, Service: service, Echo: s.learned.echo, Workers: s.workers, Slots: s.slots, Policy: s.policy,
		Queue: whatif.Queue{Length: queueLength, Timeout: queueTimeout},
	}.Record()
	return answer, err
}

// service is what calls keep a slot for: what their requests ask for and what a worker
// takes beside it, or times of the calibration that are drawn by their number.
func (l *learned) service(seed uint64) (func(number uint64) time.Duration, error) {
	if !l.byWork {
		times := l.times.Service()
		return func(number uint64) time.Duration { return times.Draw(rand.New(rand.NewPCG(seed, number))) }, nil
	}
	work, err := l.work(context.Background(), seed)
	if err != nil {
		return nil, err
	}
	more := max(l.rest-l.echo, 0)
	return func(number uint64) time.Duration { return work(number) + more }, nil
}

// isWork reports whether a method is that of the worker that comes with the lab.
func isWork(name string) bool { return "/"+name == workerpb.Worker_Work_FullMethodName }

// work reads out of the request of a call how long it sleeps and computes.
func (l *learned) work(ctx context.Context, seed uint64) (func(number uint64) time.Duration, error) {
	messages, err := l.prepared.Messages(ctx, seed)
	if err != nil {
		return nil, err
	}
	return func(number uint64) time.Duration {
		var r workerpb.WorkRequest
		// They are of this type: the method is.
		_ = proto.Unmarshal(messages(number)[0], &r)
		return time.Duration((r.GetSleepMs() + r.GetCpuMs()) * float64(time.Millisecond))
	}, nil
}
