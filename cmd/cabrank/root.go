package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/handover"
)

const rootHelp = `cabrank starts workers, puts one port in front of them and gives every call to
the first worker that is free.

Without a command it is cabrank run, if CONFIG_PATH names a file or there is a
cabrank.yml or gruf-relay.yml here.

status, doctor, page, restart, scale, drain, reload, upgrade and stop ask a cabrank that runs, over
its control socket.

Exit status: 0 if all was done, also when a signal asked to stop; 1 if something
failed while running; 2 if the command line or the configuration is wrong, or there
is no cabrank to ask, in which case nothing was started; 3 if all was done, but calls
were cut that had not ended within drain_timeout.`

const rootExamples = `  # four Ruby workers with five threads each behind port 8080
  cabrank run --workers 4 --slots 5 -- bundle exec gruf --host {addr} --health-check

  # what would run, and where each value comes from
  cabrank check -- python worker.py --port {port}

  # endpoints that someone else runs
  cabrank run --upstream 10.0.0.7:50051,10.0.0.8:50051

  # what it does, and a new version of the workers: calls end where they run
  cabrank status --watch
  cabrank restart

  # see it work in a minute
  cabrank demo`

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cli.SetUsage(root, cli.HelpWidth(stdout))
	err := root.ExecuteContext(ctx)
	if err != nil {
		handover.Refuse(config.Lines(err)) // a successor that did not come to be one
	}
	if err != nil && !cli.IsTold(err) {
		cli.PrintError(stderr, "cabrank", err)
	}
	return cli.Status(err)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:     "cabrank",
		Short:   "Balance gRPC calls over supervised workers",
		Long:    rootHelp,
		Example: rootExamples,
		Args:    cobra.ArbitraryArgs, // so that RunE sees a command it does not know
		RunE: func(cmd *cobra.Command, args []string) error {
			switch asked, err := cmd.Flags().GetBool("version"); {
			case err != nil:
				return err
			case asked:
				return printVersion(cmd)
			case len(args) > 0:
				return cli.UnknownCommand(cmd, args[0])
			}
			return runByFile(cmd)
		},
		SilenceUsage:               true,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.Flags().BoolP("version", "v", false, "version for cabrank")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(cli.NewHelp())
	root.AddCommand(newRunCommand(), newCheckCommand(), newDemoCommand(), newVersionCommand(), newConfigurationTopic())
	root.AddCommand(newStatusCommand(), newRestartCommand(), newScaleCommand(), newDrainCommand(),
		newReloadCommand(), newDoctorCommand(), newPageCommand(), newStopCommand(), newUpgradeCommand(), newLabCommand(), newSocketCommand())
	cli.MarkUsageErrors(root)
	return root
}

// runByFile is what a bare `cabrank` does: as gruf-relay, whose place it can take,
// it runs by a file. Without one it was called by mistake.
func runByFile(cmd *cobra.Command) error {
	given := flagValues{}
	if config.HasFile(sourcesOf(given, nil)) {
		return run(cmd.Context(), given, nil, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	cmd.SetOut(cmd.ErrOrStderr())
	if err := cmd.Help(); err != nil {
		return err
	}
	return cli.UsageError(fmt.Errorf("no command, and no file to run by: %s is not set, and there is no %s here",
		config.ConfigVariable, strings.Join(config.DefaultFiles(), " or ")))
}

// flagError turns what pflag says into our form.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	hint := fmt.Sprintf("; %s --help lists the flags", cmd.CommandPath())
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && cmd.Flags().Lookup("config") != nil { // a command with the table's flags
		if near := config.Suggest(unknown.GetSpecifiedName()); near != "" {
			hint = near
		}
	}
	return cli.UsageError(fmt.Errorf("%w%s", err, hint))
}
