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

// versionText returns four lines in the form of gruf-relay's.
func versionText() string {
	return fmt.Sprintf("cabrank\nversion: %s\ncommit: %s\nbuilt date: %s\n", version, commit, buildDate)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the date of the build",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}
