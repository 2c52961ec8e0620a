package config

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the generated documents and golden files")

// golden compares got with a file, or writes the file under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		testkit.Must(t, os.WriteFile(name, got, 0o644))
		return
	}
	want, err := os.ReadFile(name)
	testkit.Must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not current: run go test ./internal/config -update\n%s", name, got)
	}
}

// docs/configuration.md is made from the table of keys.
func TestConfigurationDocument(t *testing.T) {
	var document bytes.Buffer
	writeDocument(&document)
	golden(t, "../../docs/configuration.md", document.Bytes())
}

func TestCheckTable(t *testing.T) {
	from := sources(map[string]string{"cabrank.yml": "# one value from each source\nworkers:\n  pool_size: 7 # gruf-relay's name\n"}, "SERVER_PORT=8081", "CABRANK_EXPLAIN=true")
	from.Flags = map[string]string{"metrics": "off", "queue-timeout": "90s"}
	from.Command = []string{"ruby", "worker.rb", "--bind", "{addr}", "two words"}
	var table bytes.Buffer
	testkit.Must(t, mustLoad(t, from).WriteTable(&table))
	golden(t, "testdata/check.golden", table.Bytes())
}

func TestUpstreamsNeedNoCommand(t *testing.T) {
	from := sources(nil)
	from.Flags = map[string]string{"upstream": "a:1"}
	var table bytes.Buffer
	testkit.Must(t, mustLoad(t, from).WriteTable(&table))
	if !regexp.MustCompile(`(?m)^command +default +none$`).MatchString(table.String()) {
		t.Errorf("got\n%s", table.String())
	}
}

const documentHead = `# Configuration

<!-- Made from internal/config by: go test ./internal/config -update -->

A value is looked for in the flags, then in the environment, then in the file;
the first that is found wins, else the default holds. The file is the first of
` + "`--config`, `CONFIG_PATH`, `./cabrank.yml` and `./gruf-relay.yml`" + `; a file named
by one of the first two must exist. Without a subcommand and with a file Cabrank runs. ` + "`cabrank check`" + ` prints every value with the
place it came from and starts nothing.

- Every source is checked, also where a stronger one wins. Each fault is one
  line with the place, the key, what is wrong and what is allowed; the exit
  status is 2.
- An empty variable counts as not set.
- Durations are written as Go writes them: ` + "`500ms`, `30s`, `1m30s`" + `.
- Sizes are bytes, or have a unit: ` + "`65536`, `64KiB`, `64MiB`" + `.
- Lists have commas between their items in variables and flags, and are YAML
  lists in the file. The word ` + "`none`" + ` is the empty list.
- Values with entries of your own (` + "`workers.env`, `fair.weights`, `lanes`," + `
  ` + "`methods`" + `) or with parts (` + "`hooks`, `warm_up`, `auth`, `tls_client`, `upstream_tls`" + `) are nested in
  the file, and the same as YAML or JSON text in a variable; [below](#weights-lanes-and-methods).
  The variable takes the place of all that the file has under that key.
- ` + "`cabrank check --explain KEY`" + ` tells of one key. gruf-relay's [names](why.md#keys-and-variables) are taken,
  too; other names that keys had once are answered with what is in their place.
- A setting that others make idle is a warning, in ` + "`cabrank check`" + ` and in the log. So is
  a variable that begins with ` + "`CABRANK_`" + ` and is none of Cabrank's, with the one that is meant,
  and an address that a service manager has opened elsewhere.
- An upstream that is Cabrank's own port is refused.
- Keys are nested in the file (` + "`queue:` over `length:`" + `) or dotted (` + "`queue.length:`" + `). Where a name is both
  a key and a section, the key alone may stand as its value: ` + "`workers: 4`" + `.
- Port 0 lets the system choose; the log line ` + "`listening`" + ` has the real address.
- A name is listened on at one of its addresses: ` + "`localhost:8080`" + ` mostly not on ` + "`::1`" + `. The
  log warns of the others; ` + "`:8080`" + ` is every interface.
- "Usable CPUs" are those of the machine, less what the affinity mask and the
  CPU quota of the control group (v1 or v2) take away, rounded up. The default
  of ` + "`workers.count`" + ` goes up to 99. As many parts of Cabrank share the connections, each
  served by one CPU at a time; the variable ` + "`CABRANK_SHARDS`" + ` says otherwise, for benchmarks, as
  ` + "`CABRANK_QUEUE_SHED` and `CABRANK_QUEUE_NEWEST_FIRST`" + ` do of [the queue](rank.md#how-long-a-queue).
- The command of the workers follows ` + "`--`" + ` on the command line, or is
  ` + "`workers.command`" + `. Without both it is
  ` + "`%s`" + `, or with
  ` + "`upstreams`" + ` nothing: then there are no workers.
- Commands and hooks are lists of words, or text that is split at blanks; no shell
  reads them. In them and in the values of ` + "`workers.env`" + ` ` + "`{addr}`" + ` stands for the
  worker's address (` + "`127.0.0.1:9000` or `unix:/path`" + `), ` + "`{host}` and `{port}`" + ` for its
  parts (tcp only), ` + "`{index}`" + ` for the number of its place from 0, ` + "`{worker}`" + ` for its
  name, ` + "`{slots}`" + ` for the calls that it gets at a time, ` + "`{threads}`" + ` for the threads
  that it should have for them, ` + "`{metrics_port}`" + ` for the port
  where its metrics page is asked for. What is nearly one of these, such as ` + "`{prot}`" + `, is
  refused.
- The values of ` + "`workers.env`, `socket.redis`, `socket.push_token`" + `
  and the ` + "`secret` of `auth`" + ` are shown nowhere.

[examples/cabrank.yml](../examples/cabrank.yml) has every key, with a word on what it
is for.

The column *change* says what makes a changed value hold while cabrank runs:
` + "`reload`" + ` (at once), ` + "`restart`" + ` (with the next process of each worker; it reloads
first) or ` + "`upgrade`" + ` (with the next cabrank).

| key | flag | variable | default | change | allowed | meaning |
|---|---|---|---|---|---|---|
`

