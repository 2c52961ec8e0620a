package config

import (
	"slices"
	"strings"
	"time"
)

// Key is one row of the table of settings.
type Key struct {
	Name    string   // dotted, as in the file: "workers.count"
	Aliases []string // other names that the file may use
	Env     string   // the variable
	Flag    string   // without dashes; keys that share a flag are set together by it
	Arg     string   // how --help names the flag's argument
	Default string   // as it could be written in a file; for a measured one what is measured
	Help    string   // what it means, one line
	FlagFor string   // help of a flag that several keys share, on the first of them

	kind     kind
	field    func(*Config) any // the pointer that kind sets
	measured func(machine) int // the default where it depends on the machine
}

// Allowed says which values the key takes.
func (k Key) Allowed() string { return k.kind.allowed() }

// parts describes what an entry of the key consists of, by its whole name; most
// keys have none.
func (k Key) parts() []partInfo {
	kind, ok := k.kind.(structure)
	if !ok {
		return nil
	}
	parts := kind.parts()
	for i := range parts {
		parts[i].name = k.Name + "[]." + parts[i].name
	}
	return parts
}

// section returns the part of the name before the dot, or "".
func (k Key) section() string {
	section, _, found := strings.Cut(k.Name, ".")
	if !found {
		return ""
	}
	return section
}

// machine is what the defaults of workers.count and shards are taken from.
type machine struct {
	cpus  int // usable CPUs
	procs int // GOMAXPROCS
}

// Bounds that appear both as a default's limit and as a range.
const (
	maxWorkers = 1000
	maxShards  = 256
	maxSlots   = 100_000 // per endpoint

	// maxPortSpan is how many workers fit between a worker's port and its
	// metrics port, which is 100 above it, as gruf-relay laid them out.
	maxPortSpan = 100
)

// Keys returns the table of settings, in the order in which it is shown.
func Keys() []Key {
	keys := slices.Concat(doorKeys(), workerKeys(), timeKeys(), rankKeys(), callerKeys(), pageKeys(), limitKeys())
	for i := range keys {
		if keys[i].Env == "" {
			keys[i].Env = variableOf(keys[i].Name)
		}
	}
	return keys
}

