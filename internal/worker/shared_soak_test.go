//go:build soak && linux

package worker

import (
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Workers that listen on one port, whatever they are told, are named by the log at
// once, also when the port is by chance that of one of them.
func TestSharedPortIsTold(t *testing.T) {
	start := testkit.FreePorts(t, 8)
	for name, port := range map[string]int{"nobody's": start + 7, "of worker-2": start + 1} {
		t.Run(name, func(t *testing.T) {
			address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			h := startHouse(t, func(o *Options) {
				o.Count.N, o.StartPort, o.Command = 3, start, append(shell(`CABRANK_ADDR=$1 exec "$0" test-worker share`), address)
			})
			h.eventually("the line", func() bool { return strings.Contains(h.logs.String(), "workers share a port") })
			log := h.logs.String()
			_, line, _ := strings.Cut(log, "workers share a port")
			line, _, _ = strings.Cut(line, "\n")
			if !strings.Contains(line, "listen_on="+address) || !strings.Contains(line, `workers="worker-`) {
				t.Errorf("the line is %q", line)
			}
			if strings.Contains(log, "worker not ready yet") {
				t.Errorf("it comes after the line about a slow boot:\n%s", log)
			}
		})
	}
}

// Of a process that is ending /proc shows no sockets. Those that are left are not said
// to be a stranger's: it is its end that is to be told.
func TestEndingWorkerIsNoStranger(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer listener.Close()
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testkit.Must(t, cmd.Start())
	defer cmd.Wait()
	group := cmd.Process.Pid
	testkit.Eventually(t, patience, "the process to end", func() bool { return isEnding(group) })
	if listenerGone(group, []int{group}) {
		t.Error("its address is said to be deserted")
	}
	if owners, err := listenerOwners(group, "tcp", listener.Addr().String()); err != nil || len(owners) > 0 {
		t.Errorf("owners %v, %v", owners, err)
	}
}
