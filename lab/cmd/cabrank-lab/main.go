// Command cabrank-lab measures what calls cost, from outside: loads on a service, and
// scenarios that compare ways to balance and to connect. `cabrank lab` starts it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/worker"
)

func main() {
	// The keeper ends what an arm has started if this process cannot any more.
	if len(os.Args) == 2 && os.Args[1] == "keeper" {
		os.Exit(worker.RunKeeper(os.Stdin, os.Stdout))
	}
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// The version of the build, set by the linker (-X main.version=...) and never by the program.
var version = "dev"

const rootHelp = `Measure services from outside, with the method that docs/lab-method.md explains:
latency counts from the moment a call was due, nothing is dropped, and what cannot be
told is not. "cabrank lab" starts this program, "cabrank socket load" its socket load.`

// execute runs one command line and returns the exit status.
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
	root.AddCommand(newLabLoadCommand(), newLabListCommand(), newLabShowCommand(), newLabWorkerCommand(), newLabAgentCommand(), newLabPodsCommand(),
		newLabRunCommand(), newLabCompareCommand())
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

// flagError turns what pflag says into our form.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return cli.UsageError(fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath()))
}
