package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/testkit"
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
		testkit.Equal(t, ours.UsageString(), want, "%s", ours.CommandPath())
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
		testkit.Must(t, root.Execute())
		_, after, found := strings.Cut(out.String(), "\nFlags:\n")
		testkit.Need(t, found, "no flags in\n%s", out.String())
		return strings.Split(after, "\n")
	}
	narrow, unlimited := flags(80), flags(0)
	testkit.Want(t, len(narrow) > len(unlimited), "%d lines with 80 columns, %d without a limit", len(narrow), len(unlimited))
	for _, line := range narrow {
		testkit.Want(t, len(line) <= 80, "%d columns: %s", len(line), line)
	}
	testkit.Equal(t, cli.HelpWidth(&bytes.Buffer{}), 0, "columns of a buffer")
}

// Each command that people see has a test of the lane that runs it.
func TestCommandsArePromised(t *testing.T) {
	table := testkit.ReadFile(t, "../../test/promises.tsv")
	var ask func(*cobra.Command)
	ask = func(c *cobra.Command) {
		if c.Runnable() && !c.Hidden && !strings.Contains("\n"+string(table), "\n"+c.CommandPath()+"\t") {
			t.Errorf("test/promises.tsv names no test of %q", c.CommandPath())
		}
		for _, below := range c.Commands() {
			ask(below)
		}
	}
	ask(newRootCommand())
}
