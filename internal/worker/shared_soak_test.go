//go:build soak && linux

package worker

import (
	"net"
	"strconv"
	"strings"
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
			testkit.Want(t, strings.Contains(line, "listen_on="+address) && strings.Contains(line, `workers="worker-`),
				"the line is %q", line)
			testkit.Want(t, !strings.Contains(log, "worker not ready yet"), "it comes after the line about a slow boot:\n%s", log)
		})
	}
}
