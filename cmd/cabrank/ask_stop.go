package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
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

Exit status: 0 when cabrank has ended; 1 if it has not; 2 if there is none.`

func newStopCommand() *cobra.Command {
	var with asking
	var request admin.StopRequest
	cmd := &cobra.Command{
		Use:     "stop",
		Short:   "Stop a running cabrank and wait for its end",
		Long:    stopHelp,
		Example: "  cabrank stop\n  cabrank stop --now",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := with.client()
			if err != nil {
				return err
			}
			defer client.Close()
			status, _, err := client.Status(cmd.Context())
			if err != nil {
				return answered(err)
			}
			err = with.askOf(cmd, client, "stop", request)
			// A cabrank that ends before it has said so has done what was asked.
			if _, lost := errors.AsType[*admin.LostError](err); err != nil && !lost {
				return err
			}
			return awaitExit(cmd.Context(), status.PID)
		},
	}
	with.addTo(cmd)
	cmd.Flags().BoolVar(&request.Now, "now", false, "do not wait for calls: they are answered UNAVAILABLE")
	return cmd
}

// awaitExit waits for the end of a process whose parts have all ended.
func awaitExit(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, exitLimit)
	defer cancel()
	poll := time.NewTicker(exitPoll)
	defer poll.Stop()
	for !admin.Gone(pid) {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("cabrank has closed everything, but the process %d is still there", pid)
		}
	}
	return nil
}
