// Command lab runs a scenario of the lab, which measures from outside, and prints and
// keeps what it has found. It needs a clone of the repository: it builds the programs
// that it starts beside bin/cabrank (lab/cmd), and compares with the peers
// whose configurations are in lab/internal/proxies.
//
//	bin/lab/lab peers -quick
//	bin/lab/lab queue -help
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/peers"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run has the scenario that the first argument names take the others, or says which
// there are.
func run(args []string, stderr io.Writer) (exit int) {
	say, exit := "lab: want the name of a scenario", 2
	if len(args) > 0 {
		for _, s := range peers.Scenarios() {
			if s.Name == args[0] {
				return s.Run(args[1:])
			}
		}
		say = fmt.Sprintf("lab: unknown scenario %q", args[0])
	}
	if slices.Contains([]string{"-h", "-help", "--help"}, strings.Join(args, "")) {
		say, exit = "lab SCENARIO [FLAG...] measures cabrank from outside", 0
	}
	fmt.Fprintf(stderr, "%s; these are there, -help behind one tells its flags:\n", say)
	for _, s := range peers.Scenarios() {
		fmt.Fprintf(stderr, "  %-6s %s\n", s.Name, s.About)
	}
	return exit
}
