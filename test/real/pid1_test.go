//go:build real && linux

package real_test

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// In a container cabrank is PID 1, which nobody else is there to help: it reaps
// every orphan, ends on SIGTERM with 0, and leaves nothing (R17, R18).
func TestAsPID1(t *testing.T) {
	script := `i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done; exec "$0" "$@"`
	p := StartProcess(t, nil, "/usr/bin/env", slices.Concat(pidNamespace(t), []string{
		cabrankBinary(t), "run", "--listen", "127.0.0.1:0", "--probes", "off", "--metrics", "off",
		"--transport", "unix", "--workers", "1", "--", "sh", "-c", script,
	}, faultWorker(t))...)
	p.WaitLog(patience, "worker ready")
	c := Cabrank{Process: p}
	if got := callIo(t.Context(), dialLang(t, c.listening("listening")), "1", 0); got.err != nil {
		t.Error(got.err)
	}
	first := childOf(t, p.PID)
	testkit.Eventually(t, patience, "no zombie under PID 1", func() bool { return zombiesOf(first) == 0 })
	c.signal(first, syscall.SIGTERM)
	if code := p.ExitCode(stopBound); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	p.WaitNoneLeft(3 * time.Second)
}

// pidNamespace is a command line that makes the command behind it PID 1.
func pidNamespace(t *testing.T) []string {
	t.Helper()
	line := []string{"unshare", "--pid", "--fork", "--mount-proc"}
	if os.Getuid() != 0 {
		line = slices.Insert(line, 1, "--user", "--map-root-user")
	}
	if out, err := exec.Command(line[0], append(line[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("this machine makes no process namespace, neither as root nor by user namespaces: %s", out)
	}
	return line
}

// childOf returns the only child of a process.
// Source: proc(5), task/TID/children.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	id := strconv.Itoa(parent)
	children, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatalf("the children of %d are %q, want one", parent, children)
	}
	return child
}
