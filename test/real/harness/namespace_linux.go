package harness

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// PIDNamespace is a command line that makes the command behind it PID 1.
func PIDNamespace(t testing.TB) []string {
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

// ChildOf returns the only child of a process.
// Source: proc(5), task/TID/children.
func ChildOf(t testing.TB, parent int) int {
	t.Helper()
	id := strconv.Itoa(parent)
	children := testkit.ReadFile(t, "/proc/"+id+"/task/"+id+"/children")
	child, err := strconv.Atoi(strings.TrimSpace(string(children)))
	testkit.Need(t, err == nil, "the children of %d are %q, want one", parent, children)
	return child
}
