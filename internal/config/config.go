package config

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/scrape"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/worker"
)

// Config is the effective configuration of one cabrank process, and the table of its keys:
// the tags say all of each (see Key).
//
// It is made by Load, is complete and consistent, and is not changed
// afterwards; reading it from several goroutines is safe.
type Config struct {
	Listen      Listener       `key:"listen" kind:"door" parts:"server.host=Host server.port=Port" flag:"listen" arg:"HOST:PORT" default:":8080" change:"upgrade" help:"where callers come in (no host: every interface; port 0: the system chooses)"`
	CallTimeout time.Duration  `key:"call_timeout" also:"server.proxy_timeout" env:"SERVER_PROXY_TIMEOUT" default:"0s" range:"1ms..24h" zero:"none" change:"reload" help:"bound on every call, on top of the caller's own deadline"`
	Proxies     []netip.Prefix `key:"proxies" docs:"callers" kind:"networks" default:"none" change:"reload" help:"addresses of proxies in front: from these the last entry of x-forwarded-for that is not among them is the caller's address"`
	Control     string         `key:"control" docs:"control" kind:"control" flag:"control" arg:"auto|off|PATH" default:"auto" change:"upgrade" help:"unix socket by which cabrank status, restart and the like reach this process; auto is one of its own in the runtime directory"`

	// Of the port, the first for who names none; empty: no TLS.
	TLS       []certs.Pair  `key:"tls" docs:"callers" kind:"pairs" default:"none" change:"reload" help:"certificates by which the port serves TLS: of the name that a caller asks for, otherwise the first; files that change are read again"`
	TLSClear  string        `key:"tls_clear" docs:"callers" oneof:"refuse|allow" default:"refuse" change:"reload" help:"whether a port that serves TLS serves callers without it, too"` // see ServesClear
	TLSClient certs.Clients `key:"tls_client" docs:"callers" kind:"clients" default:"none" change:"reload" help:"certificates by which callers over TLS show who they are"`

	// Workers, Hooks and WarmUp have placeholders (see there), and each hook and the warm-up may
	// take Workers.BootTimeout. These are options of the parts that go by them, which have the tags.
	Workers worker.Settings `key:"workers" docs:"workers"`

	// "host:port", "unix:/path", "dns:name:port" or "srv:name", "tls:" before the first or third; each once.
	Upstreams   []string   `key:"upstreams" docs:"upstreams" kind:"upstreams" flag:"upstream" arg:"A,B" default:"none" change:"reload" help:"endpoints that someone else runs, by address or looked up: in place of workers, or beside them if there is a command"`
	UpstreamTLS certs.Peer `key:"upstream_tls" docs:"upstreams" kind:"peers" default:"none" change:"reload" help:"how upstreams with the mark tls: are known, and what they are shown; files that change are read again"`
	DNS         DNS        `key:"dns" docs:"upstreams"`

	HealthCheck  HealthCheck    `key:"health_check"`
	DrainTimeout time.Duration  `key:"drain_timeout" docs:"control" flag:"drain-timeout" arg:"TIME" default:"20s" range:"0s..24h" change:"reload" help:"how long calls may finish when cabrank stops, or the worker that they run on"`
	PreStopDelay time.Duration  `key:"pre_stop_delay" docs:"control" flag:"pre-stop-delay" arg:"TIME" default:"0s" range:"0s..1h" change:"reload" help:"how long all stays open after readiness is off, before the drain"`
	Hooks        worker.Hooks   `key:"hooks" docs:"workers" kind:"hooks" default:"none" change:"restart" secret:"yes" help:"commands that are run around the life of each worker; each may take workers.boot_timeout"`
	WarmUp       worker.WarmUp  `key:"warm_up" docs:"workers" kind:"warmup" default:"none" change:"restart" secret:"yes" help:"call that each worker has to answer before it gets others; it may take workers.boot_timeout"`
	Recycle      worker.Recycle `key:"recycle" docs:"workers"`
	HangTimeout  time.Duration  `key:"hang_timeout" docs:"worker-health" default:"30s" range:"1s..24h" zero:"never" change:"reload" help:"silence of a worker that has calls and uses no CPU, after which it is replaced"` // R6
	MaxRunTime   time.Duration  `key:"max_run_time" docs:"workers" default:"0s" range:"1s..720h" zero:"for ever" change:"reload" help:"how long a worker may burn CPU for one call before it is replaced"`

	Balance      string             `key:"balance" docs:"rank" kind:"balance" flag:"balance" arg:"POLICY" default:"late_binding" change:"upgrade" help:"how a call gets its endpoint: the best that is free, or with ring_hash the same one for the same NAME while it is free"`
	Queue        Queue              `key:"queue" docs:"rank"`
	StreamSlots  int                `key:"stream_slots" docs:"rank" default:"auto" range:"1..100000000" word:"auto=0" change:"reload" help:"slots of all endpoints together that long streams may hold; auto is all but one, at least half"`              // R8
	OnCancel     rank.OnCancel      `key:"on_cancel" docs:"rank" kind:"cancel" default:"auto" change:"reload" help:"slot of a cancelled call: hold until the worker must be done, free at once, finish the call; auto holds, or frees where slots adapt"` // R5; see CancelledSlots
	StallTimeout time.Duration      `key:"stall_timeout" docs:"life-of-a-call" default:"60s" range:"1s..24h" zero:"for ever" change:"reload" help:"how long a caller may move no byte of a call that holds a slot while others wait"`                     // R9
	Fair         Fair               `key:"fair" docs:"callers"`
	Lanes        []relay.Lane       `key:"lanes" docs:"rank" kind:"lanes" default:"none" change:"upgrade" help:"classes of calls with a priority and slots of their own"`              // in the order in which they are written
	Methods      []stats.MethodRule `key:"methods" docs:"life-of-a-call" kind:"rules" default:"none" change:"reload" help:"how calls of a method are bounded, repeated and cancelled"` // whole names first
	Explain      bool               `key:"explain" docs:"life-of-a-call" default:"false" change:"reload" help:"whether answers carry cabrank-queue-ms and cabrank-worker in their trailers"`

	Probes    Listener  `key:"probes" kind:"probes" parts:"probes.enabled=On probes.port=Port" flag:"probes" arg:"HOST:PORT|off" default:":5555" change:"upgrade" help:"where /startup, /readiness and /liveness answer"`
	Metrics   Metrics   `key:"metrics" docs:"metrics"`
	Log       Log       `key:"log"`
	AccessLog AccessLog `key:"access_log" docs:"metrics"`
	Tracing   Tracing   `key:"tracing" docs:"tracing"`

	// Bytes held by the process (R11).
	BufferTotal int64  `key:"buffer_total" default:"64MiB" range:"1MiB..64GiB" unit:"B" change:"reload" help:"bytes of all calls together that may be held in memory; fewer where the container has less"`
	Limits      Limits `key:"limits" docs:"callers"`
	Web         Web    `key:"web"`

	// Speak says what the workers speak. Descriptors describe their methods.
	Speak       string   `key:"speak" oneof:"grpc|any" default:"grpc" change:"upgrade" help:"what workers speak: grpc, into which gRPC-Web and Connect are translated, or any: what is not gRPC is passed on to them as it is"`
	OwnServices string   `key:"own_services" oneof:"all|health|none" default:"all" change:"reload" help:"which of gRPC's own services callers reach: all, health alone (no reflection), or none"`
	Descriptors []string `key:"descriptors" kind:"files" default:"none" change:"upgrade" help:"files that describe the methods that are called in JSON, of protoc --descriptor_set_out; none: workers do, by reflection"`

	Socket Socket `key:"socket" docs:"socket"`
	Auth   Auth   `key:"auth" docs:"socket-auth" kind:"auth" default:"none" change:"upgrade" help:"by which tokens callers show who they are, and what each may do (docs/socket-auth.md); none: nobody is asked"`

	Shards int `key:"shards" hidden:"variable" default:"usable CPUs" range:"1..256" change:"upgrade" help:"parts that share the connections, each served by one CPU at a time: more gain nothing, fewer leave CPUs idle"`

	// Command is what each worker runs, with its placeholders still in place (see
	// placeholders). It is empty where no workers are wanted: there are Upstreams,
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

// Web says which pages may call.
type Web struct {
	Origins []string `key:"origins" kind:"pages" default:"none" change:"reload" help:"origins of pages that may call from another host than the port's, with *. for all hosts below a domain; those of its own host always may"`
}

// HealthCheck is the rhythm in which endpoints are asked for their health.
type HealthCheck struct {
	Interval time.Duration `key:"interval" hidden:"gruf" env:"HEALTH_CHECK_INTERVAL" default:"5s" range:"10ms..1h" change:"reload" help:"how often; workers that serve calls are not asked, and one that is silent for longer is missed"`
	Timeout  time.Duration `key:"timeout" hidden:"gruf" env:"HEALTH_CHECK_TIMEOUT" default:"5s" range:"10ms..1h" change:"reload" help:"how long an answer may take: who takes longer is sick, or its machine is"`
}

// DNS says how the names among the upstreams are looked up.
type DNS struct {
	Servers []string `key:"servers" kind:"servers" default:"none" change:"upgrade" help:"name servers for upstreams that are names; none is those of the system"` // "address:port"
}

// Metrics is the metrics page.
type Metrics struct {
	Listener `key:"" also:"metrics.listen" kind:"metrics" parts:"metrics.enabled=On metrics.port=Port metrics.path=Path" flag:"metrics" arg:"HOST:PORT|off" default:":9394" change:"upgrade" help:"where the metrics page answers, at /metrics if no path is given"`

	Gauges   Gauges        `key:"gauges" kind:"gauges" default:"none" change:"upgrade" help:"how a gauge that several workers have is merged, by name; others are summed. per_worker: all metrics are shown for each worker, and none is summed"`
	Interval time.Duration `key:"interval" hidden:"gruf" env:"METRICS_INTERVAL" default:"5s" range:"100ms..1h" change:"reload" help:"how often the workers' own pages are read: often enough for any scraper, and it costs a worker nothing"`
}

// Gauges is how gauges of several workers are merged, by name, in which * stands for any
// letters.
type Gauges map[string]scrape.Policy

// PerWorker reports whether nothing is merged, whatever it is.
func (g Gauges) PerWorker() bool { _, all := g[""]; return all }

// Log says what is logged and how.
type Log struct {
	Level  string `key:"level" oneof:"debug|info|warn|error" env:"LOG_LEVEL" flag:"log-level" arg:"LEVEL" default:"info" change:"reload" help:"least severe lines that are logged"`
	Format string `key:"format" oneof:"auto|text|json" env:"LOG_FORMAT" flag:"log-format" arg:"FORMAT" default:"auto" change:"upgrade" help:"form of the lines; auto is text on a terminal, else json"`
}

// AccessLog is what is written of finished calls.
type AccessLog struct {
	Path   string  `key:"path" also:"access_log" kind:"log" default:"none" change:"upgrade" help:"file for a line of JSON about each finished call, opened anew on SIGUSR1 or when it was renamed; or stdout"`
	Sample float64 `key:"sample" default:"1" range:"0..1" change:"reload" help:"share of the calls that end well and within a second; all others are always written"`
}

// Tracing says where spans of calls go. OpenTelemetry's variables say more, see package trace.
type Tracing struct {
	Endpoint string  `key:"endpoint" kind:"collector" default:"none" change:"upgrade" help:"URL of a collector of OpenTelemetry, which gets spans of calls by OTLP over HTTP; env takes OTEL_EXPORTER_OTLP_ENDPOINT"`
	Sample   float64 `key:"sample" default:"0" range:"0..1" change:"reload" help:"share of the calls without a trace that begin one; those that come sampled always have spans"`
}

// Queue bounds the calls that wait for a slot.
type Queue struct {
	Length  int           `key:"length" flag:"queue" arg:"N" default:"1000" range:"0..1000000" change:"reload" help:"calls that may wait for a slot (0: nobody waits)"`
	Timeout time.Duration `key:"timeout" flag:"queue-timeout" arg:"TIME" default:"30s" range:"1ms..1h" change:"reload" help:"longest wait for a slot"` // R10

	// Always, but for benchmarks: without them calls are served in their order, and for callers who have gone.
	Shed        bool `key:"shed" hidden:"variable" default:"true" change:"reload" help:"whether what cannot end before its deadline is refused"` // R16
	NewestFirst bool `key:"newest_first" hidden:"variable" default:"true" change:"reload" help:"whether the newest call goes first while calls come too fast"`
}

// Fair says who shares the slots, and how.
type Fair struct {
	Key     CallerKey          `key:"key" kind:"caller" default:"peer" change:"reload" help:"by what callers are told apart that share the slots: their address, the authority, the value of a metadata key, or not at all"`
	Weights map[string]float64 `key:"weights" kind:"weights" default:"none" change:"reload" secret:"names" help:"shares of callers, by the value of fair.key; those not named have 1"`
}

// Limits bounds callers' connections, and what all calls of one Fair.Key may do together.
type Limits struct {
	Connections    int           `key:"connections" default:"20000" range:"1..1000000" change:"reload" help:"callers' connections at a time; fewer where the system allows fewer open files, or the container has less memory; an eighth is never one address's"`
	IdleTimeout    time.Duration `key:"idle_timeout" default:"1h" range:"1s..720h" zero:"for ever" change:"reload" help:"how long a caller's connection may be without a call, a tenth more or less"`
	ConnectionAge  time.Duration `key:"connection_age" default:"0s" range:"1s..720h" zero:"any age" change:"reload" help:"how old a caller's connection may be, a tenth more or less; its calls finish"`
	CallsPerSecond float64       `key:"calls_per_second" default:"0" range:"0.01..1000000" zero:"no limit" change:"reload" help:"calls that one fair.key may start per second, and as many at once"`
	Calls          int           `key:"calls" default:"0" range:"0..1000000" change:"reload" help:"calls of one fair.key that may run or wait at a time (0: no limit)"`
}

// Socket is callers over WebSocket: those of cabrank socket serve, and of cabrank run
// on the port of its calls.
type Socket struct {
	Paths       []string `key:"path" kind:"paths" flag:"socket-path" arg:"PATH" default:"none" change:"upgrade" help:"paths for callers over WebSocket, on the port of the calls; none: there are no sockets"`
	Origins     []string `key:"origin" kind:"origins" arg:"ORIGIN" default:"host" change:"reload" help:"origins of pages that may connect (host: that of the port itself); none is callers that are no page"` // empty: the host itself
	Redis       string   `key:"redis" docs:"socket-redis" kind:"redis" env:"CABRANK_REDIS" arg:"ADDRESS" default:"none" change:"upgrade" secret:"yes" help:"Redis or Valkey, Cluster or Sentinels, where callees and other servers are: HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// with TLS (docs/socket-redis.md); none: all is in one process"`
	ReadLimit   int64    `key:"read_limit" arg:"BYTES" default:"1MiB" range:"1..1GiB" unit:"B" change:"upgrade" help:"most bytes of a message that comes in"`
	CallCap     int      `key:"call_cap" arg:"N" default:"0" range:"0..1000000000" change:"upgrade" help:"most calls that wait for one URI (0: any number)"`
	MessageRate int      `key:"message_rate" arg:"N" default:"0" range:"0..1000000" change:"upgrade" help:"messages of a socket in a second, and as many at once after a pause; what is above is read later (0: any number)"`
	Push        Listener `key:"push" kind:"probes" arg:"HOST:PORT" default:"off" change:"upgrade" help:"where the application publishes to sockets and ends them, by HTTP and gRPC, or off; beyond loopback it needs a token"`
	PushToken   string   `key:"push_token" kind:"secret" arg:"FILE" default:"none" change:"upgrade" secret:"yes" help:"file with the token that requests of the application have to bring, at least 16 bytes; env:NAME: it is in that variable"`
	Methods     []string `key:"methods" kind:"methods" arg:"METHOD" default:"none" change:"upgrade" help:"gRPC methods of the workers that callers over WebSocket may call"`

	Serve SocketServe // of cabrank run the zero value: the usual bounds
}

// SocketServe is what cabrank socket serve has flags for beside those that are keys.
type SocketServe struct {
	socket.Options `key:""`

	TestFunctions bool  `key:"test-functions" default:"false" help:"answer test.echo, test.reverse, test.delay, test.nothing and test.count"`
	WaitingTotal  int64 `key:"waiting-total" arg:"BYTES" default:"64MiB" range:"1..1024GiB" unit:"B" help:"most bytes of calls that wait for a function"`
}

// SlogLevel returns Level as log/slog knows it.
func (l Log) SlogLevel() slog.Level {
	var level slog.Level
	// Load has let only the four words through, and all of them parse.
	_ = level.UnmarshalText([]byte(l.Level))
	return level
}

// KeyBurst returns the calls that one key may start at once: those of one second. It is
// 0 if there is no limit.
func (l Limits) KeyBurst() int {
	if l.CallsPerSecond == 0 {
		return 0
	}
	return max(1, int(l.CallsPerSecond))
}

// CancelledSlots returns what happens to the slot of a cancelled call where no rule of its
// method says otherwise. Auto holds fixed slots, which are threads that run on, and frees
// those of workers that can stop (R5).
func (c *Config) CancelledSlots() rank.OnCancel {
	if c.Workers.Slots.Adapts() {
		return cmp.Or(c.OnCancel, rank.Free)
	}
	return cmp.Or(c.OnCancel, rank.Hold)
}

// DefaultCommand returns what a worker runs when no command is given: the same
// as gruf-relay ran, with the address of the worker filled in later.
func DefaultCommand() []string {
	return []string{"bundle", "exec", "gruf", "--host", "{addr}", "--health-check", "--backtrace-on-error"}
}
