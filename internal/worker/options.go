package worker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/cabrank/cabrank/internal/health"
)

// Settings are the group workers of a configuration: package config reads it by the tags,
// which say of each what it is, and has checked it.
//
// In the arguments of Command {addr} is the address to listen on ("127.0.0.1:9000" or
// "unix:/path"), {host} and {port} its parts, which only tcp has, {worker} is the worker's
// name ("worker-1"), {index} the number of its place, from 0, {slots} the calls that it may
// have at a time, {threads} the threads that it should have for them, and {metrics_port}
// where its metrics page is asked for. The program is looked up in PATH at every start, so
// one that is replaced or comes back is found. In the values of Env the same is replaced;
// names that cabrank sets itself (PORT, CABRANK_ADDR, …) have its values.
//
// Worker i listens on StartPort+i-1 (R19), its metrics page is at 100 more; with unix only
// the latter are counted from it.
type Settings struct {
	Count       Amount            `key:"count" also:"workers" kind:"workers" env:"WORKERS_COUNT" flag:"workers" arg:"N|MIN-MAX" default:"usable CPUs" change:"reload" help:"worker processes to run: so many, or as many as the calls need, between two bounds"`
	Command     []string          `key:"command" kind:"command" default:"none" change:"restart" secret:"yes" help:"what each worker runs, where no command follows -- on the command line"` // with a configuration, what follows -- goes before it
	Env         map[string]string `key:"env" kind:"variables" default:"none" change:"restart" secret:"yes" help:"variables that each worker gets beside those of cabrank"`
	Slots       Amount            `key:"slots" docs:"rank" also:"workers.pool_size,slots" kind:"slots" env:"WORKERS_POOL_SIZE" flag:"slots" arg:"N|MIN-MAX|auto" default:"5" change:"upgrade" help:"calls that one worker or upstream serves at a time, or as many as suit an asynchronous one, between two bounds"`
	Transport   string            `key:"transport" oneof:"tcp|unix" flag:"transport" arg:"tcp|unix" default:"tcp" change:"upgrade" help:"how workers are reached: loopback ports or unix sockets"`
	StartPort   int               `key:"start_port" env:"WORKERS_START_PORT" flag:"start-port" arg:"PORT" default:"9000" range:"1..65535" change:"upgrade" help:"port of the first worker; the others follow"`
	MetricsPath string            `key:"metrics_path" kind:"page" env:"WORKERS_METRICS_PATH" default:"/metrics" change:"restart" help:"path of the workers' own metrics pages, handed to them"`
	MinReady    int               `key:"min_ready" flag:"min-ready" arg:"N" default:"1" range:"1..1000" change:"reload" help:"ready workers from which on /readiness answers 200, and below which a roll never goes"`
	MaxSurge    int               `key:"max_surge" default:"1" range:"0..1000" change:"reload" help:"processes that a roll may have above workers.count, those that drain included (0: one drains before its successor starts)"`
	BootTimeout time.Duration     `key:"boot_timeout" flag:"boot-timeout" arg:"TIME" default:"60s" range:"100ms..1h" change:"reload" help:"how long a worker may take to become ready before it is replaced"`
	StopTimeout time.Duration     `key:"stop_timeout" flag:"stop-timeout" arg:"TIME" default:"5s" range:"0s..1h" change:"reload" help:"how long a worker has between SIGTERM and SIGKILL"`
}

