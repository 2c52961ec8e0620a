package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// tree is the help of a small program.
func tree(args ...string) ([]byte, error) {
	text, found := map[string]string{
		"help": `cabrank does things_with_marks, such as <that> and *this*.

Exit status: 0 if all was done; 2 if not.

Usage:
  cabrank [flags]
  cabrank [command]

Examples:
  # one
  cabrank serve

  # two
  cabrank serve --out .

Available Commands:
  help        Explain a command
  serve       Serve it, with --out

Flags:
  -h, --help   help for cabrank

Additional help topics:
  cabrank help configuration   Every key

Use "cabrank [command] --help" for more information about a command.
`,
		"help serve": `Serve it

In its arguments, or:

  exec gruf --host {addr}

Usage:
  cabrank serve [flags] [-- CMD ARGS...]

Flags:
      --out FILE|-     where it goes, 'p99<200ms' [CABRANK_OUT] (default "-")
  -q, --quiet          say nothing
`,
	}[strings.Join(args, " ")]
	if !found {
		return nil, errors.New("no such command")
	}
	return []byte(text), nil
}

// manuals makes the pages of the small program.
func manuals(t *testing.T) *release {
	t.Helper()
	r := &release{product: service(), Version: "1.2.3", Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.Root = sources(t, map[string]string{"docs/configuration.md": "# Configuration\n\nText.\n"})
	must(t, r.readManuals(tree))
	return r
}

func TestPageForEachCommand(t *testing.T) {
	var names []string
	for _, page := range manuals(t).Manuals {
		names = append(names, page.Name)
	}
	want := []string{"man/man1/cabrank-serve.1", "man/man1/cabrank.1", "man/man5/cabrank.yml.5"}
	check(t, slices.Equal(names, want), "pages %q, want %q", names, want)
}

// What roff and Markdown take for marks means itself, flags have the minus that people
// type, and indented lines stay lines.
func TestPages(t *testing.T) {
	r := manuals(t)
	for i, want := range [][]string{
		{
			`.TH "CABRANK-SERVE" "1" "2026-01-02" "cabrank 1.2.3" "Cabrank"`,
			`cabrank\-serve \- serve it, with \-\-out`,
			`\fBcabrank serve\fP [flags] [\-\- CMD ARGS...]`,
			".EX\n  exec gruf \\-\\-host {addr}\n.EE",
			".TP\n\\fB\\-\\-out\\fP \\fIFILE|\\-\\fP\nwhere it goes, 'p99<200ms' [CABRANK_OUT] (default \"\\-\")",
			".TP\n\\fB\\-q\\fP, \\fB\\-\\-quiet\\fP\nsay nothing",
			`\fBcabrank(1)\fP, \fBcabrank.yml(5)\fP, https://github.com/cabrank/cabrank`,
		},
		{
			"things_with_marks, such as <that> and *this*",
			".SH EXIT STATUS\n0 if all was done; 2 if not.",
			".TP\n\\fBserve\\fP\nServe it, with \\-\\-out",
			"  # one\n  cabrank serve\n\n  # two\n  cabrank serve \\-\\-out .",
		},
	} {
		page := string(r.Manuals[i].Content)
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("%s has no\n%s\nin\n%s", r.Manuals[i].Name, part, page)
			}
		}
		if strings.Contains(page, "Exit status:") || strings.Contains(page, "help topics") {
			t.Errorf("%s has a part that was to be left out:\n%s", r.Manuals[i].Name, page)
		}
	}
}

func TestHelpOfAnotherForm(t *testing.T) {
	for _, text := range []string{
		"",
		"no usage",
		"text\n\nUsage:\n  cabrank\n\nFlags:\n  --flag and no text\n",
		"text\n\nUsage:\n  cabrank\n\nAvailable Commands:\n  alone\n",
	} {
		h, err := parseHelp(text)
		check(t, err != nil, "%q is help: %+v", text, h)
	}
	r := release{product: service(), Root: t.TempDir()}
	if err := r.readManuals(func(...string) ([]byte, error) { return nil, errors.New("broken") }); err == nil {
		t.Error("pages of a program that says nothing")
	}
}

func TestConfigurationPage(t *testing.T) {
	doc := "# Configuration\n\n<!-- Made from\nkeys.go -->\n\nSee [control.md](control.md), [below](#part).\n\n" +
		"| key | flag | default | meaning |\n|---|---|---|---|\n| `a.b` | `--a` | \"\" | what it is (0: not) |\n| `c` |  | 5 | more |\n\n## Part\n\nEnd.\n"
	want := "# NAME\ncabrank.yml - configuration of cabrank\n\n# DESCRIPTION\nSee control.md, below.\n\n" +
		"`a.b`\n: what it is (0: not). flag: `--a`; default: \"\"\n\n`c`\n: more. default: 5\n\n\n# Part\n\nEnd.\n\n# SEE ALSO\n"
	got := configurationPage(doc)
	check(t, strings.HasPrefix(got, want), "got\n%s\nwant\n%s", got, want)
}

func TestCompletions(t *testing.T) {
	r := release{product: service()}
	err := r.readCompletions(func(args ...string) ([]byte, error) { return []byte("script of " + strings.Join(args, " ")), nil })
	need(t, err == nil && len(r.Completions) == 3, "%d scripts, %v", len(r.Completions), err)
	for i, want := range []string{
		"bash-completion/completions/cabrank: script of completion bash",
		"fish/vendor_completions.d/cabrank.fish: script of completion fish",
		"zsh/site-functions/_cabrank: script of completion zsh",
	} {
		if got := r.Completions[i].Name + ": " + string(r.Completions[i].Content); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
