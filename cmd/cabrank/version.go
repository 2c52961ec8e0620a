package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Stamps of the build, set by the linker (-X main.version=...) and never by the
// program.
var (
	version   = "dev"
	commit    = "unknown"
	buildDate = ""
)

// printVersion writes four lines in the form of gruf-relay's.
func printVersion(cmd *cobra.Command) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "cabrank\nversion: %s\ncommit: %s\nbuilt date: %s\n", version, commit, buildDate)
	return err
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the date of the build",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return printVersion(cmd) },
	}
}
