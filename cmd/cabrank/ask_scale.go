package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
)

const scaleHelp = `Change the number of workers. Fewer: the last ones finish their calls, within
drain_timeout, and end.
It returns when there are as many as asked for.

The number lasts until the next scale, or a reload of the configuration that
changes workers.count. auto follows the load again, if workers.count has two
bounds, and otherwise goes back to the number in the configuration.

Exit status: 0 if there are so many workers; 1 if not; 2 if the command line is
wrong or there is no cabrank; 3 if there are so many, but calls of those that went
were cut, which the last line counts.`

func newScaleCommand() *cobra.Command {
	var with asking
	cmd := &cobra.Command{
		Use:     "scale N|auto",
		Short:   "Change the number of workers",
		Long:    scaleHelp,
		Example: "  cabrank scale 8\n  cabrank scale auto",
		Args:    oneArgument("the number of workers, or auto", "4"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := scaleRequest(args[0])
			if err != nil {
				return cli.UsageError(err)
			}
			return with.ask(cmd, "scale", request)
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"auto"}, cobra.ShellCompDirectiveNoFileComp),
	}
	with.addTo(cmd)
	return cmd
}

func scaleRequest(argument string) (admin.ScaleRequest, error) {
	if argument == "auto" {
		return admin.ScaleRequest{Auto: true}, nil
	}
	n, err := strconv.Atoi(argument)
	if err != nil || n < 1 {
		return admin.ScaleRequest{}, fmt.Errorf("%q is no number of workers; allowed: 1 and more, or auto", argument)
	}
	return admin.ScaleRequest{Workers: n}, nil
}
