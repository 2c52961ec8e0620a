package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
)

const restartHelp = `Reload the configuration, then replace all workers, a few at a time: a new one
starts beside the others and becomes ready, then an old one gets no new calls,
finishes those that it has, and ends. Calls that finish within drain_timeout are not
lost; what runs longer is cut (UNAVAILABLE), and the last line says how many calls were.
It returns when all workers are replaced; how long that can take is said at the
beginning.

With -- CMD the workers run another command from now on, until cabrank itself is
started again. --force cuts the calls of old workers (UNAVAILABLE) instead of
waiting for them. A second restart takes over: it begins anew with what is asked
for then, and the first one returns.

If the new workers do not become ready (one is not within
workers.boot_timeout, they end three times, or not all are within the time said) the
restart stops, the workers that serve go on, and new ones run the command before. Ctrl-C
only stops waiting. SIGHUP does the same as this command without arguments; then the
log and cabrank status say how many calls were cut.

Exit status: 0 if all workers are replaced; 1 with the reason if not; 2 if the
command line is wrong or there is no cabrank; 3 if all are replaced, but calls were
cut without --force.`

const restartExamples = `  cabrank restart
  cabrank restart -- bundle exec gruf --host {addr} --health-check --no-cache
  cabrank restart --force --json`

func newRestartCommand() *cobra.Command {
	var with asking
	cmd := with.order(&cobra.Command{
		Use:                   "restart [flags] [-- CMD ARGS...]",
		Short:                 "Replace all workers; calls that finish in time are not lost",
		Long:                  restartHelp,
		Example:               restartExamples,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 0 && len(args) == 0 {
				return errors.New("nothing follows --: name the command of the workers, or leave out the --")
			}
			return commandAfterDash(cmd, args)
		},
	}, func(args []string) (any, error) { return admin.RestartRequest{Command: args, Force: with.force}, nil })
	with.addForceTo(cmd, "force")
	return cmd
}
