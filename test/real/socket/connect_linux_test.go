//go:build real || soak

package socket_test

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// On a terminal a line is completed and brought back, what comes is shown above it, and
// characters that would move the cursor are not.
func TestConnectOnATerminal(t *testing.T) {
	_, url := startServe(t, "--test-functions")
	master, terminal := harness.OpenTerminal(t)
	shown := &testkit.Buffer{}
	go func() { _, _ = io.Copy(shown, master) }() // ends with the terminal
	cmd := exec.Command(harness.CabrankBinary(t), "socket", "connect", url)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	typed := func(keys, want string, times int) {
		t.Helper()
		_, err := io.WriteString(master, keys)
		testkit.Must(t, err)
		testkit.Eventually(t, harness.Patience, want, func() bool { return strings.Count(shown.String(), want) == times })
	}
	typed("", "cabrank> ", 1)
	typed("ca\ttest.reverse \"cba\"\r", `test.reverse "abc"`, 1)
	typed("call te\t\"cba\"\r", `test.reverse "abc"`, 2)
	typed("\x1b[A\r", `test.reverse "abc"`, 3)            // the line before
	typed("call test.echo \"\u009b2J\"\r", `\u009b2J`, 2) // sent and back
	typed("wait\r", "wait is for scripts", 1)
	typed("exit\r", "exit", 1)
	err := cmd.Wait()
	testkit.Want(t, err == nil, "%v:\n%s", err, shown)
	testkit.Want(t, !strings.Contains(shown.String(), "< res  \u009b"), "%q", shown)
}
