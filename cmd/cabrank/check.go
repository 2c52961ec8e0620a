package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/redislink"
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
			if err := cfg.UpstreamItself(cfg.Server.Addr(), localAddresses()); err != nil {
				return cli.UsageError(err)
			}
			if err := redisAddresses(cfg); err != nil {
				return cli.UsageError(err)
			}
			if err := checkPairs(cfg); err != nil {
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

// redisAddresses refuses the addresses of Redis that cabrank run would refuse, where it
// uses them.
func redisAddresses(cfg *config.Config) error {
	if len(cfg.Socket.Paths) == 0 {
		return nil
	}
	var faults config.Faults
	refuse := func(key string, err error) {
		origin, _ := cfg.Written(key)
		faults = append(faults, config.Fault{Origin: origin, Key: key, What: strings.TrimPrefix(err.Error(), "redis: ")})
	}
	calls, events := cfg.Socket.Redis, cfg.Socket.RedisPubSub
	if calls == "" && events != "" {
		refuse("socket.redis_pubsub", errors.New("has an address of events, socket.redis has none of calls"))
	}
	for _, at := range []struct{ key, address string }{{"socket.redis", calls}, {"socket.redis_pubsub", events}} {
		if _, err := redislink.ClientOption(at.address); err != nil && at.address != "" {
			refuse(at.key, err)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}
