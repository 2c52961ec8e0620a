package config

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/strictyaml"
	"github.com/cabrank/cabrank/internal/testkit"
)

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

func TestUnreadableFile(t *testing.T) {
	from := sources(nil)
	from.ReadFile = func(name string) ([]byte, error) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("permission denied")}
	}
	want := []string{`cabrank.yml: cannot read "cabrank.yml": permission denied; allowed: a readable YAML file`}
	got := faultsOf(t, from)
	testkit.Want(t, slices.Equal(got, want), "got %q", got)
}

// What is too much is told, and not repeated.
func TestTooMuch(t *testing.T) {
	many := func(n int, entry string) (all string) {
		for i := range n {
			all += strings.Replace(entry, "#", strconv.Itoa(i), 1) + ", "
		}
		return "{" + all + "}"
	}
	const methods = "/package.Service/Method or /package.Service/*, at most 200, or none"
	for text, want := range map[string]string{
		strings.Repeat("#", strictyaml.MostBytes+1):                                 "cabrank.yml: has more than 1048576 bytes; allowed: at most 1048576",
		"CABRANK_METHODS=" + strings.Repeat(" ", strictyaml.MostBytes+1):            "variable CABRANK_METHODS: methods: has more than 1048576 bytes; allowed: " + methods,
		"CABRANK_METHODS={}\n---\n{}":                                               "variable CABRANK_METHODS: methods: a second YAML document begins here; allowed: " + methods,
		"log: {level: " + strings.Repeat("x", 1000) + "}":                           `cabrank.yml:1: log.level: "` + strings.Repeat("x", strictyaml.MostQuoted) + `"... is unknown; allowed: debug, info, warn, error`,
		"methods: " + many(201, "/a.B/C#: {}"):                                      "cabrank.yml:1: methods: 201 entries are too many; allowed: " + methods,
		"lanes: {a: {methods: [/a.B/C" + strings.Repeat(", /a.B/C", 200) + "]}}":    "cabrank.yml:1: lanes[a].methods: 201 items are too many; allowed: " + methods,
		"fair.weights: " + many(1001, "k#: 1"):                                      "cabrank.yml:1: fair.weights: 1001 entries are too many; allowed: values of fair.key with weights of 0.01 to 1000, at most 1000, or none",
		"workers.env: {A: " + strings.Repeat("x", maxVariable+1) + "}":              "cabrank.yml:1: workers.env[A]: has 32769 bytes; allowed: text of at most 32768 bytes",
		"workers.command: a" + strings.Repeat(" a", maxArguments):                   "cabrank.yml:1: workers.command: 1001 words are too many; allowed: a program and its arguments, at most 1000 words, or none",
		"warm_up: {method: /a.B/C, message: " + strings.Repeat("AAAA", 22000) + "}": "cabrank.yml:1: warm_up.message: has 66000 bytes; allowed: base64 of at most 64KiB, or none",
	} {
		from := sources(map[string]string{"cabrank.yml": text})
		if strings.HasPrefix(text, "CABRANK_") {
			from = sources(nil, text)
		}
		got := faultsOf(t, from)
		testkit.Want(t, slices.Equal(got, []string{want}), "got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
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
		testkit.Need(t, err == nil || errors.As(err, &faults), "error %v is no Faults", err)
		for _, fault := range faults {
			testkit.Want(t, !strings.ContainsAny(fault.Error(), "\r\n"), "fault of more than one line: %q", fault.Error())
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
