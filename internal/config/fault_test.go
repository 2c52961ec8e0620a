package config

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// Each fault is one line with the place, the key, what is wrong and what is
// allowed.
func TestFileFaults(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"unknown key, near one", "server:\n  prot: 1", "cabrank.yml:2: server.prot: unknown key; did you mean server.port?"},
		{"unknown section, near one", "severs:\n  port: 1", "cabrank.yml:1: severs: unknown key; did you mean server?"},
		{"unknown key in a section", "queue:\n  colour: red", "cabrank.yml:2: queue.colour: unknown key; allowed: length, timeout"},
		{"in a section of gruf-relay's", "server:\n  colour: red", "cabrank.yml:2: server.colour: unknown key; allowed: host, port"},
		{"a key of before", "server:\n  reuse_port: true", "cabrank.yml:2: server.reuse_port: now listen: HOST:PORT shared"},
		{"a key of benchmarks, which have the variable", "queue: {shed: false}", "cabrank.yml:1: queue.shed: is gone: now fixed at true"},
		{"unknown key at the top", "colour: red", "cabrank.yml:1: colour: unknown key; allowed: access_log, auth, balance, buffer_total, call_timeout, control, descriptors, dns, drain_timeout, explain, fair, hang_timeout, hooks, lanes, " +
			"limits, listen, log, max_run_time, methods, metrics, on_cancel, own_services, pre_stop_delay, probes, proxies, queue, recycle, " +
			"socket, speak, stall_timeout, stream_slots, tls, tls_clear, tls_client, upstream_tls, upstreams, warm_up, web, workers"},
		{"merge key", "workers: &w {count: 1}\nserver:\n  <<: *w", "cabrank.yml:3: server.<<: merge keys are not taken; allowed: an alias in place of a value, as in port: *name"},
		{"anchor under a key of its own", "x-all: &all {count: 2}\nworkers: *all",
			"cabrank.yml:1: x-all: unknown key, in which nothing can be kept for aliases; allowed: the anchor (&name) where its value is used first"},
		{"anchors under a key of their own", "anchors:\n  port: &port 7\nserver: {port: *port}",
			"cabrank.yml:1: anchors: unknown key, in which nothing can be kept for aliases; allowed: the anchor (&name) where its value is used first"},
		{"unknown key with an alias", "workers: {count: &n 2}\nqueue: {lenght: *n}", "cabrank.yml:2: queue.lenght: unknown key; did you mean queue.length?"},
		{"wrong level", "workers:\ncount: 2", "cabrank.yml:2: count: unknown key; did you mean workers.count?"},
		{"wrong level, one of many", "port: 1", "cabrank.yml:1: port: unknown key; did you mean server.port or probes.port or metrics.port?"},
		{"name of a flag", "queue-timeout: 5s", "cabrank.yml:1: queue-timeout: unknown key; did you mean queue.timeout?"},
		{"tab", "workers:\n\tcount: 2", "cabrank.yml:2: is not valid YAML, here or below: a line begins with a tab" +
			"; allowed: key: value, keys of one section indented alike, with spaces"},
		{"tab further down", "workers:\n  count: 2\n\n\tmin_ready: 1", "cabrank.yml:4: is not valid YAML, here or below: a line begins with a tab" +
			"; allowed: key: value, keys of one section indented alike, with spaces"},
		{"tab on the first line", "\tworkers:\n  count: 2", "cabrank.yml:1: is not valid YAML, here or below: a line begins with a tab" +
			"; allowed: key: value, keys of one section indented alike, with spaces"},
		{"text with a sign of YAML", "workers:\n  count: 2\nbalance: @x\n", "cabrank.yml:3: is not valid YAML, here or below: text that begins with @, % or ` needs quotes" +
			"; allowed: key: value, keys of one section indented alike, with spaces"},
		{"not a number", "workers:\n  count: many", `cabrank.yml:2: workers.count: "many" is not a number; allowed: 1 to 1000, or two of them as in 2-16`},
		{"below the range", "workers: {count: 0}", "cabrank.yml:1: workers.count: \"0\" is out of range; allowed: 1 to 1000, or two of them as in 2-16"},
		{"far above the range", "server: {port: 99999999999999999999}", `cabrank.yml:1: server.port: "99999999999999999999" is out of range; allowed: 0 to 65535`},
		{"negative slots", "slots: -1", "cabrank.yml:1: workers.slots: \"-1\" is out of range; allowed: 1 to 100000, or two of them as in 2-16, or auto: 1-200"},
		{"duration without unit", "drain_timeout: 30", `cabrank.yml:1: drain_timeout: "30" has no unit, as in 30s; allowed: 0s to 24h`},
		{"not a duration", "drain_timeout: soon", `cabrank.yml:1: drain_timeout: "soon" is not a time such as 300ms, 10s or 2m; allowed: 0s to 24h`},
		{"negative duration", "server:\n  proxy_timeout: -5s", "cabrank.yml:2: call_timeout: \"-5s\" is out of range; allowed: 1ms to 24h, or 0: none"},
		{"so little that it makes no sense", "limits:\n  idle_timeout: 1ms", "cabrank.yml:2: limits.idle_timeout: \"1ms\" is out of range; allowed: 1s to 720h, or 0: for ever"},
		{"a bound that is fixed now", "limits: {frame_size: 8KiB}", "cabrank.yml:1: limits.frame_size: is gone: now fixed at 16KiB"},
		{"no connections", "limits: {connections: 0}", "cabrank.yml:1: limits.connections: \"0\" is out of range; allowed: 1 to 1000000"},
		{"zero interval", "metrics: {interval: 0s}", "cabrank.yml:1: metrics.interval: \"0s\" is out of range; allowed: 100ms to 1h"},
		{"not a size", "buffer_total: 1kb", `cabrank.yml:1: buffer_total: "1kb" is not a size in bytes, KiB, MiB or GiB; allowed: 1MiB to 64GiB`},
		{"size that would overflow", "buffer_total: 9223372036854775807GiB", "cabrank.yml:1: buffer_total: \"9223372036854775807GiB\" is out of range; allowed: 1MiB to 64GiB"},
		{"not a truth value", "probes: {enabled: maybe}", `cabrank.yml:1: probes.enabled: "maybe" is neither true nor false; allowed: true or false`},
		{"unknown word", "log: {level: loud}", `cabrank.yml:1: log.level: "loud" is unknown; allowed: debug, info, warn, error`},
		{"host with a port", "server: {host: 'a:80'}", `cabrank.yml:1: server.host: "a:80" is not a host; allowed: a host name or address, empty for every interface`},
		{"zero byte in a host", `server: {host: "127.0\0.0.1"}`, `cabrank.yml:1: server.host: "127.0\x00.0.1" is not a host; allowed: a host name or address, empty for every interface`},
		{"zero byte in a zone", `server: {host: "::1%a\0"}`, `cabrank.yml:1: server.host: "::1%a\x00" is not a host; allowed: a host name or address, empty for every interface`},
		{"escape in a path", `metrics: {path: "/\e[2J"}`, `cabrank.yml:1: metrics.path: "/\x1b[2J" is not a plain path; allowed: a path that begins with /`},
		{"zero byte in an upstream", `upstreams: ["a\0b:1"]`, `cabrank.yml:1: upstreams: "a\x00b" is not a host; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none`},
		{"zero byte in a socket", `upstreams: ["unix:/a\0"]`, `cabrank.yml:1: upstreams: "unix:/a\x00" has a control character; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none`},
		{"path without slash", "metrics: {path: metrics}", `cabrank.yml:1: metrics.path: "metrics" does not begin with /; allowed: a path that begins with /`},
		{"list for one value", "server: {port: [1, 2]}", "cabrank.yml:1: server.port: is a list, not one value; allowed: 0 to 65535"},
		{"section for a value", "server:\n  port:\n    a: 1", "cabrank.yml:2: server.port: is a section, not a value; allowed: 0 to 65535"},
		{"value for a section", "queue: 8080", "cabrank.yml:1: queue: is a section, not a value; allowed: keys under it: length, timeout"},
		{"value and section", "metrics: :1\nmetrics: {gauges: none}", "cabrank.yml:2: metrics: is there twice, first on line 1; allowed: one section with all its keys"},
		{"page with a path", "metrics: ':1/a b'", `cabrank.yml:1: metrics: "/a b" is not a plain path; allowed: HOST:PORT or HOST:PORT/PATH, port 0 to 65535, or off`},
		{"no value", "server:\n  port:\n", "cabrank.yml:2: server.port: has no value; allowed: 0 to 65535"},
		{"twice", "slots: 1\nworkers:\n  pool_size: 2", "cabrank.yml:3: workers.pool_size: is workers.slots, set twice, first on line 1; allowed: once"},
		{"twice by an alias", "workers:\n  pool_size: 2\nslots: 1", "cabrank.yml:3: slots: is workers.slots, set twice, first on line 2; allowed: once"},
		{"section twice", "workers:\n  count: 2\nslots: 1\nworkers:\n  min_ready: 1", "cabrank.yml:4: workers: is there twice, first on line 1; allowed: one section with all its keys"},
		{"section twice, of which one is empty", "fair:\nfair: {key: ip}", "cabrank.yml:2: fair: is there twice, first on line 1; allowed: one section with all its keys"},
		{"not a mapping", "- a\n- b", "cabrank.yml: is not a list of keys; allowed: lines of the form key: value"},
		{"second document", "slots: 1\n---\nslots: 2", "cabrank.yml:2: a second YAML document begins here; allowed: one document per file"},
		{"upstream with a password", "upstreams: ['http://me:secret@a:1']",
			"cabrank.yml:1: upstreams: an address with user information (before the @) is refused; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none"},
		{"upstream as a URL", "upstreams: ['http://a:1']", `cabrank.yml:1: upstreams: "http://a:1" is a URL, not an address; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none`},
		{"upstream without port", "upstreams: a", `cabrank.yml:1: upstreams: "a" is not HOST:PORT; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none`},
		{"upstream on port 0", "upstreams: a:0", `cabrank.yml:1: upstreams: "a:0" has port 0; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none`},
		{"upstream without host", "upstreams: ':1'", `cabrank.yml:1: upstreams: ":1" has no host; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none`},
		{"upstream on half an address", "upstreams: 'a/b:1'", `cabrank.yml:1: upstreams: "a/b" is not a host; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none`},
		{"relative socket", "upstreams: 'unix:a.sock'", `cabrank.yml:1: upstreams: "unix:a.sock" needs an absolute path, such as unix:/run/worker.sock; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none`},
		{"socket with a long path", "upstreams: 'unix:/" + strings.Repeat("x", 100) + "'", `cabrank.yml:1: upstreams: "unix:/` + strings.Repeat("x", 54) + `"... has a path of more than 100 bytes; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none`},
		{"path with a query", "metrics: {path: '/m?a'}", `cabrank.yml:1: metrics.path: "/m?a" is not a plain path; allowed: a path that begins with /`},
		{"endless value", "log: {level: " + strings.Repeat("x", 1000) + "}",
			`cabrank.yml:1: log.level: "` + strings.Repeat("x", 60) + `"... is unknown; allowed: debug, info, warn, error`},
		// The sample in gruf-relay's README, whose server block is indented wrongly.
		{"gruf-relay's sample", "log:\n  level: debug\n  format: json\nserver:\n  host: 0.0.0.0\n  port: 8080\n    proxy_timeout: 5s\n",
			"cabrank.yml:7: is not valid YAML, here or below: mapping values are not allowed in this context" +
				"; allowed: key: value, keys of one section indented alike, with spaces"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := faultsOf(t, sources(map[string]string{"cabrank.yml": test.file}))
			if !slices.Equal(got, []string{test.want}) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), test.want)
			}
		})
	}
}

