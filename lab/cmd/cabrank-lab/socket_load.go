package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/lab"
)

const socketLoadHelp = `Call a function over WebSockets by a plan, and say what came of it. It is "cabrank lab
load" for sockets: plans, latency, thresholds, --find and the report are the same
(docs/lab-load.md).

--call URI makes calls, over --connections sockets in turn. A call without a result at its
--timeout has expired (EXP); one that was under way when its connection ended is lost.

Exit status: 0 if it ran and all thresholds held; 1 if one did not or could not be judged,
if nothing was answered, or if --find found no rate; 2 if the command line is wrong or the
server cannot be reached, in which case no call was made.`

const socketLoadExamples = `  # 100 callers, each with a socket, who wait for their results
  cabrank socket load ws://localhost:9000/ws --call test.echo --args '"hello"' \
      --connections 100 --callers 100 --duration 10s

  # 2,000 calls a second, whatever the answers, as a check
  cabrank socket load ws://localhost:9000/ws --call test.echo --args '"{{.RequestNumber}}"' \
      --connections 20 --rate 2000 --duration 30s --fail 'p99<20ms' --fail 'errors<0.1%'`

type socketLoad struct {
	loadPlan
	lab.SocketLoad

	dial cli.Dial
}

func newSocketLoadCommand() *cobra.Command {
	var f socketLoad
	cmd := &cobra.Command{
		Use:     "load URL",
		Short:   "Call a function by a plan, and report latency and errors",
		Long:    socketLoadHelp,
		Example: socketLoadExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return errors.New("which server? give its URL, such as ws://localhost:9000/ws")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.URL = args[0]
			plan, err := f.Plan()
			if err == nil {
				err = f.readGoal(plan)
			}
			if err == nil {
				f.Client, err = f.dial.Options()
			}
			if err != nil {
				return cli.UsageError(err)
			}
			f.Client.NoReconnect = false // a load goes on
			return f.prepared(cmd, plan, f.Prepare)
		},
	}
	f.addTo(cmd)
	return cmd
}

func (f *socketLoad) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.URI, "call", "", "`URI` of the function to call")
	flags.StringVar(&f.Args, "args", "null", "its arguments as `JSON`; {{.RequestNumber}} is the number of the call")
	flags.IntVar(&f.Connections, "connections", 1, "sockets that calls go over")
	f.Timeout = 10 * time.Second
	f.addPlanTo(flags)
	f.dial.AddTo(flags)
	f.addOutcomeTo(flags)
}
