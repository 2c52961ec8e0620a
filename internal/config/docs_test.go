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
)

var update = flag.Bool("update", false, "rewrite the generated documents and golden files")

// golden compares got with a file, or writes the file under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
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
	from := sources(map[string]string{"cabrank.yml": "# one value from each source\nworkers:\n  pool_size: 7\n"}, "SERVER_PORT=8081", "CABRANK_REFUSALS=busy")
	from.Flags = map[string]string{"metrics": "off", "queue-timeout": "90s"}
	from.Command = []string{"ruby", "worker.rb", "--bind", "{addr}", "two words"}
	var table bytes.Buffer
	if err := mustLoad(t, from).WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/check.golden", table.Bytes())
}

func TestUpstreamsNeedNoCommand(t *testing.T) {
	from := sources(nil)
	from.Flags = map[string]string{"upstream": "a:1"}
	var table bytes.Buffer
	if err := mustLoad(t, from).WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^command +default +none$`).MatchString(table.String()) {
		t.Errorf("got\n%s", table.String())
	}
}

const documentHead = `# Configuration

<!-- Made from internal/config/keys.go by: go test ./internal/config -update -->

A value is looked for in the flags, then in the environment, then in the file;
the first that is found wins, else the default holds. The file is the first of
` + "`--config`, `CONFIG_PATH`, `./cabrank.yml` and `./gruf-relay.yml`" + `; a file named
by one of the first two must exist. ` + "`cabrank check`" + ` prints every value with the
place it came from and starts nothing.

- Every source is checked, also where a stronger one wins. Each fault is one
  line with the place, the key, what is wrong and what is allowed; the exit
  status is 2.
- An empty variable counts as not set.
- Durations are written as Go writes them: ` + "`500ms`, `30s`, `1m30s`" + `.
- Sizes are bytes, or have a unit: ` + "`65536`, `64KiB`, `64MiB`" + `.
- Lists have commas between their items in variables and flags, and are YAML
  lists in the file. The word ` + "`none`" + ` is the empty list.
- Keys are nested in the file (` + "`server:` over `port:`" + `) or dotted (` + "`server.port:`" + `).
- Port 0 lets the system choose; the log line ` + "`listening`" + ` has the real address.
- "Usable CPUs" are those of the machine, less what the affinity mask and the
  CPU quota of the control group (v1 or v2) take away, rounded up. The default
  of ` + "`workers.count`" + ` goes up to 100, that of ` + "`shards`" + ` not above GOMAXPROCS.
- The command of the workers follows ` + "`--`" + ` on the command line. Without one it is
  ` + "`%s`" + `.

| key | flag | variable | default | allowed | meaning |
|---|---|---|---|---|---|
`

func writeDocument(w io.Writer) {
	fmt.Fprintf(w, documentHead, showCommand(DefaultCommand()))
	for _, key := range Keys() {
		name := "`" + key.Name + "`"
		for _, alias := range key.Aliases {
			name += " (also `" + alias + "`)"
		}
		flagName := ""
		if key.Flag != "" {
			flagName = "`--" + key.Flag + "`"
		}
		allowed := strings.ReplaceAll(key.Allowed(), "|", "\\|")
		fmt.Fprintf(w, "| %s | %s | `%s` | %s | %s | %s |\n", name, flagName, key.Env, key.ShownDefault(), allowed, key.Help)
	}
}
