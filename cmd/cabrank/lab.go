package main

import (
	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
)

const labHelp = `Measure services from outside, with the method that docs/lab-method.md explains:
latency counts from the moment a call was due, nothing is dropped, and what cannot be
told is not.`

func newLabCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "lab",
		Short:   "Measure what calls cost: loads, latency, errors",
		Long:    labHelp,
		Example: labLoadExamples,
		Args:    cobra.ArbitraryArgs, // so that RunE sees a command it does not know
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newLabLoadCommand(), newLabListCommand(), newLabShowCommand(), newLabWorkerCommand(), newLabAgentCommand(), newLabPodsCommand())
	cmd.AddCommand(newLabRunCommand(), newLabCompareCommand(), newLabWhatIfCommand())
	return cmd
}
