package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
)

const upgradeHelp = `Have a new cabrank take over: the program is started again, from the path, with the
arguments and in the environment of the running one. The new process starts workers
of its own; when enough are ready it takes the listeners, and the old process
finishes its calls and ends. No connection is refused, and calls that finish within
drain_timeout are not lost; what runs longer is cut, and the old process's log says how many
calls were: this command has returned by then. If the new one fails before it has
taken over, the old one goes on.

Both sides' workers run at the same time. Where memory does not suffice for that,
--upgrade-workers N has the new side begin with N, until the old one has gone.

Exit status: 0 when the new cabrank has taken over; 1 with the reason if not; 2 if
the command line is wrong or there is no cabrank.`

func newUpgradeCommand() *cobra.Command {
	var workers string
	cmd := new(asking).order(&cobra.Command{
		Use:     "upgrade",
		Short:   "Have a new cabrank take over; calls that finish in time are not lost",
		Long:    upgradeHelp,
		Example: "  install -m 755 cabrank-new /usr/local/bin/cabrank && cabrank upgrade\n  cabrank upgrade --upgrade-workers 1",
		Args:    cobra.NoArgs,
	}, func([]string) (any, error) {
		if workers == "" {
			return admin.UpgradeRequest{}, nil
		}
		n, err := numberOfWorkers(workers)
		if err != nil {
			err = fmt.Errorf("flag --upgrade-workers: %w", err)
		}
		return admin.UpgradeRequest{Workers: n}, err
	})
	cmd.Flags().StringVar(&workers, "upgrade-workers", "", "begin with `N` workers on the new side (default: as many as are configured)")
	return cmd
}