const documentReload = `
## Changes while cabrank runs

` + "`cabrank reload`" + ` reads the same file, variables and flags again, as ` + "`cabrank restart`" + `
and SIGHUP do before they replace the workers ([control.md](control.md)). No
connection ends for it and no call fails.

- All of it is judged first, as by ` + "`cabrank check`" + `. If anything is wrong nothing
  changes, and every fault is told.
- What has the change *reload* holds at once: for calls that come or go on waiting,
  for health checks, for the next worker that is replaced. A call keeps the rule of its
  method and the time that it may wait; a connection its windows, its frame size and
  when it is idle or too old; with another ` + "`fair.key`" + ` the calls that come are other
  callers' on all connections, also on those that are there, and those that run or
  wait stay whose they are. A smaller ` + "`queue.length`" + ` or ` + "`limits.connections`" + `
  turns nobody away who is there already.
- What has the change *restart* or *upgrade* is named, by every reload until it
  holds. Workers that are replaced for other reasons meanwhile (a crash, recycling,
  ` + "`cabrank drain`" + `) start as before.
- What goes with the new values of *upgrade* keys alone is refused: with
  ` + "`slots: 50`" + ` not yet in force, ` + "`stream_slots: 100`" + ` is more than there are.
- A file that is replaced by another of its name is taken, also by a link that is
  switched, as Kubernetes does with a config map; nothing is taken by itself. If a file
  that was read at the start has gone, the reload is refused: all that it said would
  become the default. An empty file is taken.
- ` + "`workers.count`" + ` starts or drains workers if it has changed; what ` + "`cabrank scale`" + `
  asked for stays otherwise. ` + "`upstreams`" + ` that are named no more get no new calls, and
  their calls have ` + "`drain_timeout`" + ` to end. Whether there are workers at all
  (upstreams and no command) only an upgrade changes.
- The log has each change with the old and the new value, but for those that may be
  secrets: commands, ` + "`workers.env`, `hooks`, `warm_up`, `socket.redis`" + `,
  ` + "`socket.push_token`, the `secret` of `auth`" + `, the names under ` + "`fair.weights`" + ` and in ` + "`keys`" + `.
`

