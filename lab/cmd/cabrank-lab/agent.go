package main

import (
	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/lab/internal/agent"
)

// newLabAgentCommand returns the generator of scenarios, which `cabrank lab run` starts.
func newLabAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "agent",
		Short:  "Make the calls of a job from standard input",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return agent.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
