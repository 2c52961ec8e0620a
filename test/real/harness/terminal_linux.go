package harness

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cabrank/cabrank/internal/testkit"
)

// OpenTerminal makes a pseudo-terminal (pty(7)): what a program writes to the terminal
// is read from the master, and what is written to the master is typed.
func OpenTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { master.Close() })
	testkit.Must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	testkit.Must(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}
