//go:build real || soak

package packages_test

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Ctrl-C on a terminal reaches the program once, whether the shell has become it or Node
// stays before it: a second one would end its calls.
func TestNPMOnATerminal(t *testing.T) {
	n := newNodeProject(t)
	cabrank, program := npmFiles(t)
	n.run("npm", "install", cabrank, program)
	for _, start := range []string{"cabrank", "node node_modules/.bin/cabrank"} {
		t.Run(start, func(t *testing.T) {
			master, terminal := harness.OpenTerminal(t)
			c := startRun(t, func(args ...string) *exec.Cmd {
				cmd := n.command(append(strings.Fields(start), args...)...)
				cmd.Stdin, cmd.Env = terminal, append(cmd.Env, "LOG_LEVEL=debug")
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
				return cmd
			}, harness.FaultWorker(t)...)
			c.WaitWorkers(1)
			fmt.Fprint(master, "\x03")
			c.WantExit(harness.StopBound, 0)
			c.WaitNoneLeft(harness.Patience)
			for _, again := range []string{"taken for the same signal", "not waiting for calls"} {
				testkit.Want(t, !strings.Contains(c.Log(), again), "the signal has come twice:\n%s", c.Log())
			}
		})
	}
}
