package main

import (
	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
)

const socketHelp = `Callers over WebSocket: they call functions, subscribe to channels and publish, by the
protocols juggler.1 and juggler.0. docs/socket.md explains it.`

func newSocketCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "socket",
		Short:   "Serve callers over WebSocket: calls, subscriptions, events",
		Long:    socketHelp,
		Example: socketServeExamples,
		Args:    cobra.ArbitraryArgs, // so that RunE sees a command it does not know
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newSocketServeCommand(), newSocketCalleeCommand(), newSocketConnectCommand(), newSocketLoadCommand())
	return cmd
}
