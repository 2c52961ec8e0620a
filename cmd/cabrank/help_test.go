package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
)

// What cobra says of a command, --help says, too: a group, an alias or a flag that
// all commands have would be missing here.
func TestUsageHasTheFormOfCobra(t *testing.T) {
	ours, theirs := newRootCommand(), newRootCommand()
	cli.SetUsage(ours, 0)
	var compare func(ours, theirs *cobra.Command)
	compare = func(ours, theirs *cobra.Command) {
		ours.InitDefaultHelpFlag()
		theirs.InitDefaultHelpFlag()
		// cobra shows a topic as if it were a command.
		want := strings.Replace(theirs.UsageString(), "  cabrank configuration ", "  cabrank help configuration   ", 1)
		if got := ours.UsageString(); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", ours.CommandPath(), got, want)
		}
		for i, child := range ours.Commands() {
			compare(child, theirs.Commands()[i])
		}
	}
	compare(ours, theirs)
}

// The help of a narrow terminal keeps its columns.
func TestHelpFitsTheTerminal(t *testing.T) {
	flags := func(width int) (lines []string) {
		var out bytes.Buffer
		root := newRootCommand()
		root.SetOut(&out)
		root.SetArgs([]string{"run", "--help"})
		cli.SetUsage(root, width)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(out.String(), "\nFlags:\n")
		if !found {
			t.Fatalf("no flags in\n%s", out.String())
		}
		return strings.Split(after, "\n")
	}
	narrow, unlimited := flags(80), flags(0)
	if len(narrow) <= len(unlimited) {
		t.Errorf("%d lines with 80 columns, %d without a limit", len(narrow), len(unlimited))
	}
	for _, line := range narrow {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if width := cli.HelpWidth(&bytes.Buffer{}); width != 0 {
		t.Errorf("a buffer is %d columns wide", width)
	}
}
