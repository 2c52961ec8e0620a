package main

import (
	"cmp"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/work"
)

// newLabWorkerCommand returns the worker of scenarios. SIGUSR1 makes it slow, SIGUSR2
// fast again.
func newLabWorkerCommand() *cobra.Command {
	o := work.Options{
		Addr: cmp.Or(os.Getenv("CABRANK_ADDR"), "127.0.0.1:50051"),
		Name: cmp.Or(os.Getenv("CABRANK_WORKER"), "worker"),
		Full: work.Unlimited, SlowTimes: 1,
	}
	full, echo := string(o.Full), 0
	cmd := &cobra.Command{
		Use:    "worker",
		Short:  "Serve calls that sleep and use CPU as they ask, at $CABRANK_ADDR",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if echo > 0 {
				return rawh2.Echo(ctx, o.Addr, echo)
			}
			o.Full = work.Full(full)
			w, err := work.New(o)
			if err != nil {
				return cli.UsageError(err)
			}
			pace := make(chan os.Signal, 1)
			signal.Notify(pace, syscall.SIGUSR1, syscall.SIGUSR2)
			defer signal.Stop(pace)
			go func() { // ends with the process
				for s := range pace {
					w.SetSlow(s == syscall.SIGUSR1)
				}
			}()
			return w.Serve(ctx, nil)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "listen", o.Addr, "`HOST:PORT` or unix:/PATH")
	flags.StringVar(&o.Name, "name", o.Name, "what it is called in answers")
	flags.IntVar(&o.Slots, "slots", 0, "calls that run at a time, if --full says so")
	flags.StringVar(&full, "full", full, "what more calls than slots do: queue, keep, refuse; or unlimited")
	flags.DurationVar(&o.MaxAge, "max-age", 0, "how old connections get; 0: no limit")
	flags.DurationVar(&o.SlowBy, "slow-by", 0, "what a call takes longer while it is slow")
	flags.IntVar(&echo, "echo", 0, "answer raw clients at the least cost, at so many ports from that of --listen on; nothing else then")
	flags.Float64Var(&o.SlowTimes, "slow-times", o.SlowTimes, "how many times as long a call takes while it is slow")
	return cmd
}

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
