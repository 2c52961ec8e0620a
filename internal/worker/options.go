package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/health"
)

// Options says what to run and how long to wait for it.
//
// A zero duration means the default that its field names, never for
// HangTimeout; a negative one is refused by New.
type Options struct {
	// Count is the number of workers, at least 1.
	Count int

	// Command is the program and its arguments. In arguments {addr} is the
	// address to listen on ("127.0.0.1:9000" or "unix:/path"), {host} and {port}
	// its parts, which only tcp has, {worker} is the worker's name ("worker-1"),
	// {index} the number of its place, from 0, {slots} the calls that it may have at a
	// time, {threads} the threads that it should have for them, and {metrics_port} where
	// its metrics page is asked for. The program is looked up in PATH at every start, so
	// one that is replaced or comes back is found.
	Command []string

	// Environment is added to what workers inherit. In values the same is replaced
	// as in Command. Names that cabrank sets itself (PORT, CABRANK_ADDR, …) have
	// its values.
	Environment map[string]string

	// Hooks are commands that run around the life of each process.
	Hooks Hooks

	// WarmUp is a call that a process must answer before it takes others.
	WarmUp WarmUp

	// Recycle says when a worker that is well is replaced.
	Recycle Recycle

	// Transport is "tcp" or "unix".
	Transport string

	// Host is the IP address workers are told to listen on, with tcp. Empty
	// means 127.0.0.1.
	Host string

	// StartPort is the port of worker-1 with tcp (R19); worker i has
	// StartPort+i-1, its metrics page 100 more. With unix only the metrics ports
	// are counted from it.
	StartPort int

	// Slots is the number of calls a worker takes at once, at least 1. Three times
	// as many are passed on as RAILS_MAX_THREADS; CABRANK_SLOTS, CABRANK_THREADS, {slots} and
	// {threads} go by SlotsMost if there is one.
	Slots int

	// SlotsMost is the largest number that Slots may become, where it adapts. 0: it
	// does not.
	SlotsMost int

	// MetricsPath is passed on as PROMETHEUS_EXPORTER_PATH.
	MetricsPath string

	// BootTimeout is how long a started worker may take to become ready before
	// it is killed and restarted. Default 60 s.
	BootTimeout time.Duration

	// StopTimeout is the time between TERM and KILL in Stop. Default 5 s.
	StopTimeout time.Duration

	// HealthInterval is the silence after which a ready worker is asked for its
	// health (R6). Default 5 s.
	HealthInterval time.Duration

	// HealthTimeout bounds one health check. Default 5 s.
	HealthTimeout time.Duration

	// HangTimeout is how long a worker must be silent and still, with calls in
	// flight, to be replaced (R6). It is three times the longest run seen of the
	// methods that run there, if that is more. 0 means that no worker is ever
	// replaced for its silence, also no idle one.
	HangTimeout time.Duration

	// MaxRunTime is how long a call may run while its worker computes, until the
	// worker is killed and replaced (runtime.go). 0 means for ever.
	MaxRunTime time.Duration

	// MaxSurge is how many processes there may be above Count while workers are
	// replaced, those that drain and stop included. With 0 one drains before its
	// successor starts.
	MaxSurge int

	// MaxDraining is how many workers may drain and stop at a time. Default 1.
	MaxDraining int

	// MinReady is how many workers stay ready when one more begins to drain. It
	// has to be less than Count if MaxSurge is 0.
	MinReady int

	// DrainTimeout is how long a worker that is replaced, or one too many, may
	// finish its calls. 0: they are cut at once.
	DrainTimeout time.Duration

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

// complete fills in defaults and refuses what cannot work, one line per fault.
func (o *Options) complete() error {
	if o.Count < 1 {
		return fmt.Errorf("worker count is %d: at least 1 is needed", o.Count)
	}
	if o.Slots < 1 {
		return fmt.Errorf("slots of a worker are %d: at least 1 is needed", o.Slots)
	}
	if len(o.Command) == 0 || o.Command[0] == "" {
		return errors.New("worker command is empty")
	}
	if o.Rank == nil {
		return errors.New("worker registry is missing")
	}
	if err := o.completeReplacement(); err != nil {
		return err
	}
	if err := o.completeTransport(); err != nil {
		return err
	}
	if err := o.completeDurations(); err != nil {
		return err
	}
	return o.completeParts()
}

// completeReplacement checks how workers may be replaced.
func (o *Options) completeReplacement() error {
	if o.MaxDraining == 0 {
		o.MaxDraining = 1
	}
	switch {
	case o.MaxSurge < 0 || o.MaxDraining < 0 || o.MinReady < 0:
		return fmt.Errorf("surge %d, draining %d, min ready %d: none can be negative", o.MaxSurge, o.MaxDraining, o.MinReady)
	case o.Count+o.MaxSurge > maxPlaces:
		return fmt.Errorf("worker count is %d with a surge of %d: %d in all are allowed", o.Count, o.MaxSurge, maxPlaces)
	case o.MinReady > o.Count:
		return fmt.Errorf("min ready is %d: there are %d workers", o.MinReady, o.Count)
	case o.MaxSurge == 0 && o.MinReady >= o.Count:
		return fmt.Errorf("min ready is %d of %d workers: without a surge none could ever be replaced", o.MinReady, o.Count)
	}
	return nil
}

// completeTransport checks the address settings (R19).
func (o *Options) completeTransport() error {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if last := o.StartPort + o.Count + o.MaxSurge - 1 + metricsOffset; o.StartPort < 1 || last > maxPort {
		return fmt.Errorf("start port is %d: workers and their metrics pages need the ports from there to %d, within 1 to %d",
			o.StartPort, last, maxPort)
	}
	switch o.Transport {
	case "tcp":
		if _, err := netip.ParseAddr(o.Host); err != nil {
			return fmt.Errorf("worker host is %q: an IP address is needed", o.Host)
		}
	case "unix":
		return o.refuseTCPWords()
	default:
		return fmt.Errorf("worker transport is %q: tcp and unix are allowed", o.Transport)
	}
	return nil
}

// refuseTCPWords refuses {host} and {port} where there is only a socket.
func (o *Options) refuseTCPWords() error {
	for _, place := range []struct {
		name  string
		texts []string
	}{
		{"the worker command", o.Command},
		{"the workers' environment", slices.Sorted(maps.Values(o.Environment))},
		{"hook " + beforeStart, o.Hooks.BeforeStart},
		{"hook " + afterReady, o.Hooks.AfterReady},
		{"hook " + beforeStop, o.Hooks.BeforeStop},
	} {
		for _, text := range place.texts {
			if strings.Contains(text, "{port}") || strings.Contains(text, "{host}") {
				return fmt.Errorf("argument %q of %s: a unix socket has no {host} or {port}, use {addr} or transport tcp", text, place.name)
			}
		}
	}
	return nil
}

// checkEnvironment refuses names that no environment can have.
func (o *Options) checkEnvironment() error {
	for _, name := range slices.Sorted(maps.Keys(o.Environment)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(o.Environment[name], "\x00") {
			return fmt.Errorf("variable %q of the workers' environment: a name without = is needed, and no zero bytes", name)
		}
	}
	return nil
}

func (o *Options) completeDurations() error {
	for _, d := range []struct {
		name     string
		value    *time.Duration
		fallback time.Duration
	}{
		{"boot timeout", &o.BootTimeout, 60 * time.Second},
		{"stop timeout", &o.StopTimeout, 5 * time.Second},
		{"health interval", &o.HealthInterval, 5 * time.Second},
		{"health timeout", &o.HealthTimeout, 5 * time.Second},
		{"hang timeout", &o.HangTimeout, 0},
		{"drain timeout", &o.DrainTimeout, 0},
		{"max run time", &o.MaxRunTime, 0},
	} {
		if *d.value < 0 {
			return fmt.Errorf("%s of workers is %v: it cannot be negative", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	return nil
}

func (o *Options) completeParts() error {
	if err := cmp.Or(o.checkEnvironment(), o.Hooks.complete(), o.WarmUp.complete(), o.Recycle.check()); err != nil {
		return err
	}
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
