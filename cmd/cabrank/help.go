package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cabrank/cabrank/internal/config"
)

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

// setUsage has root and its commands say their usage in cobra's form, with lines
// of at most width columns; 0 is no limit.
//
// cobra's own has no width, and its templates would keep the linker from leaving
// out methods that nobody calls: a template may call any method by its name.
func setUsage(root *cobra.Command, width int) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd, width))
		return err
	})
}

// usage returns what --help says of cmd after its description.
func usage(cmd *cobra.Command, width int) string {
	var text strings.Builder
	text.WriteString("Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&text, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		text.WriteString("\nAvailable Commands:\n")
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() || child.Name() == "help" {
				fmt.Fprintf(&text, "  %-*s %s\n", child.NamePadding(), child.Name(), child.Short)
			}
		}
	}
	if flags := cmd.Flags(); flags.HasAvailableFlags() {
		fmt.Fprintf(&text, "\nFlags:\n%s\n", strings.TrimRight(flags.FlagUsagesWrapped(width), "\n"))
	}
	if cmd.HasHelpSubCommands() {
		text.WriteString("\nAdditional help topics:\n")
		for _, child := range cmd.Commands() {
			if child.IsAdditionalHelpTopicCommand() {
				fmt.Fprintf(&text, "  %s help %s   %s\n", cmd.CommandPath(), child.Name(), child.Short)
			}
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
	}
	return text.String()
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
