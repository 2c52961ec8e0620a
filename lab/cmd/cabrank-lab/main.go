// Command cabrank-lab measures what calls cost, from outside: loads on a service, and
// scenarios that compare ways to balance and to connect. `cabrank lab` starts it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cabrank/cabrank/examples/fibonacci"
	"github.com/cabrank/cabrank/examples/jobs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/process"
	"github.com/cabrank/cabrank/lab/internal/agent"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/work"
)

func main() {
	// The keeper ends what an arm has started if this process cannot any more.
	if len(os.Args) == 2 && os.Args[1] == "keeper" {
		os.Exit(process.RunKeeper(os.Stdin, os.Stdout))
	}
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// The version of the build, set by the linker (-X main.version=...) and never by the program.
var version = "dev"

const rootHelp = `Measure services from outside, with the method that docs/lab-method.md explains:
latency counts from the moment a call was due, nothing is dropped, and what cannot be
told is not. "cabrank lab" starts this program, "cabrank socket load" its socket load.`

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cli.SetUsage(root, cli.HelpWidth(stdout))
	err := root.ExecuteContext(ctx)
	if err != nil && !cli.IsTold(err) {
		cli.PrintError(stderr, root.Name(), err)
	}
	return cli.Status(err)
}

func newRootCommand() *cobra.Command {
	root := newGroup("cabrank-lab", "Measure what calls cost: loads, latency, errors")
	root.Long, root.Example = rootHelp, labLoadExamples
	root.Version = version
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions = cobra.CompletionOptions{HiddenDefaultCmd: true}
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(cli.NewHelp())
	root.AddCommand(newLabLoadCommand(), newLabListCommand(), newLabShowCommand(), newLabRunCommand(), newLabCompareCommand(), newLabWorkerCommand())
	root.AddCommand(newHidden("agent", "Make the calls of a job from standard input", func(cmd *cobra.Command) error {
		return agent.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()) // the generator of scenarios
	}))
	root.AddCommand(newHidden(rig.PodsCommand, "Hold a network with pods and a Service", func(*cobra.Command) error {
		return rig.ServePods(os.Stdin, os.Stdout) // of an arm whose connections the kernel balances; it begins in a network of its own
	}))
	socket := newGroup("socket", "The same for callers over WebSocket")
	socket.AddCommand(newSocketLoadCommand())
	root.AddCommand(socket)
	cli.MarkUsageErrors(root)
	return root
}

// newGroup returns a command that has nothing but others.
func newGroup(name, short string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.ArbitraryArgs, // so that RunE sees a command it does not know
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		SuggestionsMinimumDistance: 2,
	}
}

func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return cli.UsageError(fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath()))
}

// findPrograms returns this program, and cabrank: the one that has started this, or as it
// stands beside it or on PATH. Without one it is "cabrank", which what needs it cannot find.
func findPrograms() (rig.Programs, error) {
	self, err := os.Executable()
	if err != nil {
		return rig.Programs{}, err
	}
	for _, path := range []string{os.Getenv(cli.ProgramVariable), filepath.Join(filepath.Dir(self), "cabrank"), "cabrank"} {
		if found, err := exec.LookPath(path); err == nil {
			return rig.Programs{Cabrank: found, Lab: self}, nil
		}
	}
	return rig.Programs{Cabrank: "cabrank", Lab: self}, nil
}

// stamps matches what `cabrank version` says of version and commit.
var stamps = regexp.MustCompile(`(?m)^(?:version|commit): (.*)$`)

// versionOf asks a cabrank for its version and commit; "none" if there is none.
func versionOf(ctx context.Context, cabrank string) string {
	out, _ := exec.CommandContext(ctx, cabrank, "version").Output()
	var said []string
	for _, m := range stamps.FindAllSubmatch(out, -1) {
		said = append(said, string(m[1]))
	}
	if len(said) == 0 {
		return "none"
	}
	return strings.Join(said, " ")
}

// unpack writes the example programs that come with the lab into a folder, each below its name:
// jobs/ruby/worker.rb. So whoever has the binary alone can run the scenarios that need them.
//
// Errors: those of writing, with the name of the file.
func unpack(folder string) error {
	for name, files := range map[string]fs.FS{"fibonacci": fibonacci.Files, "jobs": jobs.Files} {
		if err := os.CopyFS(filepath.Join(folder, name), files); err != nil {
			return err
		}
	}
	return nil
}

// newLabWorkerCommand returns the worker of scenarios. SIGUSR1 makes it slow, SIGUSR2 fast again.
func newLabWorkerCommand() *cobra.Command {
	o := work.Options{
		Addr: cmp.Or(os.Getenv("CABRANK_ADDR"), "127.0.0.1:50051"),
		Name: cmp.Or(os.Getenv("CABRANK_WORKER"), "worker"),
		Full: work.Unlimited, SlowTimes: 1,
	}
	echo := 0
	cmd := newHidden("worker", "Serve calls that sleep and use CPU as they ask, at $CABRANK_ADDR", func(cmd *cobra.Command) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		if echo > 0 {
			return rawh2.Echo(ctx, o.Addr, echo)
		}
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
	})
	flags := cmd.Flags()
	flags.StringVar(&o.Addr, "listen", o.Addr, "`HOST:PORT` or unix:/PATH")
	flags.StringVar(&o.Name, "name", o.Name, "what it is called in answers")
	flags.IntVar(&o.Slots, "slots", 0, "calls that run at a time, if --full says so")
	flags.StringVar((*string)(&o.Full), "full", string(o.Full), "what more calls than slots do: queue, keep, refuse; or unlimited")
	flags.DurationVar(&o.MaxAge, "max-age", 0, "how old connections get; 0: no limit")
	flags.DurationVar(&o.SlowBy, "slow-by", 0, "what a call takes longer while it is slow")
	flags.IntVar(&echo, "echo", 0, "answer raw clients at the least cost, at so many ports from that of --listen on; nothing else then")
	flags.Float64Var(&o.SlowTimes, "slow-times", o.SlowTimes, "how many times as long a call takes while it is slow")
	return cmd
}

// newHidden returns a command for other programs: it takes no arguments.
func newHidden(name, short string, run func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) },
	}
}
