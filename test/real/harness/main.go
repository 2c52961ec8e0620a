package harness

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/test/real/oneslot"
)

// Role is what the test binary does when it is started with its name as the first
// argument: a worker that needs no build and no interpreter, for instance.
type Role struct {
	Name string
	Run  func(args []string) error
}

// Main is the TestMain of every package of tests: it runs the tests, or plays one of
// the roles that all packages have, or of those that this one has beside them.
func Main(m *testing.M, more ...Role) {
	roles := append([]Role{
		{FaultWorkerRole, runFaultWorker},
		{ManagerRole, runManager},
		{oneslot.Role, oneslot.Run},
	}, more...)
	for _, role := range roles {
		if len(os.Args) > 1 && os.Args[1] == role.Name {
			if err := role.Run(os.Args[2:]); err != nil {
				panic(err) // the worker's log shows it
			}
			return
		}
	}
	if signal.Ignored(syscall.SIGHUP) { // as under nohup, which what the tests start would inherit
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	m.Run() // its result becomes the exit code
}
