package config

import (
	"bytes"
	"flag"
	"fmt"
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
	testkit.Want(t, bytes.Equal(got, want), "%s is not current: run go test ./internal/config -update\n%s", name, got)
}

// docs/configuration.md is made from testdata/configuration.tmpl and the table of keys.
func TestConfigurationDocument(t *testing.T) {
	golden(t, "../../docs/configuration.md", []byte(document(t)))
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
	testkit.Want(t, regexp.MustCompile(`(?m)^command +default +none$`).MatchString(table.String()), "got\n%s", table.String())
}

// document is what is written by hand, with its tables filled.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/configuration.tmpl")
	testkit.Must(t, err)
	var keys, parts strings.Builder
	for _, key := range Keys() {
		name, flagName := "`"+key.Name+"`", ""
		if len(key.Aliases) > 0 {
			name += " (also `" + strings.Join(key.Aliases, "`, `") + "`)"
		}
		if key.Flag != "" {
			flagName = "`--" + key.Flag + "`"
		}
		allowed := strings.ReplaceAll(key.Allowed(), "|", "\\|")
		fmt.Fprintf(&keys, "| %s | %s | `%s` | %s | %s | %s | %s |\n", name, flagName, key.Env, key.Default, key.Applies, allowed, key.Help)
		for _, part := range key.parts() {
			fmt.Fprintf(&parts, "| `%s` | %s | %s | %s |\n", part.Name, part.Default, part.Allowed(), part.Help)
		}
	}
	command := DefaultCommand()
	return strings.NewReplacer("{{command}}", showCommand(&command), "{{keys}}", keys.String(), "{{parts}}", parts.String()).Replace(string(text))
}

// What the document shows as an example is taken, in both forms.
func TestDocumentExamples(t *testing.T) {
	block := func(language string) string {
		_, after, _ := strings.Cut(document(t), "```"+language+"\n")
		text, _, _ := strings.Cut(after, "```")
		return text
	}
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": block("yaml")}))
	testkit.Want(t, len(c.Lanes) == 2 && len(c.Methods) == 2 && len(c.Fair.Weights) == 2 && len(c.Warnings) == 0, "the file gives %+v", c)
	environ := strings.Split(strings.TrimSpace(strings.ReplaceAll(block("sh"), "'", "")), "\n")
	c = mustLoad(t, sources(nil, environ...))
	testkit.Want(t, len(c.Lanes) == 1 && len(c.Methods) == 1 && len(c.Fair.Weights) == 2 && len(c.Warnings) == 0,
		"the variables give %+v", c)
}
