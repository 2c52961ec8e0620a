package callee

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/redislink"
)

const (
	// finishWithin bounds what Run does after its context has ended.
	finishWithin = 20 * time.Second

	// slots is how many a Cluster has, clusterParts in how many parts they are divided for
	// results.
	slots, clusterParts = 1 << 14, 16
)

// Callee takes calls from Redis, has functions answer them, and stores the results.
//
// Life: New, Handle any number of times, Run; or Start and Shutdown. Once each.
// Concurrency: Shutdown and Stats may be called from anywhere.
type Callee struct {
	options   Options
	functions map[string]*function
	fault     error // of Handle
	id        string

	client  *redislink.Client
	sources []source
	senders []*sender // one; in a Cluster one for each part of its slots
	places  *places
	running running
	loops   sync.WaitGroup // what takes calls, and looks after other callees
	lives   sync.WaitGroup // what says that this one lives, and hears of its calls
	calls   sync.WaitGroup // functions that have not returned, and calls whose result is not stored

	taking  context.Context //nolint:containedctx // ends when no more calls are taken
	stop    context.CancelFunc
	working context.Context //nolint:containedctx // ends when calls are cut
	cut     context.CancelFunc
	ended   chan struct{} // closed when Shutdown is over

	living context.Context //nolint:containedctx // ends when no calls are left
	die    context.CancelFunc

	state  sync.Mutex // guards what follows
	began  bool
	ending bool

	counts struct {
		taken, answered, failed, expired, panicked, givenBack, ended atomic.Uint64
	}
}

// New returns a Callee that does nothing yet.
func New(options Options) *Callee {
	if options.Workers <= 0 {
		options.Workers = 100
	}
	if options.DeadAfter <= 0 {
		options.DeadAfter = 5 * time.Second
	}
	options.DeadAfter = max(options.DeadAfter, leastSilence)
	c := &Callee{
		options: options, functions: map[string]*function{}, id: strings.ToLower(rand.Text()),
		places: newPlaces(options.Workers), running: running{calls: map[string]*Call{}}, ended: make(chan struct{}),
	}
	c.taking, c.stop = context.WithCancel(context.Background())
	c.living, c.die = context.WithCancel(context.Background())
	c.working, c.cut = context.WithCancel(context.Background())
	return c
}

func (c *Callee) log() *slog.Logger {
	if c.options.Log == nil {
		return slog.Default()
	}
	return c.options.Log
}

// Run is Start, and Shutdown when ctx ends, which may take 20 s. It returns also when
// somebody else has called Shutdown.
//
// Errors: those of both.
func (c *Callee) Run(ctx context.Context) error {
	if err := c.Start(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
		defer cancel()
		return c.Shutdown(finish)
	case <-c.ended:
		return nil
	}
}

// Start connects, and takes calls until Shutdown.
//
// Errors: one line, of the address, of Redis, or of a function that cannot be served.
func (c *Callee) Start() error {
	c.state.Lock()
	defer c.state.Unlock()
	switch {
	case c.began || c.ending:
		return errors.New("callee: it was started before, or has ended")
	case c.fault != nil:
		return c.fault
	case len(c.functions) == 0:
		return errors.New("callee: no functions")
	}
	client, err := redislink.Open(c.options.Redis, c.log())
	if err != nil {
		return err
	}
	c.client = client
	if c.sources, err = c.groups(); err != nil {
		c.client.Close()
		return err
	}
	c.began = true
	c.senders = []*sender{newSender(c)}
	for c.client.IsCluster() && len(c.senders) < clusterParts {
		c.senders = append(c.senders, newSender(c))
	}
	c.lives.Go(func() { c.listen(c.living) })
	for _, source := range c.sources {
		if k, ok := source.(*keeper); ok {
			k.live(c.working) // before it takes anything
			c.lives.Go(func() { k.often(c.living, k.live) })
			c.loops.Go(func() { k.often(c.taking, k.look) })
		}
		l := &loop{source: source, callee: c}
		c.loops.Go(l.run)
	}
	return nil
}

