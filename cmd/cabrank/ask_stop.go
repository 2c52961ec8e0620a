package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
)

const (
	// exitLimit is how long the process may take to end after all its parts have.
	exitLimit = 5 * time.Second
	exitPoll  = 20 * time.Millisecond
)

const stopHelp = `Stop cabrank as SIGTERM does: no new connections, calls finish within
drain_timeout, workers end. It returns when cabrank has ended.

--now does not wait for calls, like a second signal; it may also be given while
another stop waits.

Exit status: 0 when cabrank has ended; 1 if it has not; 2 if there is none; 3 if it
has, but calls were cut without --now, which the last line counts.`

func newStopCommand() *cobra.Command {
	var with asking
	cmd := &cobra.Command{
		Use:     "stop",
		Short:   "Stop a running cabrank and wait for its end",
		Long:    stopHelp,
		Example: "  cabrank stop\n  cabrank stop --now",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with.with(cmd, func(ctx context.Context, client *admin.Client) error {
				status, _, err := client.Status(ctx) // its pid is that of its own namespace
				if err != nil {
					return err
				}
				asked := with.ask(ctx, cmd, client, admin.StopRequest{Now: with.force})
				// A cabrank that ends before it has said so has done what was asked.
				if _, lost := errors.AsType[*admin.LostError](asked); lost {
					asked = nil
				}
				if asked != nil && !errors.Is(asked, cli.ErrCut) {
					return asked
				}
				return cmp.Or(awaitExit(ctx, processOf(client, status)), asked)
			})
		},
	}
	with.addTo(cmd)
	with.addForceTo(cmd, "now")
	return cmd
}

// processOf returns the process to wait for by the number that it has here, 0 if
// it cannot be seen from here.
func processOf(client *admin.Client, status admin.Status) int {
	if runtime.GOOS != "linux" {
		return status.PID // nobody else tells, and there are no namespaces
	}
	return client.Peer()
}

// awaitExit waits for the end of a process whose parts have all ended. 0 is one that
// cannot be seen from here: that it has closed everything is all there is to see.
func awaitExit(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, exitLimit)
	defer cancel()
	for pid != 0 && !admin.Gone(pid) {
		select {
		case <-time.After(exitPoll):
		case <-ctx.Done():
			return fmt.Errorf("cabrank has closed everything, but the process %d is still there", pid)
		}
	}
	return nil
}
