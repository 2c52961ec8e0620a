package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
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
	return new(asking).order(&cobra.Command{
		Use:               "scale N|auto",
		Short:             "Change the number of workers",
		Long:              scaleHelp,
		Example:           "  cabrank scale 8\n  cabrank scale auto",
		Args:              oneArgument("the number of workers, or auto", "4"),
		ValidArgsFunction: cobra.FixedCompletions([]string{"auto"}, cobra.ShellCompDirectiveNoFileComp),
	}, func(args []string) (any, error) {
		if args[0] == "auto" {
			return admin.ScaleRequest{Auto: true}, nil
		}
		n, err := numberOfWorkers(args[0])
		if err != nil {
			err = fmt.Errorf("%w, or auto", err)
		}
		return admin.ScaleRequest{Workers: n}, err
	})
}
