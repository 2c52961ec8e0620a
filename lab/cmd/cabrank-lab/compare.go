package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
)

const labCompareHelp = `Set two runs of one scenario beside each other, such as before and after a change or of
two machines. A folder means the run that is in it.

Blocks of two runs that have the same seeds are pairs, and there is a verdict from ten
pairs on. Runs with other seeds are shown without a verdict. Runs of other scenarios are
refused. What two runs can tell, and what not: docs/lab-run.md.

--fail is how far B may be from A, such as 'p99<10%' or 'rate>-5%'. It is held by the whole
interval of the verdict, so that it takes pairs.

Exit status: 0 if they were compared and all of --fail held; 1 if one did not or could not be
judged, or if the report cannot be written; 2 if one cannot be read, or if they may not be
compared.`

const labCompareExamples = `  # before and after a change, with the same seed
  cabrank lab run relay --seed 7 --out before
  cabrank lab run relay --seed 7 --out after
  cabrank lab compare before after

  # the same as a page and as JSON, into a folder
  cabrank lab compare before after --out difference

  # as a check: exit status 1 unless p99 is shown to be less than 10 % higher
  cabrank lab compare before after --fail 'p99<10%'`

func newLabCompareCommand() *cobra.Command {
	var out string
	var fail []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "compare A B",
		Short:   "Compare two runs of one scenario",
		Long:    labCompareHelp,
		Example: labCompareExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("compare what? give two results, such as before/run.json after/run.json")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var changes []lab.Change
			for _, text := range fail {
				change, err := lab.ParseChange(text)
				if err != nil {
					return cli.UsageError(err)
				}
				changes = append(changes, change)
			}
			c, err := lab.Compare(args[0], args[1])
			if err != nil {
				return cli.UsageError(err)
			}
			if out != "" {
				if _, err := result.MakeFolder(out); err != nil {
					return cli.UsageError(fmt.Errorf("--out: %w", err))
				}
			}
			words := cmd.OutOrStdout()
			if asJSON {
				words = cmd.ErrOrStderr()
			}
			return errors.Join(show(lab.OfComparison(c), asJSON, cmd.OutOrStdout()), tellComparison(words, c, out, changes))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print compare.json in place of words")
	cmd.Flags().StringArrayVar(&fail, "fail", nil, "`threshold` that has to hold, such as 'p99<10%'; several are possible")
	cmd.Flags().Var((*cli.Folder)(&out), "out", "`folder` for compare.html and compare.json")
	return cmd
}

func tellComparison(words io.Writer, c report.Two, out string, changes []lab.Change) error {
	missed := error(nil)
	for i, change := range changes {
		if i == 0 {
			fmt.Fprintln(words)
		}
		lines, held := change.Judge(c.Findings())
		for _, line := range lines {
			fmt.Fprintln(words, line)
		}
		if !held {
			missed = errMissed
		}
	}
	if out != "" {
		if err := lab.OfComparison(c).Save(out); err != nil {
			return err
		}
		fmt.Fprintf(words, "\nThe report is %s.\n", filepath.Join(out, lab.CompareReportFile))
	}
	return missed
}
