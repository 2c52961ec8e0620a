//go:build (real || soak) && linux

package names_test

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/nameserver"

	"fmt"
	"strconv"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

// crew is upstreams that a test runs, with one port on addresses of their own:
// what the pods of a headless Service are.
type crew struct {
	port    int
	workers map[string]*harness.Process // by address
}

// startCrew starts a worker at 127.0.0.FIRST and the n-1 addresses after it. Each
// is called by its address.
func startCrew(t *testing.T, first byte, n int) *crew {
	t.Helper()
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("127.0.0.%d", int(first)+i))
	}
	c := &crew{port: testkit.FreePorts(t, 1, all...), workers: map[string]*harness.Process{}}
	command := harness.FaultWorker(t)
	for _, address := range all {
		name := net.JoinHostPort(address, strconv.Itoa(c.port))
		c.workers[name] = harness.StartProcess(t, []string{"CABRANK_ADDR=" + name, "CABRANK_WORKER=" + name}, command[0], command[1:]...)
	}
	return c
}

func (c *crew) at(last int) string { return fmt.Sprintf("127.0.0.%d:%d", last, c.port) }

// startNamed starts cabrank over upstreams that a zone tells.
func startNamed(t *testing.T, z *nameserver.Zone, args ...string) *harness.Cabrank {
	t.Helper()
	return harness.StartCabrankEnv(t, []string{"CABRANK_DNS_SERVERS=" + z.Addr}, args...)
}

// Endpoints come and go with the answers for their name, and no call notices:
// while a server fails and while a name is empty nothing changes, and an answer
// that is too long for a datagram comes over TCP.
func TestNamesChangeUnderLoad(t *testing.T) {
	crew, zone := startCrew(t, 11, 3), nameserver.StartZone(t)
	zone.Say("workers.test. 0 IN A 127.0.0.11", "workers.test. 0 IN A 127.0.0.12")
	name := "dns:workers.test.:" + strconv.Itoa(crew.port)
	c := startNamed(t, zone, "--upstream", name, "--min-ready", "2")
	c.WaitReady(harness.Patience)
	load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
	load.WaitAnswered(t, crew.at(11), 3)
	load.WaitAnswered(t, crew.at(12), 3)

	zone.Say("workers.test. 0 IN A 127.0.0.12", "workers.test. 0 IN A 127.0.0.13")
	load.WaitAnswered(t, crew.at(13), 3)
	c.WaitGone(crew.at(11))
	crew.workers[crew.at(11)].Signal(syscall.SIGTERM) // it has no call
	crew.workers[crew.at(11)].ExitCode(harness.Patience)

	zone.Fall(true)
	c.WaitLookups(name, "failed", 2)
	load.WaitAnswered(t, crew.at(13), 3)
	zone.Fall(false)
	zone.Say()
	c.WaitLookups(name, "empty", 2)
	load.WaitAnswered(t, crew.at(12), 3)
	c.WaitMetric("cabrank_dns_addresses", 2, "name", name)

	long := []string{"workers.test. 0 IN A 127.0.0.12", "workers.test. 0 IN A 127.0.0.13"}
	for i := range 100 { // nobody is there
		long = append(long, fmt.Sprintf("workers.test. 0 IN A 127.0.1.%d", i))
	}
	zone.Say(long...)
	c.WaitMetric("cabrank_dns_addresses", 102, "name", name)
	if !slices.ContainsFunc(zone.Questions(), func(asked string) bool { return strings.HasPrefix(asked, "tcp ") }) {
		t.Error("no question over TCP")
	}
	c.WaitMetric("cabrank_upstream_state", 100, "state", "unreachable")
	load.WaitAnswered(t, crew.at(12), 3)
	zone.Say("workers.test. 3600 IN A 127.0.0.12", "workers.test. 3600 IN A 127.0.0.13")
	c.WaitMetric("cabrank_upstream_state", 0, "state", "unreachable")

	// The answer holds for an hour now. A question or two may be under way, for
	// endpoints that failed.
	testkit.Eventually(t, harness.Patience, "a second without a lookup", func() bool {
		before, until := c.Metric("cabrank_dns_lookups_total", "name", name), time.Now().Add(time.Second)
		for time.Now().Before(until) {
			load.WaitAnswered(t, crew.at(13), 20)
		}
		return c.Metric("cabrank_dns_lookups_total", "name", name) == before
	})
	zone.Say("workers.test. 3600 IN A 127.0.0.12")
	crew.workers[crew.at(13)].Signal(syscall.SIGTERM)
	c.WaitGone(crew.at(13))
	load.WaitAnswered(t, crew.at(12), 3)
	wantNoFailures(t, load.Stop())
	c.Stop()
}

