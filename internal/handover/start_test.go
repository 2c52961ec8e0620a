package handover

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// beManager plays the service manager "manager", which tells of the end of each of its
// children, and its service "service", which starts another process as its sibling.
func beManager(mode string) int {
	next := exec.Command("/proc/self/exe")
	next.Stdout = os.Stdout
	if mode == "service" {
		next.Env = append(os.Environ(), successorVariable+"=ends")
		wait, err := Start(next, true)
		if err != nil {
			return 1
		}
		fmt.Fprintln(os.Stdout, "sibling", next.Process.Pid, wait())
		return 0
	}
	next.Env = append(os.Environ(), successorVariable+"=service")
	if next.Start() != nil {
		return 1
	}
	fmt.Fprintln(os.Stdout, "service", next.Process.Pid)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil {
			return 0 // no child is left
		}
		fmt.Fprintln(os.Stdout, "child", pid, "ended by", status.ExitStatus())
	}
}

// Below a service manager a new process is that one's child from its first moment, and
// its end is noticed (R20).
func TestStartSibling(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux gives a new process another parent")
	}
	manager := exec.Command("/proc/self/exe")
	manager.Env = append(os.Environ(), successorVariable+"=manager")
	out, err := manager.CombinedOutput()
	testkit.Need(t, err == nil, "%v\n%s", err, out)
	var service, sibling int
	for line := range strings.Lines(string(out)) {
		_, _ = fmt.Sscanf(line, "service %d", &service)
		_, _ = fmt.Sscanf(line, "sibling %d", &sibling)
	}
	for _, line := range []string{
		fmt.Sprintf("sibling %d <nil>\n", sibling),
		fmt.Sprintf("child %d ended by 3\n", sibling),
		fmt.Sprintf("child %d ended by 0\n", service),
	} {
		testkit.Want(t, strings.Contains(string(out), line), "no line %q in\n%s", line, out)
	}
}
