//go:build soak

package packages_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// demoHost is a machine with systemd and the package, which serves with workers of the
// demo. Each of their calls takes some time.
func demoHost(t *testing.T, work string) debianHost {
	t.Helper()
	name := debianPackage(t)
	h := startSystemd(t, name)
	h.dpkg("--install", filepath.Join(shop, filepath.Base(name)))
	h.configure(`  #command: [/usr/local/bin/worker, --listen, "{addr}"]`, "  command: [cabrank, demo, worker, --work, "+work+"]")
	h.run("systemctl", "enable", "--now", "cabrank")
	return h
}

// fourCalls begins four calls, and returns when each has a worker. Their exit status is 0
// if none fails.
func (h debianHost) fourCalls() *harness.Process {
	h.t.Helper()
	calls := harness.StartCommand(h.t, h.command("cabrank", "demo", "call", "--calls=4", "--concurrency=4"))
	testkit.Eventually(h.t, harness.Patience, "four calls at workers", func() bool {
		out, _ := h.command("cabrank", "status", "--json").Output()
		var status struct {
			InFlight int `json:"in_flight"`
		}
		return json.Unmarshal(out, &status) == nil && status.InFlight == 4
	})
	return calls
}

// An upgrade leaves the service for systemd what it was: a stop and a restart wait for
// its calls, those that the process before the upgrade still has among them, and its end
// is seen.
func TestSystemdAfterAnUpgrade(t *testing.T) {
	h := demoHost(t, "3s")
	for _, command := range []string{"stop", "restart"} {
		first, before := h.main(), h.fourCalls()
		h.run("cabrank", "upgrade")
		testkit.Need(t, h.main() != first, "after the upgrade of process %d that is still the main one", first)
		after := h.fourCalls()
		h.run("systemctl", command, "cabrank")
		for _, calls := range []*harness.Process{before, after} {
			calls.WantExit(harness.Patience, 0)
		}
		testkit.Equal(t, h.run("systemctl", "show", "--property=Result", "--value", "cabrank"), "success\n",
			"systemctl %s: the service ended by", command)
		h.run("systemctl", "start", "cabrank")
	}

	h.run("cabrank", "upgrade")
	killed := h.main()
	h.run("kill", "-s", "KILL", strconv.Itoa(killed))
	testkit.Eventually(t, harness.Patience, "systemd to start the service again", func() bool {
		now := h.main()
		return now != killed && now != 0 && h.command("systemctl", "is-active", "cabrank").Run() == nil
	})
}

// The unit does what the pages say: its port is there with the service and stays open over
// a restart, the commands find it, its access log has a place, and a worker that is
// written in Ruby gets on with what it may do.
func TestSystemdUnit(t *testing.T) {
	h := demoHost(t, "20ms")
	testkit.Equal(t, h.run("systemctl", "is-active", "cabrank.socket", "cabrank"), "active\nactive\n", "socket and service")
	enough := h.load()
	h.run("systemctl", "restart", "cabrank")
	enough()
	h.run("cp", "-r", home+"/examples/ruby", "/srv/shop")
	h.configure("[cabrank, demo, worker, --work, 20ms]", "[ruby, /srv/shop/worker.rb]\naccess_log: /var/log/cabrank/calls.log")
	h.run("systemctl", "restart", "cabrank")
	h.run("ruby", "/srv/shop/client.rb", "localhost:8080")
	h.run("cabrank", "stop") // the log is written by then
	testkit.Says(t, h.run("cat", "/var/log/cabrank/calls.log"), `"code":"OK"`)
	said := h.run("systemd-analyze", "--no-pager", "security", "cabrank")
	var exposure float64
	_, rest, _ := strings.Cut(said, "Overall exposure level for cabrank.service: ")
	_, _ = fmt.Sscan(rest, &exposure)
	testkit.Want(t, exposure != 0 && exposure <= 4, "systemd-analyze security: %v, want 4 at most\n%s", exposure, said)
}