// variableOf names the variable of a key that gruf-relay did not have: a.b is
// CABRANK_A_B.
func variableOf(name string) string {
	return "CABRANK_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

const hostLegal = "a host name or address, empty for every interface"

func doorKeys() []Key {
	return []Key{
		{Name: "server.host", Env: "SERVER_HOST", Flag: "listen", Arg: "HOST:PORT", Default: "0.0.0.0",
			FlagFor: "where callers come in",
			Help:    "interface on which callers come in",
			kind:    freeText{cleanHost, hostLegal}, field: func(c *Config) any { return &c.Server.Host }},
		{Name: "server.port", Env: "SERVER_PORT", Flag: "listen", Default: "8080",
			Help: "port on which callers come in (0: the system chooses)",
			kind: wholeNumber{0, maxPort}, field: func(c *Config) any { return &c.Server.Port }},
		{Name: "server.proxy_timeout", Env: "SERVER_PROXY_TIMEOUT", Default: "0s",
			Help: "bound on every call, on top of the caller's own deadline",
			kind: duration{0, 24 * time.Hour, "none"}, field: func(c *Config) any { return &c.Server.ProxyTimeout }},
	}
}

func workerKeys() []Key {
	return []Key{
		{Name: "workers.count", Env: "WORKERS_COUNT", Flag: "workers", Arg: "N", Default: "usable CPUs",
			Help: "worker processes to run",
			kind: wholeNumber{1, maxWorkers}, field: func(c *Config) any { return &c.Workers.Count },
			measured: func(m machine) int { return min(m.cpus, maxPortSpan) }},
		{Name: "workers.pool_size", Aliases: []string{"workers.slots", "slots"}, Env: "WORKERS_POOL_SIZE", Flag: "slots", Arg: "N|auto", Default: "5",
			Help: "calls that one worker or upstream serves at a time: its threads, or auto for asynchronous ones",
			kind: slots{wholeNumber{1, maxSlots}}, field: func(c *Config) any { return &c.Workers }},
		{Name: "workers.slots_min", Aliases: []string{"slots_min"}, Default: "1",
			Help: "fewest slots of an endpoint under slots: auto",
			kind: wholeNumber{1, maxSlots}, field: func(c *Config) any { return &c.Workers.SlotsMin }},
		{Name: "workers.slots_max", Aliases: []string{"slots_max"}, Default: "200",
			Help: "most slots of an endpoint under slots: auto",
			kind: wholeNumber{1, maxSlots}, field: func(c *Config) any { return &c.Workers.SlotsMax }},
		{Name: "workers.transport", Flag: "transport", Arg: "tcp|unix", Default: "tcp",
			Help: "how workers are reached: loopback ports or unix sockets",
			kind: oneOf{words: []string{"tcp", "unix"}}, field: func(c *Config) any { return &c.Workers.Transport }},
		{Name: "workers.start_port", Env: "WORKERS_START_PORT", Flag: "start-port", Arg: "PORT", Default: "9000",
			Help: "port of the first worker; the others follow",
			kind: wholeNumber{1, maxPort}, field: func(c *Config) any { return &c.Workers.StartPort }},
		{Name: "workers.metrics_path", Env: "WORKERS_METRICS_PATH", Default: "/metrics",
			Help: "path of the workers' own metrics pages, handed to them",
			kind: freeText{cleanPath, "a path that begins with /"}, field: func(c *Config) any { return &c.Workers.MetricsPath }},
		{Name: "upstreams", Flag: "upstream", Arg: "A,B", Default: none,
			Help: "endpoints that someone else runs, in place of workers",
			kind: list{cleanUpstream, "host:port or unix:/path", 1000}, field: func(c *Config) any { return &c.Upstreams }},
		{Name: "workers.min_ready", Flag: "min-ready", Arg: "N", Default: "1",
			Help: "ready workers from which on /readiness answers 200",
			kind: wholeNumber{1, maxWorkers}, field: func(c *Config) any { return &c.Workers.MinReady }},
	}
}

func timeKeys() []Key {
	return []Key{
		{Name: "workers.boot_timeout", Flag: "boot-timeout", Arg: "TIME", Default: "60s",
			Help: "how long a worker may take to become ready before it is replaced",
			kind: duration{min: 100 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.Workers.BootTimeout }},
		{Name: "workers.stop_timeout", Flag: "stop-timeout", Arg: "TIME", Default: "5s",
			Help: "how long a worker has between SIGTERM and SIGKILL",
			kind: duration{max: time.Hour}, field: func(c *Config) any { return &c.Workers.StopTimeout }},
		{Name: "health_check.interval", Env: "HEALTH_CHECK_INTERVAL", Default: "5s",
			Help: "silence of a worker after which it is asked how it is",
			kind: duration{min: 10 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.HealthCheck.Interval }},
		{Name: "health_check.timeout", Env: "HEALTH_CHECK_TIMEOUT", Default: "5s",
			Help: "how long a health check waits for its answer",
			kind: duration{min: 10 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.HealthCheck.Timeout }},
		{Name: "drain_timeout", Flag: "drain-timeout", Arg: "TIME", Default: "20s",
			Help: "how long calls may finish when cabrank stops",
			kind: duration{max: 24 * time.Hour}, field: func(c *Config) any { return &c.DrainTimeout }},
		{Name: "pre_stop_delay", Flag: "pre-stop-delay", Arg: "TIME", Default: "0s",
			Help: "how long all stays open after readiness is off, before the drain",
			kind: duration{max: time.Hour}, field: func(c *Config) any { return &c.PreStopDelay }},
	}
}

// ringHash is the policy that needs a key.
const ringHash = "ring_hash"

// automatic is the word for a value that cabrank finds by itself.
const automatic = "auto"

func rankKeys() []Key {
	return []Key{
		{Name: "balance", Flag: "balance", Arg: "POLICY", Default: "late_binding",
			Help:  "how a call gets its endpoint; all but late_binding choose before there is a free slot",
			kind:  oneOf{words: []string{"late_binding", "random", "round_robin", "least_request", "p2c", "peak_ewma", ringHash}},
			field: func(c *Config) any { return &c.Balance }},
		{Name: "balance_key", Default: none,
			Help: "header or metadata whose value ring_hash hashes",
			kind: headerName{}, field: func(c *Config) any { return &c.BalanceKey }},
		{Name: "queue.length", Flag: "queue", Arg: "N", Default: "1000",
			Help: "calls that may wait for a slot (0: nobody waits)",
			kind: wholeNumber{0, 1_000_000}, field: func(c *Config) any { return &c.Queue.Length }},
		{Name: "queue.timeout", Flag: "queue-timeout", Arg: "TIME", Default: "30s",
			Help: "longest wait for a slot",
			kind: duration{min: time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.Queue.Timeout }},
		{Name: "queue.shed", Default: "true",
			Help: "whether a call is refused at once that cannot end before its deadline",
			kind: toggle{}, field: func(c *Config) any { return &c.Queue.Shed }},
		{Name: "queue.newest_first", Default: "true",
			Help: "whether the newest call is served first while overload lasts",
			kind: toggle{}, field: func(c *Config) any { return &c.Queue.NewestFirst }},
		{Name: "stream_slots", Default: automatic,
			Help: "slots of all endpoints together that long streams may hold; auto is all but one, at least half",
			kind: numberOr{automatic, wholeNumber{1, maxWorkers * maxSlots}}, field: func(c *Config) any { return &c.StreamSlots }},
		{Name: "on_cancel", Default: automatic,
			Help: "slot of a cancelled call: hold until the worker must be done, free at once, finish the call; auto holds, or frees under slots: auto",
			kind: oneOf{words: []string{automatic, "hold", "free", "finish"}}, field: func(c *Config) any { return &c.OnCancel }},
		{Name: "hang_timeout", Default: "30s",
			Help: "silence of a worker that has calls and uses no CPU, after which it is replaced",
			kind: duration{time.Second, 24 * time.Hour, "never"}, field: func(c *Config) any { return &c.HangTimeout }},
	}
}

func callerKeys() []Key {
	return []Key{
		{Name: "fair.key", Default: "peer",
			Help: "by what callers are told apart that share the slots: their address, the authority, the value of a metadata key, or not at all",
			kind: callerKey{}, field: func(c *Config) any { return &c.Fair.Key }},
		{Name: "fair.weights", Default: none,
			Help: "shares of callers, by the value of fair.key; those not named have 1",
			kind: weights{decimal{min: 0.01, max: 1000}}, field: func(c *Config) any { return &c.Fair.Weights }},
		{Name: "lanes", Default: none,
			Help: "classes of calls with a priority and slots of their own",
			kind: laneRules(), field: func(c *Config) any { return &c.Lanes }},
		{Name: "methods", Default: none,
			Help: "how calls of a method are repeated and cancelled",
			kind: methodRules(), field: func(c *Config) any { return &c.Methods }},
		{Name: "limits.rate_per_key", Default: "0",
			Help: "calls that one fair.key may start per second",
			kind: decimal{0.01, 1_000_000, "no limit"}, field: func(c *Config) any { return &c.Limits.RatePerKey }},
		{Name: "limits.burst_per_key", Default: automatic,
			Help: "calls that one fair.key may start at once; auto is those of one second",
			kind: numberOr{automatic, wholeNumber{1, 1_000_000}}, field: func(c *Config) any { return &c.Limits.BurstPerKey }},
		{Name: "limits.calls_per_key", Default: "0",
			Help: "calls of one fair.key that may run or wait at a time (0: no limit)",
			kind: wholeNumber{0, 1_000_000}, field: func(c *Config) any { return &c.Limits.CallsPerKey }},
		{Name: "retry_budget.ratio", Default: "0.1",
			Help: "retries and hedges per call, over 10 s",
			kind: decimal{min: 0, max: 1}, field: func(c *Config) any { return &c.RetryBudget.Ratio }},
		{Name: "retry_budget.per_second", Default: "10",
			Help: "retries and hedges per second that are allowed however few calls there are",
			kind: decimal{min: 0, max: 100_000}, field: func(c *Config) any { return &c.RetryBudget.PerSecond }},
		{Name: "absorb_bytes", Default: "1MiB",
			Help: "bytes of an answer that are taken from the worker before the caller reads them",
			kind: byteSize{0, 64 * MiB}, field: func(c *Config) any { return &c.AbsorbBytes }},
		{Name: "stall_timeout", Default: "60s",
			Help: "how long a caller may move no byte of a call that holds a slot while others wait",
			kind: duration{time.Second, 24 * time.Hour, "for ever"}, field: func(c *Config) any { return &c.StallTimeout }},
		{Name: "max_hops", Default: "8",
			Help: "cabranks that a call may have come through; more is a cycle",
			kind: wholeNumber{1, 255}, field: func(c *Config) any { return &c.MaxHops }},
		{Name: "explain", Default: "false",
			Help: "whether answers carry cabrank-queue-ms and cabrank-worker in their trailers",
			kind: toggle{}, field: func(c *Config) any { return &c.Explain }},
	}
}

func pageKeys() []Key {
	return []Key{
		{Name: "probes.enabled", Env: "PROBES_ENABLED", Flag: "probes", Arg: "HOST:PORT|off", Default: "true",
			FlagFor: "where /startup, /readiness and /liveness answer",
			Help:    "whether /startup, /readiness and /liveness answer",
			kind:    toggle{}, field: func(c *Config) any { return &c.Probes.Enabled }},
		{Name: "probes.host", Flag: "probes", Default: "",
			Help: "interface of the probes (empty: every one)",
			kind: freeText{cleanHost, hostLegal}, field: func(c *Config) any { return &c.Probes.Host }},
		{Name: "probes.port", Env: "PROBES_PORT", Flag: "probes", Default: "5555",
			Help: "port of the probes (0: the system chooses)",
			kind: wholeNumber{0, maxPort}, field: func(c *Config) any { return &c.Probes.Port }},
		{Name: "metrics.enabled", Env: "METRICS_ENABLED", Flag: "metrics", Arg: "HOST:PORT|off", Default: "true",
			FlagFor: "where the metrics page answers",
			Help:    "whether the metrics page answers",
			kind:    toggle{}, field: func(c *Config) any { return &c.Metrics.Enabled }},
		{Name: "metrics.host", Flag: "metrics", Default: "",
			Help: "interface of the metrics page (empty: every one)",
			kind: freeText{cleanHost, hostLegal}, field: func(c *Config) any { return &c.Metrics.Host }},
		{Name: "metrics.port", Env: "METRICS_PORT", Flag: "metrics", Default: "9394",
			Help: "port of the metrics page (0: the system chooses)",
			kind: wholeNumber{0, maxPort}, field: func(c *Config) any { return &c.Metrics.Port }},
		{Name: "metrics.path", Env: "METRICS_PATH", Default: "/metrics",
			Help: "path of the metrics page",
			kind: freeText{cleanPath, "a path that begins with /"}, field: func(c *Config) any { return &c.Metrics.Path }},
		{Name: "metrics.interval", Env: "METRICS_INTERVAL", Default: "5s",
			Help: "taken from gruf-relay's files and without effect: the workers' own metrics pages are not read yet",
			kind: duration{min: 100 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.Metrics.Interval }},
		{Name: "log.level", Env: "LOG_LEVEL", Flag: "log-level", Arg: "LEVEL", Default: "info",
			Help: "least severe lines that are logged",
			kind: oneOf{words: []string{"debug", "info", "warn", "error"}}, field: func(c *Config) any { return &c.Log.Level }},
		{Name: "log.format", Env: "LOG_FORMAT", Flag: "log-format", Arg: "FORMAT", Default: "auto",
			Help:  "form of the lines; auto is text on a terminal, else json",
			kind:  oneOf{[]string{"auto", "text", "json"}, map[string]string{"pretty": "text"}}, // gruf-relay's word
			field: func(c *Config) any { return &c.Log.Format }},
	}
}

func limitKeys() []Key {
	return []Key{
		{Name: "refusals", Default: "No free threads in thread pool, Concurrent RPC limit exceeded!",
			Help: "grpc-message texts by which a worker says that it has no free thread",
			kind: list{cleanText, "texts", 100}, field: func(c *Config) any { return &c.Refusals }},
		{Name: "replay_bytes", Default: "64KiB",
			Help: "request bytes kept per call so that it can be sent to another worker",
			kind: byteSize{0, 16 * MiB}, field: func(c *Config) any { return &c.ReplayBytes }},
		{Name: "buffer_total", Default: "64MiB",
			Help: "bytes of all calls together that may be held in memory",
			kind: byteSize{MiB, 64 * GiB}, field: func(c *Config) any { return &c.BufferTotal }},
		{Name: "max_header_list", Default: "64KiB",
			Help: "largest header list of a call, as HTTP/2 counts it",
			kind: byteSize{4 * KiB, MiB}, field: func(c *Config) any { return &c.MaxHeaderList }},
		{Name: "max_concurrent_streams", Default: "250",
			Help: "calls that one caller's connection may have open",
			kind: wholeNumber{1, 1_000_000}, field: func(c *Config) any { return &c.MaxConcurrentStreams }},
		{Name: "limits.connections", Default: "20000",
			Help: "callers' connections at a time; fewer where the system allows fewer open files",
			kind: wholeNumber{1, 1_000_000}, field: func(c *Config) any { return &c.Limits.Connections }},
		{Name: "limits.handshake_timeout", Default: "5s",
			Help: "how long a caller's connection may take to begin",
			kind: duration{min: 100 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.Limits.HandshakeTimeout }},
		{Name: "limits.header_timeout", Default: "10s",
			Help: "how long a caller may take to send a call's headers, or another frame without data, to the end",
			kind: duration{100 * time.Millisecond, time.Hour, "for ever"}, field: func(c *Config) any { return &c.Limits.HeaderTimeout }},
		{Name: "limits.idle_timeout", Default: "1h",
			Help: "how long a caller's connection may be without a call, a tenth more or less",
			kind: duration{time.Second, 30 * 24 * time.Hour, "for ever"}, field: func(c *Config) any { return &c.Limits.IdleTimeout }},
		{Name: "limits.connection_age", Default: "0s",
			Help: "how old a caller's connection may be, a tenth more or less; its calls finish",
			kind: duration{time.Second, 30 * 24 * time.Hour, "any age"}, field: func(c *Config) any { return &c.Limits.ConnectionAge }},
		{Name: "limits.keepalive", Default: "5m",
			Help: "silence of an endpoint elsewhere, while calls run there, after which it has 20 s to answer a PING; many servers punish less than 5m",
			kind: duration{10 * time.Second, 24 * time.Hour, "never"}, field: func(c *Config) any { return &c.Limits.KeepAlive }},
		{Name: "limits.frame_size", Default: "16KiB",
			Help: "longest HTTP/2 frame that callers and workers may send",
			kind: byteSize{16 * KiB, MiB}, field: func(c *Config) any { return &c.Limits.FrameSize }},
		{Name: "limits.window", Default: "64KiB",
			Help: "bytes that a call may send before it has a slot",
			kind: byteSize{16 * KiB, MiB}, field: func(c *Config) any { return &c.Limits.Window }},
		{Name: "limits.max_window", Default: "1MiB",
			Help: "bytes of a running call that may be on their way or held, in each direction",
			kind: byteSize{64 * KiB, 16 * MiB}, field: func(c *Config) any { return &c.Limits.MaxWindow }},
		{Name: "limits.buffer_per_connection", Default: "16MiB",
			Help: "bytes held for one caller's connection beyond which its newest waiting calls, and new ones, are refused",
			kind: byteSize{64 * KiB, 16 * GiB}, field: func(c *Config) any { return &c.Limits.Buffer }},
		{Name: "limits.resets_per_second", Default: "1000",
			Help: "calls that one caller's connection may cancel in a second in the long run, twice as many at once; each call that is answered allows one more",
			kind: wholeNumber{1, 1_000_000}, field: func(c *Config) any { return &c.Limits.ResetsPerSecond }},
		{Name: "shards", Default: "usable CPUs",
			Help: "parts that share the connections, each served by one CPU at a time",
			kind: wholeNumber{1, maxShards}, field: func(c *Config) any { return &c.Shards },
			measured: func(m machine) int { return min(m.cpus, m.procs, maxShards) }},
	}
}
