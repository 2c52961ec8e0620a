package config

import (
	"log/slog"
	"net"
	"strconv"
	"time"
)

// Config is the effective configuration of one cabrank process.
//
// It is made by Load, is complete and consistent, and is not changed
// afterwards; reading it from several goroutines is safe. The meaning, unit and
// range of every field stand in keys.go beside the key of the same name.
type Config struct {
	Log         Log
	AccessLog   AccessLog
	Listen      Listener      // where callers come in
	CallTimeout time.Duration // 0: none; else it bounds every call
	TLS         []KeyPair     // of the port, the first for who names none; empty: no TLS
	TLSClear    string        // refuse or allow, see ServesClear
	TLSClient   Trust         // of callers
	Proxies     []string      // networks, see ProxyPrefixes
	Workers     Workers
	Upstreams   []string // "host:port", "unix:/path", "dns:name:port" or "srv:name", "tls:" before the first or third; each once
	UpstreamTLS Trust    // of those with tls:
	DNS         DNS
	HealthCheck HealthCheck
	Hooks       Hooks
	WarmUp      WarmUp
	Recycle     Recycle
	Probes      Listener // of /startup, /readiness and /liveness
	Metrics     Metrics
	Socket      Socket
	Queue       Queue
	Fair        Fair
	Lanes       []LaneRule   // in the order in which they are written
	Methods     []MethodRule // whole names first

	Balance  Balance
	OnCancel string // auto, hold, free or finish (R5); see CancelledSlots
	Explain  bool   // response trailers that tell of the queue and the worker

	StreamSlots  int           // slots of all endpoints that long streams may hold (R8); 0: auto
	StallTimeout time.Duration // of a caller that moves no byte while others wait (R9); 0: never
	HangTimeout  time.Duration // of a worker that is silent with calls in flight (R6); 0: never

	MaxRunTime time.Duration // of CPU that a worker burns for one call; 0: no limit

	Control string // auto, off, or the path of a unix socket

	DrainTimeout time.Duration
	PreStopDelay time.Duration
	BufferTotal  Size // per process (R11)
	Limits       Limits
	Shards       int // that share the connections, each served by one CPU at a time

	// Command is what each worker runs, with its placeholders still in place (see
	// Placeholders). It is empty where no workers are wanted: there are Upstreams,
	// and nobody gave a command.
	Command []string

	// File is the file that was read, as it was named; empty if there is none.
	File string

	// Warnings are lines for the operator about settings that have no effect,
	// such as a variable of cabrank's prefix that is none of its own.
	Warnings []string

	origins       map[string]Origin
	commandOrigin Origin
}

// AccessLog is what is written of finished calls.
type AccessLog struct {
	Path   string  // of the file, or stdout, or none
	Sample float64 // share of the calls that end well and are not slow
}

// Log says what is logged and how.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // auto (text on a terminal, else json), text or json
}

// SlogLevel returns Level as log/slog knows it.
func (l Log) SlogLevel() slog.Level {
	var level slog.Level
	// Load has let only the four words through, and all of them parse.
	_ = level.UnmarshalText([]byte(l.Level))
	return level
}

// Workers describes the child processes.
type Workers struct {
	Count       Amount            // one that adapts is as many as the calls need
	Command     []string          // of the file; what holds is Config.Command
	Env         map[string]string // placeholders are still in place; values may be secrets
	Slots       Amount            // per endpoint, also of upstreams; those that adapt follow the measured latency
	Transport   string            // tcp or unix
	StartPort   int
	MetricsPath string
	MinReady    int
	MaxSurge    int // processes of a roll above Count
	BootTimeout time.Duration
	StopTimeout time.Duration
}

// HealthCheck is the rhythm in which endpoints are asked for their health.
type HealthCheck struct {
	Interval time.Duration
	Timeout  time.Duration
}

// Recycle says when a worker is replaced by a fresh one although it serves. Zero
// values mean never.
type Recycle struct {
	Calls  int           // served
	Age    time.Duration // of the process
	Memory MemoryLimit
}

// DNS says how the names among the upstreams are looked up.
type DNS struct {
	Servers []string // "address:port"; empty: those of the system
}

// Metrics is the metrics page.
type Metrics struct {
	Listener

	Interval  time.Duration     // how often the workers' own pages are read
	Gauges    map[string]string // sum, max, min, avg, last or each, by name of the gauge, in which * stands for any letters
	PerWorker bool              // nothing is summed
}

// Queue bounds the calls that wait for a slot.
type Queue struct {
	Length      int           // 0: nobody waits
	Timeout     time.Duration // bounds every wait (R10)
	Shed        bool          // refuse what cannot end before its deadline (R16); always, but for benchmarks
	NewestFirst bool          // the newest call first while calls come too fast; always, but for benchmarks
}

// Fair says who shares the slots, and how.
type Fair struct {
	Key     CallerKey
	Weights map[string]float64 // by the value of Key; 1 for all others
}

// Limits bounds callers' connections, and what each of them may do.
type Limits struct {
	Connections   int           // at a time
	IdleTimeout   time.Duration // without a call; 0: never ends
	ConnectionAge time.Duration // 0: no limit

	// What all calls of one key (Fair.Key) may do together.
	CallsPerSecond float64 // started; 0: no limit
	Calls          int     // that run or wait at a time; 0: no limit
}

// KeyBurst returns the calls that one key may start at once: those of one second. It is
// 0 if there is no limit.
func (l Limits) KeyBurst() int {
	if l.CallsPerSecond == 0 {
		return 0
	}
	return max(1, int(l.CallsPerSecond))
}

// IsGiven reports whether a source has a value for a key, by its name in the file.
func (c *Config) IsGiven(key string) bool { _, given := c.origins[key]; return given }

// CancelledSlots returns hold, free or finish: what happens to the slot of a
// cancelled call where no rule of its method says otherwise. Auto holds fixed
// slots, which are threads that run on, and frees those of workers that can
// stop (R5).
func (c *Config) CancelledSlots() string {
	switch {
	case c.OnCancel != automatic:
		return c.OnCancel
	case c.Workers.Slots.Adapts():
		return "free"
	}
	return "hold"
}

// DefaultCommand returns what a worker runs when no command is given: the same
// as gruf-relay ran, with the address of the worker filled in later.
func DefaultCommand() []string {
	return []string{"bundle", "exec", "gruf", "--host", "{addr}", "--health-check", "--backtrace-on-error"}
}

func joinHostPort(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}