const documentRules = `
## Weights, lanes and methods

` + "```yaml" + `
fair:
  key: metadata:x-tenant         # callers are told apart by this
  weights: {checkout: 4, "nightly report": 0.25}

lanes:
  admin: {methods: [/shop.Admin/*], priority: 10, reserve: 1}
  batch: {keys: ["nightly report", importer], priority: -10}

methods:
  /shop.Catalog/*:
    idempotent: true
    retries: 2
    retry_on: [UNAVAILABLE, ABORTED]
  /shop.Catalog/Find:            # holds alone for this method
    idempotent: true
    hedge_after: 50ms
` + "```" + `

The same by variables:

` + "```sh" + `
CABRANK_FAIR_KEY=metadata:x-tenant
CABRANK_FAIR_WEIGHTS='{checkout: 4, "nightly report": 0.25}'
CABRANK_LANES='{admin: {methods: [/shop.Admin/*], priority: 10, reserve: 1}}'
CABRANK_METHODS='{"/shop.Catalog/Find": {"idempotent": true, "hedge_after": "50ms"}}'
` + "```" + `

- The names under ` + "`fair.weights`" + ` and in ` + "`keys`" + ` are values of ` + "`fair.key`" + `: with ` + "`peer`" + `
  addresses without a port (` + "`unix`" + ` for all that come over unix sockets), with
  ` + "`authority`" + ` names as callers send them.
- A pattern is ` + "`/package.Service/Method`, or `/package.Service/*`" + ` for all methods of a
  service. A whole name wins over a service, whatever stands first, and its rule
  holds alone: nothing is added from that of the service.
- A call is in the lane that has its method; if none has, in the lane that has its
  caller; if none has, in no lane. A method or a caller is in one lane only.
  ` + "`default`" + ` (the calls in no lane) and ` + "`streams`" + ` (long calls that wait, see
  ` + "`stream_slots`" + `) are names that are taken.
- All lanes together reserve fewer slots than there are.
- Only what is marked ` + "`idempotent`" + ` is retried or hedged. What provably has not
  started moves to another worker in any case, and needs no rule.
- A method that is hedged can be cancelled: its ` + "`on_cancel`" + ` is not ` + "`finish`" + `.

| part | default | allowed | meaning |
|---|---|---|---|
`

func writeDocument(w io.Writer) {
	fmt.Fprintf(w, documentHead, showCommand(DefaultCommand()))
	for _, key := range Keys() {
		name := "`" + key.Name + "`"
		if len(key.Aliases) > 0 {
			name += " (also `" + strings.Join(key.Aliases, "`, `") + "`)"
		}
		flagName := ""
		if key.Flag != "" {
			flagName = "`--" + key.Flag + "`"
		}
		allowed := strings.ReplaceAll(key.Allowed(), "|", "\\|")
		fmt.Fprintf(w, "| %s | %s | `%s` | %s | %s | %s | %s |\n", name, flagName, key.Env, key.Default, key.Applies, allowed, key.Help)
	}
	io.WriteString(w, documentReload)
	io.WriteString(w, documentRules)
	for _, key := range Keys() {
		for _, part := range key.parts() {
			fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", part.Name, part.Default, part.Allowed(), part.Help)
		}
	}
}

// What the document shows as an example is taken, in both forms.
func TestDocumentExamples(t *testing.T) {
	block := func(language string) string {
		_, after, _ := strings.Cut(documentRules, "```"+language+"\n")
		text, _, _ := strings.Cut(after, "```")
		return text
	}
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": block("yaml")}))
	if len(c.Lanes) != 2 || len(c.Methods) != 2 || len(c.Fair.Weights) != 2 || len(c.Warnings) > 0 {
		t.Errorf("the file gives %+v", c)
	}
	environ := strings.Split(strings.TrimSpace(strings.ReplaceAll(block("sh"), "'", "")), "\n")
	c = mustLoad(t, sources(nil, environ...))
	if len(c.Lanes) != 1 || len(c.Methods) != 1 || len(c.Fair.Weights) != 2 || len(c.Warnings) > 0 {
		t.Errorf("the variables give %+v", c)
	}
}
