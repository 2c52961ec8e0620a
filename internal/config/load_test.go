package config

import (
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/worker"
)

// sources returns what a machine with four CPUs and these files would give.
func sources(files map[string]string, environ ...string) Sources {
	return Sources{
		Environ: environ,
		CPUs:    4,
		Procs:   4,
		ReadFile: func(name string) ([]byte, error) {
			content, exists := files[name]
			if !exists {
				return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			return []byte(content), nil
		},
	}
}

func mustLoad(t *testing.T, from Sources) *Config {
	t.Helper()
	config, err := Load(from)
	testkit.Need(t, err == nil, "Load: %v", err)
	return config
}

// faultsOf returns the lines of Load's error, which must not be nil.
func faultsOf(t *testing.T, from Sources) []string {
	t.Helper()
	config, err := Load(from)
	testkit.Need(t, err != nil && config == nil, "Load accepted a wrong configuration: %+v", config)
	return strings.Split(err.Error(), "\n")
}

// Without any source the defaults are those of gruf-relay, except where
// cabrank says otherwise on purpose.
func TestDefaults(t *testing.T) {
	config := mustLoad(t, sources(nil))
	want := Config{
		Log:    Log{"info", "auto"},
		Listen: Listener{On: true, Port: 8080},
		Workers: worker.Settings{
			Count: worker.Amount{N: 4}, Slots: worker.Amount{N: 5}, Transport: "tcp", StartPort: 9000,
			MetricsPath: "/metrics", MinReady: 1, MaxSurge: 1, BootTimeout: time.Minute, StopTimeout: 5 * time.Second,
		},
		HealthCheck: HealthCheck{5 * time.Second, 5 * time.Second},
		Probes:      Listener{On: true, Port: 5555},
		Metrics:     Metrics{Listener: Listener{On: true, Port: 9394, Path: "/metrics"}, Interval: 5 * time.Second},
		Queue:       Queue{1000, 30 * time.Second, true, true},
		Fair:        Fair{Key: CallerKey{By: callers.ByPeer}},
	}
	if config.Log != want.Log || config.Listen != want.Listen || config.CallTimeout != 0 || !reflect.DeepEqual(config.Workers, want.Workers) ||
		config.HealthCheck != want.HealthCheck || config.Probes != want.Probes ||
		!reflect.DeepEqual(config.Metrics, want.Metrics) || config.Queue != want.Queue ||
		config.Fair.Key != want.Fair.Key || len(config.Fair.Weights)+len(config.Lanes)+len(config.Methods) != 0 {
		t.Errorf("defaults are %+v, want %+v", config, want)
	}
	if !reflect.DeepEqual(config.Hooks, want.Hooks) || !reflect.DeepEqual(config.WarmUp, want.WarmUp) || !reflect.DeepEqual(config.DNS, want.DNS) ||
		config.Recycle != want.Recycle || config.MaxRunTime != 0 || config.Control != "auto" {
		t.Errorf("defaults are %+v", config)
	}
	if config.DrainTimeout != 20*time.Second || config.PreStopDelay != 0 ||
		config.BufferTotal != 64<<20 || config.Shards != 4 || len(config.Upstreams) != 0 {
		t.Errorf("defaults are %+v", config)
	}
	if config.BalanceKey() != "" || config.OnCancel != 0 || config.CancelledSlots() != rank.Hold ||
		config.StreamSlots != 0 || config.StallTimeout != time.Minute ||
		config.HangTimeout != 30*time.Second || config.Explain {
		t.Errorf("defaults are %+v", config)
	}
	l := config.Limits
	testkit.Want(t, l.CallsPerSecond == 0 && l.KeyBurst() == 0 && l.Calls == 0, "limits per key are %+v", l)
	testkit.Want(t, slices.Equal(config.Command, DefaultCommand()), "command is %q", config.Command)
	testkit.Want(t, config.File == "" && len(config.Warnings) == 0, "file %q, warnings %q", config.File, config.Warnings)
}

func TestMeasuredDefaultsStayWithinTheirRanges(t *testing.T) {
	from := sources(nil)
	from.CPUs, from.Procs = 512, 384
	config := mustLoad(t, from)
	testkit.Want(t, config.Workers.Count.N == maxPortSpan-1 && config.Shards == maxShards,
		"512 CPUs give %d workers and %d shards", config.Workers.Count.N, config.Shards)
	from.CPUs, from.Procs = 8, 2
	if config = mustLoad(t, from); config.Workers.Count.N != 8 || config.Shards != 2 {
		t.Errorf("8 CPUs with GOMAXPROCS 2 give %d workers and %d shards", config.Workers.Count.N, config.Shards)
	}
}

// Every key and variable of gruf-relay still works under its name.
func TestGrufRelayNames(t *testing.T) {
	file := `
log: {level: warn, format: pretty}
server: {host: 127.0.0.1, port: 7000, proxy_timeout: 6s}
workers: {count: 3, start_port: 7100, metrics_path: /w, pool_size: 7}
health_check: {interval: 2s, timeout: 1s}
probes: {enabled: false, port: 7001}
metrics: {enabled: false, port: 7002, path: /m, interval: 9s}
`
	environ := []string{
		"LOG_LEVEL=warn", "LOG_FORMAT=pretty", "SERVER_HOST=127.0.0.1", "SERVER_PORT=7000", "SERVER_PROXY_TIMEOUT=6s",
		"WORKERS_COUNT=3", "WORKERS_START_PORT=7100", "WORKERS_METRICS_PATH=/w", "WORKERS_POOL_SIZE=7",
		"HEALTH_CHECK_INTERVAL=2s", "HEALTH_CHECK_TIMEOUT=1s", "PROBES_ENABLED=false", "PROBES_PORT=7001",
		"METRICS_ENABLED=false", "METRICS_PORT=7002", "METRICS_PATH=/m", "METRICS_INTERVAL=9s",
	}
	for name, from := range map[string]Sources{
		"file":        sources(map[string]string{"gruf-relay.yml": file}),
		"CONFIG_PATH": sources(map[string]string{"/etc/relay.yml": file}, "CONFIG_PATH=/etc/relay.yml"),
		"variables":   sources(nil, environ...),
	} {
		t.Run(name, func(t *testing.T) {
			c := mustLoad(t, from)
			if c.Log != (Log{"warn", "text"}) || c.Listen != (Listener{On: true, Host: "127.0.0.1", Port: 7000}) || c.CallTimeout != 6*time.Second ||
				c.Workers.Count.N != 3 || c.Workers.StartPort != 7100 || c.Workers.MetricsPath != "/w" || c.Workers.Slots.N != 7 ||
				c.HealthCheck != (HealthCheck{2 * time.Second, time.Second}) || c.Probes != (Listener{Port: 7001}) ||
				!reflect.DeepEqual(c.Metrics, Metrics{Listener: Listener{Port: 7002, Path: "/m"}, Interval: 9 * time.Second}) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestWhichFileIsRead(t *testing.T) {
	files := map[string]string{"cabrank.yml": "slots: 1", "gruf-relay.yml": "slots: 2", "env.yml": "slots: 3", "flag.yml": "slots: 4"}
	only := func(names ...string) map[string]string {
		some := map[string]string{}
		for _, name := range names {
			some[name] = files[name]
		}
		return some
	}
	tests := []struct {
		name  string
		from  Sources
		flag  string
		file  string
		slots int
	}{
		{"flag", sources(files, "CONFIG_PATH=env.yml"), "flag.yml", "flag.yml", 4},
		{"variable", sources(files, "CONFIG_PATH=env.yml"), "", "env.yml", 3},
		{"empty variable", sources(files, "CONFIG_PATH="), "", "cabrank.yml", 1},
		{"cabrank.yml", sources(files), "", "cabrank.yml", 1},
		{"gruf-relay.yml", sources(only("gruf-relay.yml")), "", "gruf-relay.yml", 2},
		{"none", sources(nil), "", "", 5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.flag != "" {
				test.from.Flags = map[string]string{"config": test.flag}
			}
			c := mustLoad(t, test.from)
			testkit.Want(t, c.File == test.file && c.Workers.Slots.N == test.slots,
				"read %q with %d slots, want %q with %d", c.File, c.Workers.Slots.N, test.file, test.slots)
		})
	}
}

// What is shown of a key can be written into a file, or a variable, and gives the same.
func TestShownValuesCanBeReadBack(t *testing.T) {
	from := sources(map[string]string{"cabrank.yml": ruleFile + `descriptors: ['busy, very', full]
socket.path: /ws
balance: ring_hash::authority
stream_slots: 4
limits: {calls_per_second: 0.5, calls: 3}
buffer_total: 2097153
slots: auto
hooks: {after_ready: [a, "b {index}"], before_stop: c d}
metrics.gauges: {b*: max, "c*": last}
tls: [{cert: a.crt, key: "/b c.key"}, {cert: "true", key: null.key}]
tls_client: {ca: /b c.pem, names: ["*.shop", 'spiffe://prod/*'], required: true}
upstreams: [tls:API:443, a:3]
upstream_tls: {ca: /b c.crt, cert: d.crt, key: d.key, name: E.internal}
`})
	from.Flags = map[string]string{"queue-timeout": "1h0m", "probes": "[::1]:0"}
	first := mustLoad(t, from)
	var file string
	var environ []string
	for _, key := range Keys() {
		shown := key.kind.show(key.field(first))
		environ = append(environ, key.Env+"="+shown)
		file += key.Name + ": " + strings.Replace(shown, "[::1]:0", `"[::1]:0"`, 1) + "\n"
	}
	for _, from := range []Sources{sources(map[string]string{"cabrank.yml": file}), sources(nil, environ...)} {
		again := mustLoad(t, from)
		for _, key := range Keys() {
			was, is := key.kind.show(key.field(first)), key.kind.show(key.field(again))
			testkit.Want(t, was == is, "%s was %q and is read back as %q", key.Name, was, is)
		}
	}
	wantRules(t, mustLoad(t, sources(nil, environ...)))
}

func TestTableIsConsistent(t *testing.T) {
	names := map[string]bool{}
	for _, key := range Keys() {
		for _, name := range append([]string{key.Name, key.Env}, key.Aliases...) {
			testkit.Want(t, !names[name], "%s appears twice", name)
			names[name] = true
		}
		testkit.Want(t, slices.Contains([]Applies{ByReload, ByRestart, ByUpgrade}, key.Applies), "%s: %v", key.Name, key.Applies)
		testkit.Want(t, key.Help != "" && !strings.HasSuffix(key.Help, ".") && key.Allowed() != "",
			"%s: help %q, allowed %q", key.Name, key.Help, key.Allowed())
	}
	if shown := allKeys()[:len(Keys())]; slices.ContainsFunc(shown, func(k Key) bool { return k.Hidden != "" }) {
		t.Error("hidden keys stand before others")
	}
	if slices.ContainsFunc(SocketFlags(), func(k Key) bool { return k.Name == "auth.doors" || k.Name == "socket.methods" }) {
		t.Error("what is about workers is a flag of sockets alone")
	}
	for _, flag := range Flags() {
		testkit.Want(t, flag.Arg != "", "--%s has no argument name", flag.Name)
	}
}
