package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/service"
)

const checkHelp = `Check the configuration and print it: every value with the place it comes from.
Nothing is started and no port is opened. The flags are those of cabrank run.

Exit status: 0 if cabrank run would take it, 2 with one line per fault otherwise.
Whether the command exists and the ports are free shows only when it runs.`

func newCheckCommand() *cobra.Command {
	given := flagValues{}
	cmd := &cobra.Command{
		Use:                   "check [flags] [-- CMD ARGS...]",
		Short:                 "Print the effective configuration and where it comes from",
		Long:                  checkHelp,
		Example:               "  cabrank check\n  cabrank check --config staging.yml --workers 2 -- ruby worker.rb",
		Args:                  commandAfterDash,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(given, args)
			if err != nil {
				return err
			}
			if err := service.Check(cfg); err != nil {
				return err
			}
			for _, warning := range cfg.Warnings {
				fmt.Fprintf(cmd.ErrOrStderr(), "cabrank: %s\n", warning)
			}
			return cfg.WriteTable(cmd.OutOrStdout())
		},
	}
	given.addTo(cmd.Flags())
	return cmd
}
