package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/worker"
)

// Every new value is taken in every form that it may have.
func TestLifeOfWorkers(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": `
workers:
  count: 2-6
  max_surge: 2
  command: [ruby, worker.rb, --bind, "{addr}"]
  env: {DATABASE_URL: "postgres://db/{index}", THREADS: 5, EMPTY: ""}
hooks:
  before_start: bin/prepare {worker} {index}
  after_ready: ["sh", "-c", "echo ${port} {port}"]
warm_up:
  method: /shop.Catalog/Warm
  message: |
    CgNi
    b28=
recycle: {calls: 1000, age: 24h, memory: 512MiB}
max_run_time: 1m
control: run/cabrank.sock
listen: :8080 shared
upstreams: [DNS-is-a-name:1, "dns:Api.Internal:50051", "dns:api.internal.:50051", "srv:_grpc._tcp.api.internal"]
dns: {servers: [10.0.0.2, "[::1]:5353", "::1"]}
`}))
	w := c.Workers
	if w.Count != (worker.Amount{N: 4, Min: 2, Max: 6}) || w.MaxSurge != 2 || w.Env["DATABASE_URL"] != "postgres://db/{index}" || w.Env["THREADS"] != "5" || len(w.Env) != 3 {
		t.Errorf("workers are %+v", w)
	}
	if !slices.Equal(c.Command, []string{"ruby", "worker.rb", "--bind", "{addr}"}) || !c.RunsWorkers() {
		t.Errorf("command is %q", c.Command)
	}
	h := c.Hooks
	if !slices.Equal(h.BeforeStart, []string{"bin/prepare", "{worker}", "{index}"}) || len(h.AfterReady) != 3 || h.BeforeStop != nil {
		t.Errorf("hooks are %+v", h)
	}
	if c.WarmUp.Method != "/shop.Catalog/Warm" || string(c.WarmUp.Message) != "\n\x03boo" {
		t.Errorf("warm-up is %+v", c.WarmUp)
	}
	if want := (worker.Recycle{Calls: 1000, Age: 24 * time.Hour, Memory: worker.MemoryLimit{Bytes: int64(512 * MiB)}}); c.Recycle != want || c.MaxRunTime != time.Minute {
		t.Errorf("recycle is %+v, max_run_time %v", c.Recycle, c.MaxRunTime)
	}
	if c.Control != "run/cabrank.sock" || !c.Listen.Shared {
		t.Errorf("control is %q, shared %t", c.Control, c.Listen.Shared)
	}
	if want := []string{"DNS-is-a-name:1", "dns:api.internal:50051", "dns:api.internal.:50051", "srv:_grpc._tcp.api.internal"}; !slices.Equal(c.Upstreams, want) || IsName(want[0]) || !IsName(want[3]) {
		t.Errorf("upstreams are %q", c.Upstreams)
	}
	if want := []string{"10.0.0.2:53", "[::1]:5353", "[::1]:53"}; !slices.Equal(c.DNS.Servers, want) || len(c.Warnings) != 0 {
		t.Errorf("name servers are %q, warnings %q", c.DNS.Servers, c.Warnings)
	}
}

// The command after -- wins over that of the file, which as a variable is split
// at blanks; upstreams alone run no workers.
func TestCommandOfWorkers(t *testing.T) {
	for _, test := range []struct {
		file, variable string
		after          []string
		want           string
	}{
		{"", "", nil, strings.Join(DefaultCommand(), "|")},
		{"workers.command: [a, b c]", "", nil, "a|b c"},
		{"workers.command: a  b", "", nil, "a|b"},
		{"workers.command: a", "b  c {addr}", nil, "b|c|{addr}"},
		{"workers.command: a", `["b", "c d"]`, nil, "b|c d"},
		{"workers.command: a", "none", nil, strings.Join(DefaultCommand(), "|")},
		{"workers.command: a", "b", []string{"c"}, "c"},
		{"upstreams: [x:1]", "", nil, ""},
		{"upstreams: [x:1]", "b", nil, "b"},
		{"upstreams: [x:1]", "", []string{"c"}, "c"},
	} {
		var environ []string
		if test.variable != "" {
			environ = []string{"CABRANK_WORKERS_COMMAND=" + test.variable}
		}
		from := sources(map[string]string{"cabrank.yml": test.file}, environ...)
		from.Command = test.after
		c := mustLoad(t, from)
		if got := strings.Join(c.Command, "|"); got != test.want || c.RunsWorkers() != (got != "") {
			t.Errorf("%+v gives %q", test, got)
		}
	}
}

// Where the number adapts there are as many to begin with as otherwise, between the
// bounds.
func TestAutoWorkers(t *testing.T) {
	for file, want := range map[string]int{
		"workers: 1-9":                4,
		"workers: auto 1 - 3":         3,
		"workers: {count: 5-9}":       5,
		"workers: 2\nslots: 5-9":      2,
		"workers: 2\nworkers.env: {}": 2,
	} {
		if c := mustLoad(t, sources(map[string]string{"cabrank.yml": file})); c.Workers.Count.N != want {
			t.Errorf("%s begins with %d", file, c.Workers.Count.N)
		}
	}
}

func TestWorkerFaults(t *testing.T) {
	const (
		percents = "; allowed: 1% to 100% of the container's limit, 1MiB to 1024GiB, or 0: never"
		command  = "; allowed: a program and its arguments, at most 1000 words, or none"
		names    = "; allowed: host:port, unix:/path, dns:name:port, srv:name or tls:host:port, at most 1000, or none"
		words    = "allowed: {addr}, {host}, {port}, {index}, {worker}, {slots}, {threads}, {metrics_port}"
	)
	tests := []struct{ file, want string }{
		{"workers.count: auto", "workers.count: auto needs bounds, as in 2-16: the most are what the machine has memory for; allowed: 1 to 1000, or two of them as in 2-16"},
		{"workers: 4-3", "workers.count: 4 is above 3; allowed: 1 to 1000, or two of them as in 2-16"},
		{"workers: 1-", "workers.count: \"\" is not a number; allowed: 1 to 1000, or two of them as in 2-16"},
		{"workers: 0-2", "workers.count: \"0\" is out of range; allowed: 1 to 1000, or two of them as in 2-16"},
		{"workers.min: 2", "workers.min: now workers: MIN-MAX"},
		{"workers: {count: 1-3, min_ready: 2}", "workers.min_ready: 2 can never be ready: workers.count gives 1 (cabrank.yml:1); allowed: 1 to 1"},
		{"workers: {count: 2, max_surge: 0, min_ready: 2}", "workers.max_surge: 0 lets no roll begin: workers.min_ready 2 (cabrank.yml:1) is all of workers.count 2; allowed: 1 to 1000, or less min_ready"},
		{"workers: {count: 2, min_ready: 4, command: a}\nupstreams: [a:1]", "workers.min_ready: 4 can never be ready: workers.count gives 3 with the upstreams (cabrank.yml:1); allowed: 1 to 3"},
		{"workers: {count: 100, start_port: 20000}", "workers.count: 100 workers and 1 more in a roll on tcp run into their own metrics ports, 100 above; allowed: 1 to 99, or workers.transport unix"},
		{"workers: {count: 1-98, max_surge: 3, start_port: 20000}", "workers.count: 98 workers and 3 more in a roll on tcp run into their own metrics ports, 100 above; allowed: 1 to 97, or workers.transport unix"},
		{"workers: {max_surge: 100, start_port: 20000}", "workers.max_surge: 4 workers and 100 more in a roll on tcp run into their own metrics ports, 100 above; allowed: 0 to 99, or workers.transport unix"},
		{"server.port: 9004", "listen: 9004 is among the workers' ports 9000 to 9004 (workers.start_port 9000, default); allowed: a port outside them"},

		{"workers.command: sh -c 'secret'", `workers.command: has quotes or backslashes, which no shell reads; did you mean a list, as ["program", "an argument"]? allowed` + command[len("; allowed"):]},
		{"workers.command: []\nhooks: {after_ready: ['']}", "hooks.after_ready: has no program: its first word is empty" + command},
		{"workers.command: ' '", "workers.command: is empty" + command},
		{`hooks: {before_stop: ["a\0b"]}`, "hooks.before_stop: has a zero byte, which no argument can have" + command},
		{"workers.command: [a, {b: c}]", "workers.command: has an item that is not plain text" + command},
		{"hooks.timeout: 5s", "hooks.timeout: is gone: now fixed at workers.boot_timeout"},
		{"hooks: {timeout: 5s}", "hooks.timeout: is gone: now fixed at workers.boot_timeout"},
		{"hooks.before_stop: a", "hooks.before_stop: now hooks: {before_stop: ...}"},
		{"hooks: {before: a}", "hooks.before: unknown key; allowed: before_start, after_ready, before_stop"},
		{"workers.command: a {prot} {host", `workers.command: {prot} in word 2 is no placeholder; did you mean {port}? ` + words},
		{"workers.command: [a, '--bind={Addr}']", `workers.command: {Addr} in word 2 is no placeholder; did you mean {addr}? ` + words},
		{"workers.command: a {metric_port}", `workers.command: {metric_port} in word 2 is no placeholder; did you mean {metrics_port}? ` + words},
		{"workers: {transport: unix, env: {A: '{metrics_port}'}}", ""},
		{"hooks: {after_ready: 'a { hostname }'}", ""},
		{"hooks: {after_ready: [a, '{ hostname }']}", `hooks.after_ready: { hostname } in word 2 is no placeholder; did you mean {host}? ` + words},
		{"workers.env: {A: 'secret {wroker} {x}'}", `workers.env[A]: {wroker} is no placeholder; did you mean {worker}? ` + words},
		{"workers: {transport: unix, env: {A: 'secret {port}'}}", "workers.transport: a unix socket has no {port}, which workers.env[A] asks for; allowed: {addr} in its place, or transport tcp"},
		{"workers: {transport: unix}\nhooks: {before_stop: 'a {host}:1'}", `workers.transport: a unix socket has no {host}, which hooks.before_stop, word 2 asks for; allowed: {addr} in its place, or transport tcp`},

		{"workers.env: {1A: b}", "workers.env[1A]: is not the name of a variable; allowed: " + variablesLegal},
		{"workers.env: {PORT: 1}", "workers.env[PORT]: is set by cabrank; allowed: " + variablesLegal},
		{"workers.env: {CABRANK_ADDR: 1}", "workers.env[CABRANK_ADDR]: is set by cabrank; allowed: " + variablesLegal},
		{"workers.env: {RAILS_MAX_THREADS: 1}", "workers.env[RAILS_MAX_THREADS]: is set by cabrank, to three times workers.slots; allowed: " + variablesLegal},
		{"workers.env: {A: [secret]}", "workers.env[A]: is a list, not one value; allowed: text of at most 32768 bytes"},
		{"workers.env: {A: }", "workers.env[A]: has no value; allowed: text of at most 32768 bytes"},
		{`workers.env: {A: "secret\0"}`, "workers.env[A]: has a zero byte; allowed: text of at most 32768 bytes"},
		{"workers.env: {A: " + strings.Repeat("x", maxVariable+1) + "}", "workers.env[A]: has 32769 bytes; allowed: text of at most 32768 bytes"},
		{"workers.env: secret", "workers.env: has no entries of the form NAME: value; allowed: " + variablesLegal + ", at most 200, or none"},

		{"warm_up: {method: shop.Catalog/Warm}", `warm_up.method: "shop.Catalog/Warm" is not a method; did you mean /shop.Catalog/Warm? allowed: /package.Service/Method, or none`},
		{"warm_up: {method: /shop.Catalog/*}", `warm_up.method: "/shop.Catalog/*" is all methods of a service, not one; allowed: /package.Service/Method, or none`},
		{"warm_up: {message: AAAA}", "warm_up: has a message for no method; allowed: a method beside it"},
		{"warm_up: {message: secret}", "warm_up.message: is not base64; allowed: base64 of at most 64KiB, or none"},
		{"warm_up: {message: " + strings.Repeat("AAAA", 22000) + "}", "warm_up.message: has 66000 bytes; allowed: base64 of at most 64KiB, or none"},
		{"recycle.cgroup_memory: 90%", "recycle.cgroup_memory: now recycle.memory, as in 90%: bytes or a share, one of both"},
		{"recycle.memory: 0.9", `recycle.memory: "0.9" is not a share in percent; did you mean 90%?` + strings.Replace(percents, ";", "", 1)},
		{"recycle.memory: 90", "recycle.memory: \"90\" is out of range" + percents},
		{"recycle.memory: 101%", "recycle.memory: \"101%\" is out of range" + percents},
		{"recycle.memory: 0.5%", `recycle.memory: "0.5%" is not a share in whole percent` + percents},
		{"recycle.memory: 1KiB", "recycle.memory: \"1KiB\" is out of range" + percents},
		{"recycle.age: 1ms", "recycle.age: \"1ms\" is out of range; allowed: 1s to 8760h, or 0: never"},

		{"control: on", `control: "on" is not the path of a socket; allowed: auto, off, or the path of a unix socket, with a /`},
		{"control: /" + strings.Repeat("x", 100), `control: "/` + strings.Repeat("x", 59) + `"... has a path of more than 100 bytes; allowed: auto, off, or the path of a unix socket, with a /`},
		{"upstreams: [a:1, a:1]", `upstreams: "a:1" is there twice; allowed: each once`},
		{"upstreams: 'dns:///a:1'", `upstreams: "dns:///a:1" has slashes; did you mean dns:a:1? allowed` + names[len("; allowed"):]},
		{"upstreams: 'dns:a'", `upstreams: "dns:a" has no port, as in dns:a:50051` + names},
		{"upstreams: 'dns:a..b:1'", `upstreams: "a..b" is not a name that can be looked up` + names},
		{"upstreams: 'dns:10.0.0.1:1'", `upstreams: "dns:10.0.0.1:1" is an address, not a name; did you mean 10.0.0.1:1? allowed` + names[len("; allowed"):]},
		{"upstreams: 'srv:a:1'", `upstreams: "srv:a:1" has a port, and SRV records have their own` + names},
		{"upstreams: 'srv:" + strings.Repeat("x", 64) + "'", `upstreams: "` + strings.Repeat("x", 60) + `"... is not a name that can be looked up` + names},
		{"dns.servers: [ns.example.com]", `dns.servers: "ns.example.com" is not the address of a name server; allowed: ADDRESS or ADDRESS:PORT, at most 8, or none`},
		{"dns: {min_ttl: 10m}", "dns.min_ttl: is gone: now fixed at 1s"},
	}
	for _, test := range tests {
		t.Run(test.file[:min(len(test.file), 60)], func(t *testing.T) {
			from := sources(map[string]string{"cabrank.yml": test.file})
			if test.want == "" {
				mustLoad(t, from)
				return
			}
			got := faultsOf(t, from)
			_, line, _ := strings.Cut(got[0], ": ")
			if len(got) != 1 || line != test.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), test.want)
			}
			if strings.Contains(got[0], "secret") {
				t.Error("the fault repeats a value that may be a secret")
			}
		})
	}
}

// Words in braces that are no placeholders belong to the program, and $ to a shell.
func TestWhatIsNoPlaceholder(t *testing.T) {
	for _, argument := range []string{"{}", "{x}", "{name}", "${PORT}", "${prot}", `{"port": 1}`, "{addr", "{list}", "{{a}}", "{path}", "{id}", "{hosts_file}"} {
		from := sources(nil)
		from.Command = []string{"sh", argument}
		if _, err := Load(from); err != nil {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

// A command that comes later is judged like one of the configuration.
func TestCommandFits(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": "workers.transport: unix"}))
	for command, want := range map[string]string{
		"ruby --bind={addr} {x}": "",
		"ruby {adr}":             "command line: workers.command: {adr} in word 2 is no placeholder; did you mean {addr}?",
		"ruby {port}":            "a unix socket has no {port}",
	} {
		err := c.CommandFits(strings.Fields(command))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
	for _, command := range [][]string{{}, {""}, {"", "x"}} {
		if err := c.CommandFits(command); err == nil {
			t.Errorf("%q was accepted", command)
		}
	}
	if err := c.CommandFits(nil); err != nil {
		t.Errorf("no command: %v", err)
	}
}

// Names resolve to any number of endpoints, so nothing is too many for them.
func TestNamesHaveNoNumber(t *testing.T) {
	mustLoad(t, sources(map[string]string{"cabrank.yml": "upstreams: [dns:a:1]\nworkers.min_ready: 3\nstream_slots: 50\nlanes: {a: {methods: [/a.B/C], reserve: 20}}\n"}))
}

// What was written and has no effect is pointed out.
func TestWorkersWithoutEffect(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": `workers: {count: 4, env: {A: b}, slots: 2, min_ready: 1}
hooks: {after_ready: a}
recycle: {age: 1h}
warm_up: {method: /a.B/C}
dns: {servers: [10.0.0.2]}
upstreams: [a:1]
max_run_time: 1m
`}))
	var want []string
	for i, line := range []string{
		"1: workers.count has no effect: there are upstreams and no command, so that no workers run (cabrank.yml:6)",
		"1: workers.env has no effect: there are upstreams and no command, so that no workers run (cabrank.yml:6)",
		"5: dns.servers has no effect: no upstream begins with dns: or srv: (cabrank.yml:6)",
		"2: hooks has no effect: there are upstreams and no command, so that no workers run (cabrank.yml:6)",
		"4: warm_up has no effect: there are upstreams and no command, so that no workers run (cabrank.yml:6)",
		"3: recycle.age has no effect: there are upstreams and no command, so that no workers run (cabrank.yml:6)",
		"7: max_run_time has no effect: there are upstreams and no command, so that no workers run (cabrank.yml:6)",
	} {
		want = append(want, "cabrank.yml:"+line)
		if i >= len(c.Warnings) || c.Warnings[i] != want[i] {
			t.Fatalf("warnings are\n%s\nwant\n%s", strings.Join(c.Warnings, "\n"), want[i])
		}
	}
	if len(c.Warnings) != len(want) {
		t.Errorf("%d warnings: %q", len(c.Warnings), c.Warnings)
	}
}

// The values of variables are shown nowhere.
func TestVariablesAreHidden(t *testing.T) {
	c := mustLoad(t, sources(nil, "CABRANK_WORKERS_ENV={B: s3cret, A: s3cret}"))
	var shown []string
	for _, value := range c.Values() {
		shown = append(shown, fmt.Sprintf("%s %s", value.Key, value.Value))
	}
	if text := strings.Join(shown, "\n"); strings.Contains(text, "s3cret") || !strings.Contains(text, "workers.env A: (hidden)\nworkers.env B: (hidden)") {
		t.Errorf("shown are\n%s", text)
	}
}

// Every key says what makes a changed value hold.
func TestEveryKeySaysWhenItApplies(t *testing.T) {
	for _, key := range Keys() {
		if key.Applies < ByReload || key.Applies > ByUpgrade {
			t.Errorf("%s: %v", key.Name, key.Applies)
		}
	}
}

// With one slot in all no slot can be kept from streams, which is told.
func TestOneSlotIsTold(t *testing.T) {
	for file, want := range map[string][]string{
		"workers: {count: 1, pool_size: 1}\n": {"one slot in all (workers.count 1 x workers.slots 1): a stream that stays open keeps all other calls waiting"},
		"workers: {count: 1, pool_size: 2}\n": nil,
	} {
		if c := mustLoad(t, sources(map[string]string{"cabrank.yml": file})); !slices.Equal(c.Warnings, want) {
			t.Errorf("%s: warnings are %q, want %q", file, c.Warnings, want)
		}
	}
}