// groups joins the functions whose calls one command can take: all, but in a Cluster those
// of one slot. A function that is kept has a keeper of its own.
func (c *Callee) groups() (all []source, err error) {
	bySlot := map[uint16]*group{}
	for _, uri := range slices.Sorted(maps.Keys(c.functions)) {
		slot, err := c.slot(uri)
		if err != nil {
			return nil, err
		}
		if f := c.functions[uri]; f.kept {
			f.keeper = newKeeper(c, uri)
			all = append(all, f.keeper)
			continue
		}
		g := bySlot[slot]
		if g == nil {
			g = &group{callee: c}
			bySlot[slot] = g
			all = append(all, g)
		}
		g.uris = append(g.uris, uri)
	}
	return all, nil
}

// slot is where a Cluster has the calls of a URI; without one, all are in one place.
func (c *Callee) slot(uri string) (uint16, error) {
	if !c.client.IsCluster() {
		return 0, nil
	}
	list := c.client.B().Llen().Key(redislink.CallsKey(uri)).Build()
	timeout := c.client.B().Get().Key(redislink.CallTimeoutKey(uri, c.id)).Build()
	if list.Slot() != timeout.Slot() {
		return 0, fmt.Errorf("callee: %.100q cannot be served in a Cluster: its keys are in two slots", uri)
	}
	return list.Slot(), nil
}

// Shutdown takes no more calls, and finishes those that it has. If ctx ends before, the
// contexts of their functions end.
//
// Errors: how many calls were cut.
// Concurrency: calls beside the first one wait for it, and return nil.
func (c *Callee) Shutdown(ctx context.Context) error {
	c.state.Lock()
	first, began := !c.ending, c.began
	c.ending = true
	c.state.Unlock()
	if !first {
		<-c.ended
		return nil
	}
	defer close(c.ended)
	defer c.cut()
	c.stop()
	if !began {
		return nil
	}
	return c.finish(ctx)
}

// finish waits for what was taken.
func (c *Callee) finish(ctx context.Context) (err error) {
	each(c.sources, source.wake)
	done := make(chan struct{})
	go func() { // ends with the calls, whose contexts end
		c.loops.Wait()
		c.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("callee: calls that were cut: %d", c.Stats().Running)
		c.cut()
		c.loops.Wait() // their connections are closed
	}
	c.die()
	c.lives.Wait()
	for _, s := range c.senders {
		s.stop()
	}
	each(c.sources, source.clean)
	c.client.Close()
	return err
}

// each asks something of Redis for all sources, for a second at most: it is gone, maybe.
func each(sources []source, do func(source, context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, s := range sources {
		do(s, ctx)
	}
}

// sender returns who stores what is where a key is. In a Cluster nodes have slots that follow
// each other, mostly: one that is silent holds up the results of a part of them.
func (c *Callee) sender(key string) *sender {
	if len(c.senders) == 1 {
		return c.senders[0]
	}
	command := c.client.B().Llen().Key(key).Build() // which knows the slot of its key
	return c.senders[int(command.Slot())*len(c.senders)/slots]
}

// Stats returns what it has done.
func (c *Callee) Stats() Stats {
	n := &c.counts
	s := Stats{
		Answered: n.answered.Load(), Failed: n.failed.Load(), Expired: n.expired.Load(),
		Panicked: n.panicked.Load(), GivenBack: n.givenBack.Load(),
	}
	ended := n.ended.Load()
	s.Taken = n.taken.Load()
	s.Running = int(s.Taken - min(ended, s.Taken))
	return s
}

// drop ends a call whose time was over before it was answered.
func (c *Callee) drop(call *Call) {
	c.lose(call)
	call.leave()
}

// lose ends a call whose result nobody gets.
func (c *Callee) lose(call *Call) {
	c.counts.expired.Add(1)
	if call.keeper() != nil && !call.cut() {
		c.sender(redislink.CallsKey(call.URI)).add(stored{call: call, over: true})
		return
	}
	c.settle(call) // clean gives back what was cut
}

// settle is told that nothing more will be done for a call.
func (c *Callee) settle(call *Call) {
	if k := call.keeper(); k != nil {
		k.forgot(call)
	}
	c.counts.ended.Add(1)
	c.calls.Done()
}
