//go:build soak

package socket_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Sockets alone are a cabrank like others: it tells its status, reloads, hands over to a new
// process and stops when asked.
func TestServeIsAsked(t *testing.T) {
	socket := filepath.Join(harness.ShortTempDir(t), "c.sock")
	p := harness.StartProcess(t, []string{"CABRANK_CONTROL=" + socket}, harness.CabrankBinary(t),
		"socket", "serve", "--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0", "--test-functions", "--drain-timeout", "5s")
	c := harness.Cabrank{Process: p}
	url := "ws://" + c.Listening("listening") + "/ws"
	ask := func(args ...string) string {
		t.Helper()
		asked := harness.StartCLI(t, append([]string{args[0], "--control", socket}, args[1:]...)...)
		asked.WantExit(harness.Patience, 0)
		return asked.Output()
	}
	serving := func() {
		t.Helper()
		testkit.Says(t, ask("status", "--json"), `"state":"serving"`)
		client, err := oldjuggler.Dial(url, nil, func(oldjuggler.Incoming) {})
		testkit.Must(t, err)
		client.Close()
	}
	serving()
	ask("reload")
	p.Signal(syscall.SIGHUP)
	p.Wait(harness.Patience, "a second reload", func() bool { return strings.Count(p.Log(), "configuration reloaded") == 2 })
	serving()
	ask("upgrade")
	p.WantExit(harness.Patience, 0)
	serving()
	ask("stop")
	p.WaitNoneLeft(harness.Patience)
}