func TestFlagAndVariableFaults(t *testing.T) {
	tests := []struct {
		name  string
		flags map[string]string
		env   string
		want  string
	}{
		{"flag", map[string]string{"workers": "0"}, "", "flag --workers: workers.count: \"0\" is out of range; allowed: 1 to 1000, or two of them as in 2-16"},
		{"variable", nil, "SERVER_PORT=abc", `variable SERVER_PORT: server.port: "abc" is not a number; allowed: 0 to 65535`},
		{"overridden all the same", map[string]string{"workers": "2"}, "WORKERS_COUNT=x", `variable WORKERS_COUNT: workers.count: "x" is not a number; allowed: 1 to 1000, or two of them as in 2-16`},
		{"new variable", nil, "CABRANK_WORKERS_MIN_READY=-1", "variable CABRANK_WORKERS_MIN_READY: workers.min_ready: \"-1\" is out of range; allowed: 1 to 1000"},
		{"listen without port", map[string]string{"listen": "8080"}, "", `flag --listen: listen: "8080" is not HOST:PORT; allowed: HOST:PORT, port 0 to 65535; with the word shared behind it others may listen there, too`},
		{"listen is never off", map[string]string{"listen": "off"}, "", `flag --listen: listen: "off" is not HOST:PORT; allowed: HOST:PORT, port 0 to 65535; with the word shared behind it others may listen there, too`},
		{"probes on a wrong port", map[string]string{"probes": ":70000"}, "", `flag --probes: probes: ":70000" has no port from 0 to 65535; allowed: HOST:PORT, port 0 to 65535, or off`},
		{"missing file by flag", map[string]string{"config": "no.yml"}, "", `flag --config: cannot read "no.yml": file does not exist; allowed: a readable YAML file`},
		{"empty file name", map[string]string{"config": ""}, "CONFIG_PATH=x.yml", `flag --config: cannot read "": file does not exist; allowed: a readable YAML file`},
		{"missing file by variable", nil, "CONFIG_PATH=no.yml", `variable CONFIG_PATH: cannot read "no.yml": file does not exist; allowed: a readable YAML file`},
		{"Kubernetes service link", nil, "METRICS_PORT=tcp://10.0.0.1:9394", `variable METRICS_PORT: metrics.port: "tcp://10.0.0.1:9394" is not a number` +
			" (set by Kubernetes for a Service of that name? enableServiceLinks: false stops it); allowed: 0 to 65535"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			from := sources(nil, test.env)
			from.Flags = test.flags
			if got := faultsOf(t, from); !slices.Equal(got, []string{test.want}) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), test.want)
			}
		})
	}
}

