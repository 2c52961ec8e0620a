package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/cabrank/cabrank/internal/admin"
)

const reloadHelp = `Read the configuration again, from the same file, variables and flags, and take
what has changed without ending a connection. What holds only for workers that
start from now on (cabrank restart), and what only a new cabrank takes (cabrank
upgrade), is named. A file with a fault changes nothing.

Exit status: 0 if the configuration was taken; 1 with one line per fault if not; 2
if there is no cabrank.`

func newReloadCommand() *cobra.Command {
	return new(asking).order(&cobra.Command{
		Use:     "reload",
		Short:   "Take what has changed in the configuration",
		Long:    reloadHelp,
		Example: "  cabrank check && cabrank reload",
		Args:    cobra.NoArgs,
	}, func([]string) (any, error) { return admin.ReloadRequest{}, nil })
}

// reloadText says what a reload found, a line for each kind.
func reloadText(r admin.Reload) string {
	var text strings.Builder
	for _, kind := range []struct {
		title string
		keys  []string
	}{
		{"applied", r.Applied},
		{"applies to workers that start from now on (cabrank restart)", r.NeedsRestart},
		{"needs a new cabrank (cabrank upgrade)", r.NeedsUpgrade},
	} {
		if len(kind.keys) > 0 {
			text.WriteString(kind.title + ": " + strings.Join(kind.keys, ", ") + "\n")
		}
	}
	if text.Len() == 0 {
		text.WriteString("nothing has changed\n")
	}
	for _, warning := range r.Warnings {
		text.WriteString("warning: " + warning + "\n")
	}
	return text.String()
}
