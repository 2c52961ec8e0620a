// Command cabrank puts one port in front of worker processes and gives every
// call to the first worker that is free.
//
// Each subcommand has a file of its own; root.go lists them. What a subcommand
// returns is printed and turned into the exit status in exit.go, and nowhere
// else.
package main

import (
	"context"
	"os"

	"github.com/cabrank/cabrank/internal/process"
	"github.com/cabrank/cabrank/internal/service"
)

func main() {
	// The keeper outlives everything else here and shares nothing with it (R18),
	// so it is told apart before anything is set up.
	if len(os.Args) == 2 && os.Args[1] == "keeper" {
		os.Exit(process.RunKeeper(os.Stdin, os.Stdout))
	}
	ctx := context.Background()
	if serves(os.Args[1:]) {
		ctx = service.HoldSignals(ctx)
	}
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// serves reports whether a command line is that of a process that serves.
func serves(args []string) bool {
	return len(args) == 0 || args[0] == "run" || len(args) > 1 && args[0] == "socket" && args[1] == "serve"
}
