package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/config"
)

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
