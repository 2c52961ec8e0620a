package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/process"
	"github.com/cabrank/cabrank/internal/sink"
)

// stuckAfter is how long a worker's goroutine may miss its beats before the supervisor
// counts as stuck. The goroutine ticks every 250 ms and never blocks for more than 1 s
// by itself; a machine that swaps makes it slower.
const stuckAfter = 10 * time.Second

// Supervisor keeps the wanted number of workers running, and replaces them.
//
// Shape: New, Start once, Stop; it cannot be started again.
//
// Concurrency: all methods may be called from any goroutine, Stop also while
// Start runs. Inside, each worker's state belongs to one goroutine (worker.run),
// which alone calls the Registry about it. The few things that workers share have
// locks of their own: addresses (ports.mu), process.Children, the sink's, board.mu. All are
// leaves. No function of the caller is called under a lock.
type Supervisor struct {
	// Set by New, never changed.
	options   Options // as New got them; see settings
	began     time.Time
	addresses addresses
	children  *process.Children
	hooks     *hookRunner
	ooms      *oomWatch
	sink      *sink.Sink

	latest   atomic.Pointer[Options]  // see settings
	overview atomic.Pointer[Overview] // written by the foreman
	weights  atomic.Pointer[weights]  // written by weigh; nil while no limit needs them
	orders   chan func(*foreman)      // run by the foreman between two looks
	nudge    chan struct{}            // capacity 1: a worker has something for the foreman

	frozen   chan struct{} // closed by the first Freeze
	stopping chan struct{} // closed by the first Stop
	killing  chan struct{} // closed when the first context of a Stop ends
	started  chan struct{} // closed when Start has finished
	ended    chan struct{} // closed when nothing is left

	running   sync.WaitGroup // goroutines of worker.run, and the foreman
	helpers   sync.WaitGroup // probers and readers of output; each ends within drainLimit of its process
	everReady atomic.Bool
	beat      atomic.Int64 // of the foreman: time since began of its last look, or noBeat
	killOnce  sync.Once
	coldOnce  sync.Once // of Freeze
	blindOnce sync.Once // of process.ErrBlind

	exposedOnce sync.Once     // of warnIfExposed
	quietOnce   sync.Once     // of hintIfQuiet
	sharedMark  atomic.Uint64 // of warnIfShared: a hash of the last look
	sharedLook  atomic.Int64  // of warnIfShared: time since began of the last look; MaxInt64 after the warning

	workersMu sync.Mutex
	workers   []*worker // by number; it only grows

	mu      sync.Mutex
	begun   bool // Start was called
	stopped bool // Stop was called
}

// New makes a supervisor. It touches nothing outside: no file, no process, no goroutine.
// The error is one of the system.
func New(options Options) (*Supervisor, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	s := &Supervisor{
		options: options, began: time.Now(),
		addresses: newAddresses(&options), ooms: newOOMWatch(), sink: sink.New(options.Output.Writer),
		orders: make(chan func(*foreman)), nudge: make(chan struct{}, 1),
		frozen: make(chan struct{}), stopping: make(chan struct{}), killing: make(chan struct{}),
		started: make(chan struct{}), ended: make(chan struct{}),
	}
	s.beat.Store(noBeat)
	s.latest.Store(&options)
	s.overview.Store(&Overview{Wanted: options.Count.N, Generation: 1})
	s.children = process.New(options.Executable, maxPlaces, s.stopping, options.Logger)
	s.hooks = &hookRunner{children: s.children}
	for number := range options.Count.N {
		s.workerAt(number)
	}
	return s, nil
}

// settings returns the present options. The options that Configure cannot change are
// in Supervisor.options, and those that a process was started with in its version.
func (s *Supervisor) settings() *Options { return s.latest.Load() }

// Configure changes the options. Options for the watching and the replacement of
// workers count at once; options with which a process is started (Command, …) count
// from the next roll on. Transport, StartPort, Slots and the connections to the rest of
// cabrank (Output, Logger, Rank, Activity, LastPage, Executable) stay as they were. Count
// is changed by Scale.
func (s *Supervisor) Configure(options Options) {
	o := &s.options
	options.Transport, options.StartPort, options.Slots = o.Transport, o.StartPort, o.Slots
	options.Output, options.Logger, options.Rank, options.Activity, options.Executable = o.Output, o.Logger, o.Rank, o.Activity, o.Executable
	options.LastPage = o.LastPage
	s.latest.Store(&options)
	s.wake()
}

// workerAt returns the worker with a number, and makes it if it does not exist yet.
func (s *Supervisor) workerAt(number int) *worker {
	s.workersMu.Lock()
	defer s.workersMu.Unlock()
	for next := len(s.workers); next <= number; next++ {
		s.workers = append(s.workers, newWorker(s, next, "worker-"+strconv.Itoa(next+1)))
	}
	return s.workers[number]
}

// allWorkers returns all workers that have ever existed, by number.
func (s *Supervisor) allWorkers() []*worker {
	s.workersMu.Lock()
	defer s.workersMu.Unlock()
	return slices.Clip(s.workers)
}

