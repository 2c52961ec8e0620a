// Package service is the running process: what `cabrank run` starts, joins and ends, and
// `cabrank socket serve`, which has sockets alone.
//
// Start from Run in this file, which goes from top to bottom in the order in which things
// happen: configuration, start or takeover, serving, reload and upgrade, drain, end.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/auth"
	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/handover"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/sink"
	"github.com/cabrank/cabrank/internal/trace"
	"github.com/cabrank/cabrank/internal/web"
	"github.com/cabrank/cabrank/internal/webdoors"
	"github.com/cabrank/cabrank/internal/worker"
)

// Options are what a process that is to serve is given.
type Options struct {
	Build admin.Build
	// Load makes the configuration, as it is now: a reload asks again. Log says how the log
	// is wanted where Load fails.
	Load func() (*config.Config, error)
	Log  func() config.Log
	// Stdout takes what workers print, Stderr the log.
	Stdout, Stderr io.Writer
}

// Run is cabrank run: it serves until a signal, the control or a failure ends it. Whatever
// it has to say goes through the log, which waits for nobody. Signals that HoldSignals has
// kept in ctx come first.
//
// Errors: they are in the log already, and have the exit status of the process.
func Run(ctx context.Context, o Options) error {
	signals := heldSignals(ctx)
	outliveReaders()
	// By itself the library of the health checks writes its errors to stderr.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	cfg, err := o.Load()
	if err != nil {
		log := OpenLog(o.Log(), o.Stderr)
		defer log.Close()
		return log.Fail(err)
	}
	log := OpenLog(cfg.Log, o.Stderr)
	defer log.Close()
	for _, warning := range cfg.Warnings {
		log.Warn("configuration", "warning", warning)
	}
	return log.Fail(o.serve(cfg, signals, log))
}

// outliveReaders has a write to a pipe that nobody reads any more fail, where the
// runtime would end the process. To ignore the signal would be inherited by the
// workers.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// serve runs the relay as cfg says, until one of the signals, the control or a failure
// ends it.
func (o Options) serve(cfg *config.Config, signals held, log *Log) error {
	s, err := newService(o, cfg, log)
	if err != nil {
		return err
	}
	if err := s.openAccess(); err != nil {
		s.failTakeOver(err)
		return err
	}
	defer s.access.close()
	defer func() { s.tracer.Close(lastSpans) }()
	defer s.heed(signals)()
	err = s.start(s.orders.serving) // it can hang: in an exec on a file system that does
	close(s.orders.started)
	if err != nil {
		s.failTakeOver(err)
		if !s.orders.serving.isOver() {
			s.end()
			return err
		}
	} else {
		go s.tellManager() // ends with the service
	}
	var failure error
	var asked os.Signal
	select {
	case <-s.public.Done():
		log.Info("draining, another process has taken over")
	case asked = <-s.orders.stop:
		log.Info("stopping", "signal", asked.String(), "calls_in_flight", s.inFlight(), "calls_waiting", s.relay.Waiting())
	case failure = <-s.failed:
		log.Error("stopping", "error", failure)
	}
	s.stop(asked)
	log.Info("stopped")
	if s.socketsAlone() && s.orders.cut > 0 && failure == nil {
		return cli.ErrCut
	}
	return failure
}

// service is one running cabrank: the parts in the order in which they start.
// They stop in the reverse order, but for the probes, which answer to the last.
type service struct {
	cfg *config.Config
	log *slog.Logger

	// Set before anything is started, never changed.
	build     admin.Build
	inherited *handover.Inherited // what this process was given: listeners, a predecessor
	program   string              // path that an upgrade starts; empty: nobody knows it
	began     time.Time
	lines     *sink.Sink    // of the log
	stdout    *sharedWriter // of workers and calls

	relay     *relay.Relay
	http1     *web.HTTP1
	sockets   *sockets           // nil without any
	verifier  *auth.Verifier     // nil if nobody is asked for a token
	schema    *schema.Schema     // of methods that sockets may call; nil: none
	door      net.Addr           // where the calls come in
	pages     map[string]server  // beside the calls, by the names of their listeners
	addresses []admin.Listener   // where it listens
	pushToken string             // of who pushes; "": none is needed
	workers   *worker.Supervisor // nil if only others run endpoints
	autoscale *autoscale         // of the workers; nil without them
	places    *pool              // of the workers
	memory    *footprints        // of the workers
	access    *access            // log of calls; nil without one
	tracer    *trace.Tracer      // nil without spans
	scrape    *scraping          // of the workers' metrics pages; nil if nobody shows them
	upstreams *discover.Roster   // endpoints that someone else runs, may be none
	outside   *pool              // of the upstreams
	failed    chan error         // a part that must not end has ended
	living    phase              // until the end

	certs        atomic.Pointer[certs.Files] // nil: there never were any. Stored under settings.mu, or at the start
	peers        *certs.Peers                // of upstreams that speak TLS
	settings     settings
	firstWorkers int // with how many a successor begins; 0: as configured

	public    phase               // until another process has taken over
	upgrading chan struct{}       // has an entry during an attempt to hand over, of which there is one at a time
	successor *handover.Successor // held, not used: see there

	orders *orders
}

