package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// HelpWidth returns the columns of out, or 0 if it is no terminal: what goes to
// a file or to grep keeps its long lines.
func HelpWidth(out io.Writer) int {
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

// SetUsage has root and its commands say their usage in cobra's form, with lines
// of at most width columns; 0 is no limit.
//
// cobra's own has no width, and its templates would keep the linker from leaving
// out methods that nobody calls: a template may call any method by its name.
func SetUsage(root *cobra.Command, width int) {
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

// NewHelp replaces cobra's, which ends with 0 for a topic that does not
// exist.
func NewHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command or a topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 && target.DisableFlagParsing {
				return target.RunE(target, append(rest, "--help")) // a program of its own, which explains itself
			}
			if err != nil || len(rest) > 0 {
				return UnknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}

// MarkUsageErrors gives wrong arguments of every command the exit status that
// they should have; cobra returns them like any other error.
func MarkUsageErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			return UsageError(check(cmd, args))
		}
	}
	for _, child := range cmd.Commands() {
		MarkUsageErrors(child)
	}
}

// UnknownCommand is the error of a command that there is not.
func UnknownCommand(of *cobra.Command, name string) error {
	hint := of.Root().Name() + " help lists the commands"
	if of.HasParent() {
		hint = of.CommandPath() + " --help lists the commands"
	}
	if near := of.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return UsageError(fmt.Errorf("unknown command %q; %s", name, hint))
}
