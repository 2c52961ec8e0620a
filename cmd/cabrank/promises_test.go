package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command that people see has a test of the lane that runs it.
func TestCommandsArePromised(t *testing.T) {
	table, err := os.ReadFile("../../test/promises.tsv")
	if err != nil {
		t.Fatal(err)
	}
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