// newService makes a service, with what this process was given by the one that
// started it. A predecessor is talked to; nothing is started yet.
func newService(o Options, cfg *config.Config, log *Log) (*service, error) {
	inherited, err := handover.Inherit(log.Logger)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	program, err := handover.Program()
	if err != nil { // an upgrade would need it, and the keeper of workers: they say so
		log.Debug("path of this program is not known", "error", err)
	}
	s := &service{
		build: o.Build, cfg: cfg, log: log.Logger, lines: log.sink, stdout: &sharedWriter{to: sink.Whole{To: o.Stdout}},
		inherited: inherited, program: program, began: time.Now(),
		pages: make(map[string]server), memory: &footprints{root: os.DirFS("/")},
		failed: make(chan error, 1), living: newPhase(), public: newPhase(), upgrading: make(chan struct{}, 1),
		settings: settings{load: o.Load, level: log.level}, orders: newOrders(),
	}
	err = s.greet()
	return s, err
}

// announce says what is about to run, above all what nobody wrote down: the
// number of usable CPUs, the file that happened to be there. The command is not
// told, it may hold secrets.
func (s *service) announce() {
	told := []any{"version", s.build.Version}
	if s.cfg.File != "" {
		told = append(told, "config", s.cfg.File)
	}
	if upstreams := len(s.cfg.Upstreams); upstreams > 0 {
		told = append(told, "upstreams", upstreams)
	}
	if len(s.cfg.Command) > 0 {
		told = append(told, "workers", s.cfg.Workers.Count.N, "transport", s.cfg.Workers.Transport)
	}
	if count := s.cfg.Workers.Count; count.Adapts() {
		told = append(told, "workers_min", count.Min, "workers_max", count.Max)
	}
	if s.cfg.Workers.Slots.Adapts() {
		told = append(told, "slots", "auto")
	} else {
		told = append(told, "slots", s.cfg.Workers.Slots.N)
	}
	s.log.Info("starting", told...)
}

// start opens the door before the endpoints start: calls that come before a worker is
// ready wait. A successor does it the other way round, see takeOver. It gives up when ctx
// ends.
func (s *service) start(ctx context.Context) error {
	if !s.socketsAlone() {
		s.announce()
	}
	startEndpoints := func() error { return s.startEndpoints(ctx) }
	if s.inherited.Predecessor != nil {
		return inTurn(s.makeRelay, s.makeEndpoints, startEndpoints, func() error { return s.takeOver(ctx) })
	}
	return inTurn(s.makeRelay, s.makeEndpoints, s.open, startEndpoints)
}

// open listens wherever it is wanted.
func (s *service) open() error { return inTurn(s.openDoor, s.startPages, s.startControl, s.dropRest) }

// inTurn takes steps until one fails.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// makeRelay makes the relay, which keeps within the memory of the container from
// then on, and what serves callers of its port that speak HTTP/1.
func (s *service) makeRelay() error {
	options := s.relayOptions(s.cfg, s.log)
	options.HTTP1 = func(caller *relay.Guest) { s.http1.ServeConn(caller) }
	var doors *webdoors.Doors // made when the relay is, and asked for its first request
	if !s.socketsAlone() {
		options.Other = func(head relay.Head) func(*relay.Exchange) { return doors.Other(head) }
	}
	options.Dial = s.dial
	if err := s.secure(s.cfg, &options); err != nil {
		return cli.UsageError(err)
	}
	if err := s.openAuth(&options); err != nil {
		return err
	}
	if s.access != nil {
		options.Access = s.access.log.Call
	}
	if err := s.openTracing(&options); err != nil {
		return err
	}
	s.relay = relay.New(options)
	err := s.openSchema()
	if err == nil {
		err = s.openSockets()
	}
	doors = s.webDoors()
	s.http1 = web.NewHTTP1(webLimits(s.cfg), s.routes(), doors.Find, s.log)
	s.boundSockets()
	s.makeScraping() // it takes part of that memory
	memory := newContainer(os.DirFS("/"), s.log, s.setMemory)
	memory.look()
	go repeat(s.living, memoryLook, func(time.Time) { memory.look() })
	return err
}