// Options says what to run and how long to wait for it, by a configuration that fits
// together, and through what cabrank itself is asked and told.
type Options struct {
	Settings

	Hooks   Hooks   // commands that run around the life of each process
	WarmUp  WarmUp  // a call that a process must answer before it takes others
	Recycle Recycle // when a worker that is well is replaced

	// DrainTimeout is how long a worker that is replaced, or one too many, may
	// finish its calls. 0: they are cut at once.
	DrainTimeout time.Duration

	// HealthInterval is the silence after which a ready worker is asked for its
	// health (R6), HealthTimeout bounds one health check.
	HealthInterval, HealthTimeout time.Duration

	// HangTimeout is how long a worker must be silent and still, with calls in
	// flight, to be replaced (R6). It is three times the longest run seen of the
	// methods that run there, if that is more. 0 means that no worker is ever
	// replaced for its silence, also no idle one.
	HangTimeout time.Duration

	// MaxRunTime is how long a call may run while its worker computes, until the
	// worker is killed and replaced (runtime.go). 0 means for ever.
	MaxRunTime time.Duration

	// Output takes what workers write to stdout and stderr.
	Output Output

	// Logger takes one line per change of a worker. Nil discards.
	Logger *slog.Logger

	// Rank is told which workers can take calls. Required.
	Rank Registry

	// Activity tells how busy a worker is. Nil means always idle and silent.
	Activity Activity

	// LastPage is told of a process that is about to get TERM, because it is replaced or
	// one too many, while it still answers: what it has counted can be asked for. It
	// returns when ctx ends, which is after half a second. Nil: nobody asks.
	LastPage func(ctx context.Context, s Status)

	// Executable is the program that is started as [Executable, "keeper"].
	// Empty means os.Executable.
	Executable string
}

// Output is where the workers' lines go.
type Output struct {
	// Writer gets whole lines, several in one Write. It may block: workers never
	// wait for it, lines beyond 256 KiB per worker, or beyond one that is longer, are
	// dropped and counted. Nil discards.
	Writer io.Writer

	// JSON says that every line must be a JSON object: lines that are one get the
	// keys worker and, from stderr, stream, others are wrapped. Otherwise lines get
	// the prefix "worker-1 | ".
	JSON bool
}

// Registry is told which workers can take calls.
//
// Calls for one worker come from one goroutine, calls for different workers
// overlap. All must return at once (they hold up the watching of the worker)
// and must not call the Supervisor.
type Registry interface {
	// Up says that the worker takes calls at this address (network "tcp" or
	// "unix", address as net.Dial takes it) from now on.
	Up(worker, network, address string)

	// Down says that the worker gets no new calls from now on. It comes after
	// every Up, may come more than once, and may come without an Up.
	Down(worker string)

	// Cut says that the worker is about to be ended on purpose: calls that it
	// still has, if any, are answered. It comes after Down and returns at once.
	Cut(worker string)

	// Suspect says that the worker, which is up, is silent and gets no new calls
	// for the time being, or that it has spoken again (R6). Up and Down end the
	// suspicion without a word.
	Suspect(worker string, suspect bool)

	// Outage says that every worker is in a crash loop, so that no call needs to
	// wait for one, or that this is over. It is said when it changes, a moment
	// after the Up or Down that goes with it, by a goroutine of its own.
	Outage(outage bool)
}

// Activity tells what the data plane sees of a worker, so that its health is
// asked only when it is silent, and silence can be told from work (R6).
type Activity interface {
	// Activity returns what is known now. It is called from several goroutines
	// and must return at once.
	Activity(worker string) Work
}

// Work is what the data plane sees of a worker at one moment, as evidence for its judge.
type Work = health.Work

// metricsOffset is added to a worker's port to get that of its metrics page, as
// gruf-relay did.
const metricsOffset = 100

const maxPort = 65535

// maxPlaces bounds workers and spares together.
const maxPlaces = 2000

// maxDraining is how many workers may drain and stop at a time.
const maxDraining = 1

// complete puts what does nothing in the place of what was left out. The error is one of
// the system.
func (o *Options) complete() error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Output.Writer == nil {
		o.Output.Writer = io.Discard
	}
	if o.Activity == nil {
		o.Activity = silence{}
	}
	if o.Executable == "" {
		path, err := os.Executable()
		if err != nil {
			return fmt.Errorf("path of this program, needed for the keeper: %w", err)
		}
		o.Executable = path
	}
	return nil
}

// silence is the Activity of workers that nobody calls.
type silence struct{}

func (silence) Activity(string) Work { return Work{} }
