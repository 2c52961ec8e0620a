package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
)

const drainHelp = `Take one worker out: a fresh one starts in its place, then it gets no new calls,
finishes those that it has within drain_timeout, and ends. cabrank status has the
names.

An upstream, named by its address, gets no new calls until cabrank drain --undo;
the command returns when its calls have ended, or are cut after drain_timeout.

Exit status: 0 when it is done; 1 if the fresh worker does not become ready, and
then the old one goes on; 2 if there is no such worker, upstream or cabrank; 3 if it
is done, but calls were cut without --force, which the last line counts.`

const drainExamples = `  cabrank drain worker-2
  cabrank drain 10.0.0.7:50051
  cabrank drain --undo 10.0.0.7:50051`

func newDrainCommand() *cobra.Command {
	var with asking
	var undo bool
	cmd := with.order(&cobra.Command{
		Use:               "drain WORKER|ADDRESS",
		Short:             "Replace one worker, or keep calls from an upstream",
		Long:              drainHelp,
		Example:           drainExamples,
		Args:              oneArgument("a worker or the address of an upstream", "worker-2"),
		ValidArgsFunction: with.completeWorkers,
	}, func(args []string) (any, error) {
		if undo && with.force {
			return nil, errors.New("--undo goes without --force: nothing is cut when an upstream gets calls again")
		}
		return admin.DrainRequest{Target: args[0], Undo: undo, Force: with.force}, nil
	})
	cmd.Flags().BoolVar(&undo, "undo", false, "give calls to the upstream again")
	with.addForceTo(cmd, "force")
	return cmd
}
