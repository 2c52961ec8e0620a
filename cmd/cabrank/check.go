package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/service"
)

const checkHelp = `Check the configuration and print it: every value with the place it comes from.
Nothing is started and no port is opened. The flags are those of cabrank run.

--explain KEY prints what a key is instead: what it takes, by which flag and variable, from when
on a change holds, and which page tells more.

Exit status: 0 if cabrank run would take it, 2 with one line per fault otherwise.
Whether the command exists and the ports are free shows only when it runs.`

func newCheckCommand() *cobra.Command {
	given, explained := flagValues{}, ""
	cmd := &cobra.Command{
		Use:                   "check [flags] [-- CMD ARGS...]",
		Short:                 "Print the effective configuration and where it comes from",
		Long:                  checkHelp,
		Example:               "  cabrank check\n  cabrank check --config staging.yml --workers 2 -- ruby worker.rb\n  cabrank check --explain queue.timeout",
		Args:                  commandAfterDash,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if explained != "" {
				return cli.UsageError(config.Explain(cmd.OutOrStdout(), explained))
			}
			cfg, err := loadConfig(given, args)
			if err != nil {
				return err
			}
			if err := service.Check(cfg); err != nil {
				return err
			}
			for _, warning := range append(cfg.Warnings, service.Warnings(cfg)...) {
				fmt.Fprintf(cmd.ErrOrStderr(), "cabrank: %s\n", warning)
			}
			return cfg.WriteTable(cmd.OutOrStdout())
		},
	}
	given.addTo(cmd.Flags())
	cmd.Flags().StringVar(&explained, "explain", "", "print what `KEY` is, and nothing else")
	return cmd
}
