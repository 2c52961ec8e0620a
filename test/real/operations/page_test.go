//go:build real || soak

package operations_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	// killSeen bounds how late the page shows that a worker was killed; it looks once a second.
	killSeen = 2 * time.Second
	// shown bounds how long the page takes to show a thousand workers, each second.
	shown = 500 * time.Millisecond
)

// The live page in a browser of a phone's size: numbers move, a worker that is killed is seen in
// time, and each button does what it says.
func TestLivePage(t *testing.T) {
	folder := filepath.Join(harness.Root(t), "test", "real", "operations", "browser")
	harness.Built(t, filepath.Join(folder, "node_modules", "playwright-core", "index.js"), "scripts/install-deps.sh workers")
	control := filepath.Join(harness.ShortTempDir(t), "control")
	c := harness.StartCabrank(t, "--control", control, "--workers", "2", "--", harness.CabrankBinary(t), "demo", "worker", "--work", "5ms").Booted(2)
	go func() {
		greeter := demopb.NewGreeterClient(harness.Dial(t, c.Addr))
		for t.Context().Err() == nil {
			_, _ = greeter.SayHello(t.Context(), &demopb.HelloRequest{Name: "page"}) // some meet the worker that is killed
		}
	}()
	served := harness.StartCLI(t, "page", "--control", control, "--port", "0")
	served.Wait(harness.Patience, "the page's address", func() bool { return strings.Contains(served.Output(), "\n") })
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(folder, "page.mjs"), harness.Browser(t), strings.TrimSpace(served.Output()))
	in, err := cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	testkit.Must(t, cmd.Start())
	said := map[string]string{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		t.Log(line)
		switch line {
		case "kill":
			c.KillPID(c.ReadyPIDs("worker-1")[0])
		case "upgrade":
			c.Ended = true // the successor serves from now on
			harness.StartCLI(t, "upgrade", "--control", control).WantExit(harness.Patience, 0)
		default:
			at := strings.LastIndexAny(strings.TrimSuffix(line, " ms"), " ")
			said[line[:max(at, 0)]] = strings.TrimSuffix(line[at+1:], " ms")
			continue
		}
		_, err = in.Write([]byte("done\n"))
		testkit.Must(t, err)
	}
	err = cmd.Wait()
	testkit.Need(t, err == nil, "%v\n%s", err, complaint.String())
	if ms, err := strconv.Atoi(said["seen after"]); err != nil || time.Duration(ms)*time.Millisecond > killSeen {
		t.Errorf("a worker that was killed was seen after %q ms, %v", said["seen after"], err)
	}
	if ms, err := strconv.Atoi(said["a thousand workers"]); err != nil || time.Duration(ms)*time.Millisecond > shown {
		t.Errorf("a thousand workers took %q ms, %v", said["a thousand workers"], err)
	}
	testkit.Want(t, said["too wide by"] == "0" && said["faults"] == "[]" && said["events"] != "0", "the page: %v", said)
	served.Signal(syscall.SIGTERM)
	served.WantExit(harness.Patience, 0)
	c.StopSuccessor()
}
