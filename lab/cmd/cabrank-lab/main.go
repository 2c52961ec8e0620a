// Command cabrank-lab measures what calls cost, from outside: loads on a service, and
// scenarios that compare ways to balance and to connect. `cabrank lab` starts it.
package main

import (
	"context"
	"os"

	"github.com/cabrank/cabrank/internal/worker"
)

func main() {
	// The keeper ends what an arm has started if this process cannot any more.
	if len(os.Args) == 2 && os.Args[1] == "keeper" {
		os.Exit(worker.RunKeeper(os.Stdin, os.Stdout))
	}
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
