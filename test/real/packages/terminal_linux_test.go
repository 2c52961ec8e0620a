//go:build real || soak

package packages_test

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// typingBound is how long a command may take that is waited for: an installation is the
// longest.
const typingBound = 90 * time.Second

// typist is bash as it is at a terminal: what one command does to the folder and to the
// variables holds for the next one, and $? is the status of the last. It ends each
// command by a record separator with the status in between, which nothing else prints.
const typist = `status=0
while IFS= read -r -d "" -u 3 typed; do
  (exit $status); eval "$typed" 3<&-
  status=$?
  printf '\036%d\036' $status
done`

// ended matches what the typist prints when a command has ended.
var ended = regexp.MustCompile("\x1e(\\d+)\x1e")

// escapes matches what colors a terminal, and overwritten matches the beginning of a line
// that was written again.
var (
	escapes     = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	overwritten = regexp.MustCompile("(?m)^.*\r([^\r\n])")
)

// shown is what stays on a screen of what was printed.
func shown(printed string) string {
	printed = strings.ReplaceAll(printed, "\x1b[1G", "\r") // to the first column: npm
	printed = strings.ReplaceAll(escapes.ReplaceAllString(printed, ""), "\r\n", "\n")
	return overwritten.ReplaceAllString(printed, "$1")
}

// terminal is a shell on a machine, at a pseudo-terminal, as programs can tell.
type terminal struct {
	t      *testing.T
	shell  *exec.Cmd
	typing *os.File       // commands, each ended by a zero byte
	screen testkit.Buffer // all that was ever printed
	read   int            // how much of it belonged to commands that have ended
}

// open starts a shell in the folder and the environment of a user who has just come.
func (m *machine) open() *terminal {
	m.t.Helper()
	c := &terminal{t: m.t}
	master, slave := harness.OpenTerminal(m.t)
	commands, typing, err := os.Pipe()
	testkit.Must(m.t, err)
	c.typing = typing
	c.shell = m.command("bash", "--noprofile", "--norc", "-c", typist)
	c.shell.Stdin, c.shell.Stdout, c.shell.Stderr = slave, slave, slave
	c.shell.ExtraFiles = []*os.File{commands}
	c.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testkit.Must(m.t, c.shell.Start())
	slave.Close()
	commands.Close()
	done := make(chan struct{})
	go func() { // ends with the last process that has the terminal; the machine ends them
		defer close(done)
		_, _ = io.Copy(&c.screen, master)
	}()
	m.t.Cleanup(func() {
		typing.Close()
		m.end()
		_ = c.shell.Wait()
		<-done
		if m.t.Failed() {
			m.t.Logf("a terminal:\n%s", c)
		}
	})
	return c
}

// enter types a command.
func (c *terminal) enter(command string) {
	c.t.Helper()
	_, err := io.WriteString(c.typing, command+"\x00")
	testkit.Need(c.t, err == nil, "type %q: %v", command, err)
}

// printed returns what the present command has printed, and its status: -1 while it runs.
func (c *terminal) printed() (text string, status int) {
	text, status = c.screen.String()[c.read:], -1
	if at := ended.FindStringSubmatchIndex(text); at != nil {
		status, _ = strconv.Atoi(text[at[2]:at[3]])
		text = text[:at[0]]
	}
	return shown(text), status
}

// result waits for the end of the present command, and is ready for the next one.
func (c *terminal) result(command string, within time.Duration) (text string, status int) {
	c.t.Helper()
	testkit.Eventually(c.t, within, "the end of: "+command, func() bool {
		text, status = c.printed()
		return status >= 0
	})
	c.read += ended.FindStringIndex(c.screen.String()[c.read:])[1]
	return text, status
}

// foreground returns the process that the typed command is, numbered as outside.
func (c *terminal) foreground() int {
	c.t.Helper()
	// The shell is the child of nsenter, which stays outside of the machine's processes.
	return harness.ChildOf(c.t, harness.ChildOf(c.t, c.shell.Process.Pid))
}

// terminate sends SIGTERM to the running command alone, which has to end by 0.
func (c *terminal) terminate(command string) {
	c.t.Helper()
	if _, status := c.printed(); status >= 0 {
		return // it was ended by what was typed
	}
	err := syscall.Kill(c.foreground(), syscall.SIGTERM)
	testkit.Need(c.t, err == nil, "end %s: %v", command, err)
	if text, status := c.result(command, harness.Patience); status != 0 {
		c.t.Errorf("%s\nended by %d after SIGTERM, want 0; it printed:\n%s", command, status, text)
	}
}

// String is the screen, for a test that fails.
func (c *terminal) String() string {
	return ended.ReplaceAllString(shown(c.screen.String()), "[ended by $1]\n")
}