// The targets of a service record get calls by their priority, with the ports
// that it tells (RFC 2782).
func TestServicesByPriority(t *testing.T) {
	first, second, zone := startCrew(t, 21, 1), startCrew(t, 22, 1), nameserver.StartZone(t)
	zone.Say(
		fmt.Sprintf("_grpc._tcp.workers.test. 0 IN SRV 1 5 %d one.workers.test.", first.port),
		fmt.Sprintf("_grpc._tcp.workers.test. 0 IN SRV 2 5 %d two.workers.test.", second.port),
		"one.workers.test. 0 IN A 127.0.0.21", "two.workers.test. 0 IN A 127.0.0.22",
	)
	c := startNamed(t, zone, "--upstream", "srv:_grpc._tcp.workers.test.")
	c.WaitReady(harness.Patience)
	c.WaitMetric("cabrank_upstream_state", 1, "worker", second.at(22), "state", "standby")
	load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
	load.WaitAnswered(t, first.at(21), 10)
	for _, o := range load.Outcomes() {
		testkit.Need(t, o.Worker == first.at(21), "a call of %q", o.Worker)
	}
	first.workers[first.at(21)].Signal(syscall.SIGTERM) // calls there end, no new ones are taken
	load.WaitAnswered(t, second.at(22), 10)
	first.workers[first.at(21)].ExitCode(harness.Patience) // no connection of ours keeps it
	worker := harness.FaultWorker(t)
	harness.StartProcess(t, []string{"CABRANK_ADDR=" + first.at(21), "CABRANK_WORKER=again"}, worker[0], worker[1:]...)
	load.WaitAnswered(t, "again", 10)
	c.WaitMetric("cabrank_upstream_state", 1, "worker", second.at(22), "state", "standby")
	wantNoFailures(t, load.Stop())
	c.Stop()
}

// Workers and endpoints elsewhere serve in one rank, and both count as ready.
func TestWorkersAndNamesTogether(t *testing.T) {
	crew, zone := startCrew(t, 31, 1), nameserver.StartZone(t)
	name := "dns:workers.test.:" + strconv.Itoa(crew.port)
	args := append([]string{"--upstream", name, "--workers", "1", "--transport", "unix", "--min-ready", "2", "--"}, harness.FaultWorker(t)...)
	c := startNamed(t, zone, args...)
	c.WaitWorkers(1)
	c.WaitLookups(name, "empty", 1)
	testkit.Equal(t, c.Probe("readiness"), 503, "readiness with one of two")
	zone.Say("workers.test. 0 IN A 127.0.0.31")
	c.WaitReady(harness.Patience)
	load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
	load.WaitAnswered(t, "worker-1", 5)
	load.WaitAnswered(t, crew.at(31), 5)
	wantNoFailures(t, load.Stop())
	c.Stop()
}

func wantNoFailures(t *testing.T, all []harness.Outcome) {
	t.Helper()
	if failed := harness.Failures(all); len(failed) > 0 {
		t.Errorf("%d of %d calls failed, the first with %v", len(failed), len(all), failed[0].Err)
	}
}