// A flag that there is not is told with what was meant, or how the key is set.
func TestSuggest(t *testing.T) {
	const noFlag = "; limits.idle_timeout has no flag: set it in the file or by the variable CABRANK_LIMITS_IDLE_TIMEOUT"
	for flag, want := range map[string]string{
		"wokers": "; did you mean --workers?", "limits.idle_timeout": noFlag, "idle-timeout": noFlag, "timeout": "", "slots-max": ": now slots: MIN-MAX",
	} {
		if got := Suggest(flag); got != want {
			t.Errorf("--%s%s, want %s", flag, got, want)
		}
	}
}

func TestContradictions(t *testing.T) {
	tests := []struct {
		name    string
		flags   map[string]string
		env     string
		command []string
		want    []string
	}{
		{"port of a socket", map[string]string{"transport": "unix"}, "", []string{"w", "--port={port}"}, // R19
			[]string{`flag --transport: workers.transport: a unix socket has no {port}, which workers.command, word 2 asks for; allowed: {addr} in its place, or transport tcp`}},
		{"too many to be ready", map[string]string{"min-ready": "3", "workers": "2"}, "", nil,
			[]string{"flag --min-ready: workers.min_ready: 3 can never be ready: workers.count gives 2 (flag --workers); allowed: 1 to 2"}},
		{"too few upstreams", map[string]string{"upstream": "a:1"}, "CABRANK_WORKERS_MIN_READY=2", nil,
			[]string{"variable CABRANK_WORKERS_MIN_READY: workers.min_ready: 2 can never be ready: upstreams gives 1 (flag --upstream); allowed: 1 to 1"}},
		{"probes on the door", map[string]string{"listen": ":5555"}, "", nil,
			[]string{"default: probes: 5555 is also listen (flag --listen); allowed: a port of its own, or 0"}},
		{"metrics on the probes", map[string]string{"metrics": "127.0.0.1:5555"}, "", nil,
			[]string{"flag --metrics: metrics: 5555 is also probes (default); allowed: a port of its own, or 0"}},
		{"door among the workers", map[string]string{"listen": ":9001"}, "", nil,
			[]string{"flag --listen: listen: 9001 is among the workers' ports 9000 to 9004 (workers.start_port 9000, default); allowed: a port outside them"}},
		{"metrics among the workers' metrics", nil, "WORKERS_START_PORT=9294", nil,
			[]string{"default: metrics: 9394 is among the workers' metrics ports 9394 to 9398 (workers.start_port 9294, variable WORKERS_START_PORT); allowed: a port outside them"}},
		{"no room above", map[string]string{"start-port": "65530"}, "", nil,
			[]string{"flag --start-port: workers.start_port: 65530 leaves no room for 4 workers and 1 more in a roll: the last metrics port would be 65634; allowed: 1 to 65431"}},
		{"workers in their own metrics", map[string]string{"workers": "101"}, "", nil,
			[]string{"flag --workers: workers.count: 101 workers and 1 more in a roll on tcp run into their own metrics ports, 100 above; allowed: 1 to 99, or workers.transport unix"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			from := sources(nil, test.env)
			from.Flags, from.Command = test.flags, test.command
			if got := faultsOf(t, from); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// What looks like a contradiction and is none.
func TestNoContradiction(t *testing.T) {
	for name, flags := range map[string]map[string]string{
		"port 0 everywhere":           {"listen": ":0", "probes": ":0", "metrics": ":0"},
		"one port, two addresses":     {"listen": "127.0.0.1:5555", "probes": "127.0.0.2:5555"},
		"a listener that is off":      {"listen": ":5555", "probes": "off"},
		"many workers on sockets":     {"workers": "150", "transport": "unix"},
		"a worker's port, on sockets": {"listen": ":9001", "transport": "unix"},
		"a worker's port, upstreams":  {"listen": ":9001", "upstream": "a:1"},
	} {
		from := sources(nil)
		from.Flags = flags
		if _, err := Load(from); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All faults of all sources are reported at once, in the order of the sources.
func TestEveryFaultIsReported(t *testing.T) {
	from := sources(map[string]string{"cabrank.yml": "slots: x\nserver:\n  port: y\n"}, "WORKERS_COUNT=z")
	from.Flags = map[string]string{"queue": "q"}
	want := []string{
		`cabrank.yml:1: workers.slots: "x" is not a number; allowed: 1 to 100000, or two of them as in 2-16, or auto: 1-200`,
		`cabrank.yml:3: server.port: "y" is not a number; allowed: 0 to 65535`,
		`variable WORKERS_COUNT: workers.count: "z" is not a number; allowed: 1 to 1000, or two of them as in 2-16`,
		`flag --queue: queue.length: "q" is not a number; allowed: 0 to 1000000`,
	}
	if got := faultsOf(t, from); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestUnreadableFile(t *testing.T) {
	from := sources(nil)
	from.ReadFile = func(name string) ([]byte, error) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("permission denied")}
	}
	want := []string{`cabrank.yml: cannot read "cabrank.yml": permission denied; allowed: a readable YAML file`}
	if got := faultsOf(t, from); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestOversizedFile(t *testing.T) {
	from := sources(map[string]string{"cabrank.yml": strings.Repeat("#", strictyaml.MostBytes+1)})
	want := []string{"cabrank.yml: has more than 1048576 bytes; allowed: at most 1048576"}
	if got := faultsOf(t, from); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// Whatever the file holds, Load answers with faults of one line each and never
// panics; nor does a reload of it, which leaves nothing to be told twice.
func FuzzFile(f *testing.F) {
	f.Add("server:\n  port: 8080\n")
	f.Add("a: &a [*a]\nserver: *a")
	f.Add("workers: &w {count: 1}\nserver: *w\n<<: *w")
	f.Add("? [a, b]\n: c")
	f.Add("upstreams: [a:1, {b: c}, ~]")
	f.Add(ruleFile)
	f.Add("methods: &m {/a.B/C: *m, <<: *m, ~: *m, ? [a]: b}\nlanes: *m\nfair: {weights: *m}")
	f.Add("workers: {command: [a, '{ prot }', \"{\\nport}\"], env: {A: \"{\\nprot}\", B: !!binary c}, count: 1-2}\nhooks: {after_ready: '[a, {b: c}]'}")
	f.Add("upstreams: ['dns:a:1', 'srv:a', 'dns:[::1]:2']\ndns: {servers: ['::1', '1.1.1.1:53']}\nrecycle: {memory: 50%}\nwarm_up: {message: AA==, method: /a/b}")
	f.Add("!!binary a: b\n---\n...\n%")
	f.Fuzz(func(t *testing.T, content string) {
		c, err := Load(sources(map[string]string{"cabrank.yml": content}))
		if err == nil {
			var merged *Config
			if merged, err = Merge(mustLoad(t, sources(nil)), c); err == nil {
				wantReloaded(t, merged, c)
			}
		}
		var faults Faults
		if err != nil && !errors.As(err, &faults) {
			t.Fatalf("error %v is no Faults", err)
		}
		for _, fault := range faults {
			if strings.ContainsAny(fault.Error(), "\r\n") {
				t.Errorf("fault of more than one line: %q", fault.Error())
			}
		}
	})
}

// What may be a secret is not repeated, whatever is wrong with it or beside it: words
// of commands, values of variables, callers that are told apart by metadata.
func TestFaultsRepeatNoSecret(t *testing.T) {
	const secret = "planted7f3a"
	for _, test := range []struct{ file, env, key string }{
		{file: "workers.command: [a, '--key=" + secret + " {prot}']", key: "workers.command"},
		{file: "workers: {transport: unix, command: [a, '--key=" + secret + ":{port}']}", key: "workers.transport"},
		{file: "workers.command: a '" + secret + "'", key: "workers.command"},
		{file: "workers.command: [a, *" + secret + "]", key: "is not valid YAML"},
		{file: "workers.command: [a, &" + secret + " [*" + secret + "]]", key: "workers.command"},
		{env: "CABRANK_WORKERS_COMMAND=[a, *" + secret + "]", key: "workers.command"},
		{env: "CABRANK_HOOKS={before_stop: [a, '" + secret + "{worker']}", key: ""},
		{file: "hooks: {before_start: [a, '" + secret + "{Worker}']}", key: "hooks.before_start"},
		{file: "workers: {transport: unix}\nhooks: {after_ready: [a, '" + secret + "{host}']}", key: "workers.transport"},
		{file: "workers.env: {A: *" + secret + "}", key: "is not valid YAML"},
		{file: "workers.env: {A: [" + secret + "]}", key: "workers.env[A]"},
		{file: "workers.env: {A=" + secret + ": }", key: "workers.env"},
		{file: "workers.env: {A=" + secret + ": 1, A=" + secret + ": 2}", key: "workers.env"},
		{file: "workers.env: ['A=" + secret + "']", key: "workers.env"},
		{env: "CABRANK_WORKERS_ENV={A: *" + secret + "}", key: "workers.env"},
		{env: "CABRANK_WORKERS_ENV=" + secret, key: "workers.env"},
		{file: "warm_up: {method: /a.B/C, message: '" + secret + "?'}", key: "warm_up.message"},
		{file: "fair.key: metadata:authorization\nfair.weights: {" + secret + ": 0}", key: "fair.weights"},
		{file: "fair.key: metadata:authorization\nfair.weights: {" + secret + ": 1, " + secret + ": 2}", key: "fair.weights"},
		{file: "fair.key: metadata:authorization\nfair.weights: {' " + secret + "': 1}", key: "fair.weights"},
		{file: "fair.key: metadata:authorization\nfair.weights: {" + secret + "ä: 1}", key: "fair.weights"},
		{file: "fair.weights: {" + secret + ": 1}", key: "fair.weights"},
		{file: "fair.key: metadata:authorization\nlanes: {a: {keys: [" + secret + ", " + secret + "]}}", key: "lanes[a].keys"},
		{file: "fair.key: metadata:authorization\nlanes: {a: {keys: [" + secret + "]}, b: {keys: [" + secret + "]}}", key: "lanes[b].keys"},
		{file: "lanes: {a: {keys: [" + secret + "]}}", key: "lanes[a].keys"},
		{file: "upstreams: ['http://me:" + secret + "@a:1']", key: "upstreams"},
	} {
		_, err := Load(sources(map[string]string{"cabrank.yml": test.file}, test.env))
		if (err == nil) != (test.key == "") {
			t.Errorf("%s%s: %v", test.file, test.env, err)
			continue
		}
		if err != nil && (strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), test.key)) {
			t.Errorf("%s%s: %v", test.file, test.env, err)
		}
	}
}
