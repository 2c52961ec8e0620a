package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/cabrank/cabrank/internal/config"
)

const rootHelp = `cabrank starts workers, puts one port in front of them and gives every call to
the first worker that is free.

status, restart, scale, drain, reload, upgrade and stop ask a cabrank that runs, over
its control socket.

Exit status: 0 if all was done, also when a signal asked to stop; 1 if something
failed while running; 2 if the command line or the configuration is wrong, or there
is no cabrank to ask, in which case nothing was started.`

const rootExamples = `  # four Ruby workers with five threads each behind port 8080
  cabrank run --workers 4 --slots 5 -- bundle exec gruf --host {addr} --health-check

  # what would run, and where each value comes from
  cabrank check -- python worker.py --port {port}

  # endpoints that someone else runs
  cabrank run --upstream 10.0.0.7:50051,10.0.0.8:50051

  # what it does, and a new version of the workers without losing a call
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
	wrapFlags(root, helpWidth(stdout))
	err := root.ExecuteContext(ctx)
	if err != nil {
		printError(stderr, err)
	}
	return exitStatus(err)
}

// helpWidth returns the columns of out, or 0 if it is no terminal: what goes to
// a file or to grep keeps its long lines.
func helpWidth(out io.Writer) int {
	file, isFile := out.(*os.File)
	if !isFile {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 60 { // below, the second column would be a word wide
		return 0
	}
	return width
}

// wrapFlags keeps the columns of --help on a narrow terminal; 0 is no limit.
func wrapFlags(root *cobra.Command, width int) {
	wrapped := fmt.Sprintf(".FlagUsagesWrapped %d ", width)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", wrapped))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:     "cabrank",
		Short:   "Balance gRPC calls over supervised workers",
		Long:    rootHelp,
		Example: rootExamples,
		Version: version,
		Args:    cobra.ArbitraryArgs, // so that RunE sees a command it does not know
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		SilenceUsage:               true,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetVersionTemplate(versionText())
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelpCommand())
	root.AddCommand(newRunCommand(), newCheckCommand(), newDemoCommand(), newVersionCommand(), newConfigurationTopic())
	root.AddCommand(newStatusCommand(), newRestartCommand(), newScaleCommand(), newDrainCommand(),
		newReloadCommand(), newStopCommand(), newUpgradeCommand())
	markUsageErrors(root)
	return root
}

// markUsageErrors gives wrong arguments of every command the exit status that
// they should have; cobra returns them like any other error.
func markUsageErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			return usageError(check(cmd, args))
		}
	}
	for _, child := range cmd.Commands() {
		markUsageErrors(child)
	}
}

func unknownCommand(root *cobra.Command, name string) error {
	hint := "cabrank help lists the commands"
	if near := root.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError(fmt.Errorf("unknown command %q; %s", name, hint))
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
	return usageError(fmt.Errorf("%w%s", err, hint))
}

// newHelpCommand replaces cobra's, which ends with 0 for a topic that does not
// exist.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command or a topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}

// newConfigurationTopic is not a command but a page: `cabrank help
// configuration`.
func newConfigurationTopic() *cobra.Command {
	topic := &cobra.Command{Use: "configuration", Short: "Every key of the file, with its variable, default and range"}
	topic.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		fmt.Fprint(out, configurationHelp)
		// A help page that cannot be written has nobody to tell.
		_ = config.WriteKeys(out)
	})
	return topic
}

const configurationHelp = `Flags win over variables, variables over the file, the file over defaults. The
file is the first of --config, CONFIG_PATH, ./cabrank.yml and ./gruf-relay.yml.
cabrank run --help has the flags; cabrank check shows the effective values. CHANGE
says what makes a changed value hold in a cabrank that runs: reload (at once),
restart (with the next process of each worker), or upgrade (with a new cabrank).

`
