package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/rig"
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

// newLabPodsCommand returns the process that holds the network of an arm whose
// connections the kernel balances. It begins in a network of its own.
func newLabPodsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    rig.PodsCommand,
		Short:  "Hold a network with pods and a Service",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return rig.ServePods(os.Stdin, os.Stdout) },
	}
}