// wake lets the foreman look around.
func (s *Supervisor) wake() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Start starts the keeper and all workers and returns when worker-1's program
// has been executed; no worker is ready yet then.
//
// Errors: the first exec failed, or it had no address (ports, socket directory), or the
// keeper cannot run, or ctx or Stop ended the start. Nothing is left running then. Later
// failures are retried and only logged. ctx bounds the start, not the life of the
// workers.
func (s *Supervisor) Start(ctx context.Context) error {
	s.mu.Lock()
	usable := !s.begun && !s.stopped
	s.begun = s.begun || usable
	s.mu.Unlock()
	if !usable {
		return errors.New("worker: Start after Start or Stop")
	}
	err := s.start(ctx)
	close(s.started)
	if err != nil {
		s.Stop(ctx)
	}
	return err
}

func (s *Supervisor) start(ctx context.Context) error {
	if err := s.addresses.open(); err != nil {
		return err
	}
	s.sink.Open()
	if err := s.children.Open(); err != nil {
		return err
	}
	// Start waits for the first worker: its error should be seen at once. The foreman
	// starts the others.
	boss, first := newForeman(s), make(chan error, 1)
	boss.start(0, first)
	select {
	case err := <-first:
		if err != nil {
			return fmt.Errorf("start %s: %w", s.workerAt(0).name, err)
		}
	case <-ctx.Done():
		return fmt.Errorf("start %s: %w", s.workerAt(0).name, context.Cause(ctx))
	}
	s.running.Go(boss.run)
	s.running.Go(s.weigh)
	return nil
}

// Freeze ends every replacement of workers, and no other begins any more: Stop will come
// as soon as their calls are over. Workers go on, and those that die are restarted,
// because calls may wait for them. It returns at once.
func (s *Supervisor) Freeze() { s.coldOnce.Do(func() { close(s.frozen) }) }

// Stop ends all workers: TERM to every group, KILL after Options.StopTimeout or
// as soon as ctx ends. It returns when nothing is left: no worker, no keeper, no
// socket directory, no goroutine, and the last output is written.
//
// It takes at most BootTimeout (with a BeforeStop) + StopTimeout + 7 s whatever a
// worker does; a process that the kernel does not let die of KILL, an exec that hangs,
// and a stalled reader of the output are left behind. A second call waits for the same
// end, and the first ctx that ends counts for all.
func (s *Supervisor) Stop(ctx context.Context) {
	s.mu.Lock()
	first := !s.stopped
	s.stopped = true
	begun := s.begun
	s.mu.Unlock()
	if first {
		close(s.stopping)
		go s.shutDown(begun)
	}
	select {
	case <-s.ended:
		return
	case <-ctx.Done():
		s.killOnce.Do(func() { close(s.killing) })
	}
	<-s.ended
}

// shutDown takes everything down in the reverse order of its start.
func (s *Supervisor) shutDown(begun bool) {
	defer close(s.ended)
	if !begun {
		return
	}
	<-s.started
	s.running.Wait()
	s.hooks.running.Wait()
	s.children.LetGo()
	s.helpers.Wait()
	s.sink.Close()
	s.children.Close()
	s.addresses.close()
}

// Ports returns the ports of all workers and of their metrics pages.
func (s *Supervisor) Ports() []int { return s.addresses.inUse() }

// Launch starts a program that is not a worker: the cabrank that will take over. Stop does
// not end it. See process.Children.Launch.
func (s *Supervisor) Launch(cmd *exec.Cmd) (wait func() *os.ProcessState, err error) {
	return s.children.Launch(cmd)
}

// LinesDropped returns how many lines of workers were dropped because the writer of
// Options.Output was too slow.
func (s *Supervisor) LinesDropped() uint64 { return s.sink.Dropped() }

// Avoid leaves these ports to another cabrank, whose workers may not listen there yet.
// They replace the ports of the last call.
func (s *Supervisor) Avoid(ports []int) { s.addresses.avoid(ports) }

// Workers returns the status of every place that ever had a worker, in order;
// those without one now are Vacant.
func (s *Supervisor) Workers() []Status {
	workers := s.allWorkers()
	all := make([]Status, len(workers))
	for i, w := range workers {
		all[i] = w.board.read()
		if len(all[i].Ends) > 0 {
			all[i].LastLines = w.output.tail.read()
		}
	}
	return all
}

// Alive is false only if the supervisor itself is stuck: if the foreman or the
// goroutine of a worker has done nothing for 10 s. A callback that hangs can cause
// that, a worker cannot. For the liveness probe.
func (s *Supervisor) Alive() bool {
	now := time.Since(s.began)
	if now-time.Duration(s.beat.Load()) > stuckAfter {
		return false
	}
	for _, w := range s.allWorkers() {
		if now-time.Duration(w.beat.Load()) > stuckAfter {
			return false
		}
	}
	return true
}

// EverReady reports whether any worker has ever been ready. For the startup
// probe.
func (s *Supervisor) EverReady() bool { return s.everReady.Load() }
