package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/scenario"
)

func newLabListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the scenarios that come with cabrank",
		Example: `  cabrank lab list
  cabrank lab run connections --quick`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SCENARIO\tTAKES\tQUICK\tWHAT IT COMPARES")
			for _, name := range scenario.Names() {
				s, err := scenario.Builtin(name, nil)
				if err != nil {
					return err
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", name, about(s.Estimate()), about(s.Quick().Estimate()), s.About)
			}
			return w.Flush()
		},
	}
}

// about is a duration as people say it.
func about(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	default:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
}

func newLabShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print the file of a scenario, to copy and change it",
		Example: `  cabrank lab show connections > mine.yml
  cabrank lab run mine.yml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("which scenario? give one name of `cabrank lab list`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := scenario.Text(args[0])
			if err != nil {
				return cli.UsageError(err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}