func (s *service) startEndpoints(ctx context.Context) error {
	s.upstreams.Start()
	if s.workers == nil {
		return nil
	}
	if err := s.startWorkers(ctx); err != nil {
		return err
	}
	go repeat(s.living, scaleEvery, s.autoscale.look)
	if s.scrape != nil {
		go s.scrape.scraper.Run(s.living)
	}
	return nil
}

// watch reports a listener that died.
func (s *service) watch(serve func(net.Listener) error, listener net.Listener) {
	if err := serve(listener); !errors.Is(err, door.ErrClosed) {
		s.fail(fmt.Errorf("cannot take connections on %s: %w", listener.Addr(), err))
	}
}

func (s *service) fail(err error) {
	select {
	case s.failed <- err:
	default: // one reason to stop is enough
	}
}

// inFlight counts the calls that have a slot.
func (s *service) inFlight() int {
	calls := 0
	for _, endpoint := range s.relay.Rank().Endpoints {
		calls += endpoint.InFlight
	}
	return calls
}

// tellManager reports to a service manager, if there is one, until the end: that
// calls can be served, and twice per interval of its watchdog that all is well.
func (s *service) tellManager() {
	if s.inherited.Notifier == nil {
		return
	}
	go s.inherited.Notifier.Watch(s.living.Done(), s.Alive)
	if await(s.living, readyPoll, func() (bool, error) { return s.Ready(), nil }) == nil {
		s.inherited.Notifier.Ready()
	}
}

// stop ends the service in the order of R17. first is the signal that has asked
// for it, nil if none has; one more skips the waits.
// One that has handed over, or never took over, has nobody to wait for who
// might still come, and nobody to tell.
func (s *service) stop(first os.Signal) {
	s.orders.serving.end(errStopping)
	if s.workers != nil {
		s.workers.Freeze() // a stop wins over a roll
	}
	patient, hurry := context.WithCancel(context.Background())
	defer hurry()
	if first == (stopRequest{now: true}) {
		hurry()
	} else {
		go s.awaitHurry(patient, first != nil, hurry)
	}
	s.relay.StopServing()
	if s.isPublic() {
		s.inherited.Notifier.Stopping()
		select {
		case <-time.After(s.current().PreStopDelay):
		case <-patient.Done():
		}
	}
	began := time.Now()
	if s.orders.cut = s.drain(patient, s.current().DrainTimeout); s.orders.cut > 0 {
		s.log.Warn("calls were cut", "calls", s.orders.cut)
	}
	s.awaitPredecessor(patient, began)
	s.end()
}

// socketGoodbye is how much earlier than calls over HTTP/2 sockets end that still have
// calls, at most, so that they are told so before their connections are closed.
const socketGoodbye = time.Second

// drain has all callers leave in the time, or until ctx ends (R17), and returns how many
// calls were cut.
func (s *service) drain(ctx context.Context, timeout time.Duration) int {
	if !s.isPublic() {
		s.closePages(handover.Push) // who pushes comes to the process that has taken over
	}
	ofSockets := make(chan int, 1)
	go func() { ofSockets <- s.drainSockets(ctx, timeout-min(timeout/10, socketGoodbye)) }()
	return s.relay.Drain(timeout, ctx.Done()) + <-ofSockets // which are among the relay's connections
}

// isPublic reports whether the address of the service is its own: it has opened
// its door, and has not handed it over.
func (s *service) isPublic() bool { return s.door != nil && !s.public.isOver() }

// end stops whatever was started. The control tells of it to the last.
func (s *service) end() {
	s.living.end(errStopping)
	s.orders.serving.end(errStopping)
	s.upgrading <- struct{}{} // when what is under way is given up and undone; no other begins
	if s.upstreams != nil {
		s.upstreams.Stop()
	}
	if s.workers != nil {
		s.workers.Stop(context.Background())
	}
	if s.sockets != nil {
		s.sockets.close()
	}
	if s.relay != nil { // else the start has failed before
		s.relay.Close()
		s.http1.Close()
	}
	s.orders.alive.end(errStopping)
	s.closePages(slices.Collect(maps.Keys(s.pages))...)
}
