package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
)

const statusHelp = `Show the workers of a running cabrank, its queue, and the restart that is under
way, if one is. CALLS are calls that run, and slots. A ghost is a slot that is held for
a call whose caller has gone, since its handler may still run. RESTARTS are the ends of
the worker that has the place now.

With --watch it is shown again and again: in place on a terminal (unless TERM is
dumb), else one block after the other. --json prints what GET /v1/status of the control socket answers.

Exit status: 0; 1 if cabrank went away; 2 if there is none.`

const statusExamples = `  cabrank status
  cabrank status --watch
  cabrank status --json | jq -r '.workers[] | select(.state != "ready") | .name'`

func newStatusCommand() *cobra.Command {
	var with asking
	var every time.Duration
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show workers, queue and restarts of a running cabrank",
		Long:    statusHelp,
		Example: statusExamples,
		Args:    statusArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond && cmd.Flags().Changed("watch") {
				return cli.UsageError(fmt.Errorf("flag --watch: %v is too often; allowed: 100ms and more", every))
			}
			return with.with(cmd, func(ctx context.Context, client *admin.Client) error {
				view := &statusView{client: client, out: cmd.OutOrStdout(), json: with.json}
				if every == 0 {
					return view.show(ctx)
				}
				return view.watch(ctx, every)
			})
		},
	}
	with.addTo(cmd)
	cmd.Flags().DurationVar(&every, "watch", 0, "show it again and again, each second or every `TIME`")
	cmd.Flags().Lookup("watch").NoOptDefVal = "1s"
	return cmd
}

// statusArguments refuses all arguments. The one that people give is the time of
// --watch, which may be left out and so needs its equals sign.
func statusArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, err := time.ParseDuration(args[0]); err == nil && cmd.Flags().Changed("watch") {
		return fmt.Errorf("unexpected argument %q; did you mean --watch=%s?", args[0], args[0])
	}
	return fmt.Errorf("unexpected argument %q; cabrank status shows all of it", args[0])
}

// statusView shows the status of one cabrank.
type statusView struct {
	client *admin.Client
	out    io.Writer
	json   bool

	lines int // that stand on the terminal and are to be replaced
}

// show asks once and shows the answer below what stands there, or in its place.
func (v *statusView) show(ctx context.Context) error {
	status, raw, err := v.client.Status(ctx)
	if err != nil {
		return err
	}
	if v.json {
		_, err = v.out.Write(append(bytes.TrimSpace(raw), '\n'))
		return err
	}
	display := cli.ScreenOf(v.out) // anew: windows change their size
	text := statusText(status, time.Now(), display)
	if v.lines > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.lines)
	}
	_, err = io.WriteString(v.out, text)
	v.lines = strings.Count(text, "\n")
	return err
}

// watch shows until ctx ends, which is no error, or cabrank does, which is one.
func (v *statusView) watch(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	inPlace := cli.ScreenOf(v.out).InPlace && !v.json
	for {
		err := v.show(ctx)
		switch {
		case errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !inPlace {
			v.lines = 0
			if !v.json {
				fmt.Fprintln(v.out)
			}
		}
	}
}
