//go:build real && linux

package real_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// crew is upstreams that a test runs, with one port on addresses of their own:
// what the pods of a headless Service are.
type crew struct {
	port    int
	workers map[string]*Process // by address
}

// startCrew starts a worker at 127.0.0.FIRST and the n-1 addresses after it. Each
// is called by its address.
func startCrew(t *testing.T, first byte, n int) *crew {
	t.Helper()
	var all []netip.Addr
	for i := range n {
		all = append(all, netip.AddrFrom4([4]byte{127, 0, 0, first + byte(i)}))
	}
	c := &crew{port: freePortOf(t, all), workers: map[string]*Process{}}
	command := faultWorker(t)
	for _, address := range all {
		name := netip.AddrPortFrom(address, uint16(c.port)).String()
		c.workers[name] = StartProcess(t, []string{"CABRANK_ADDR=" + name, "CABRANK_WORKER=" + name}, command[0], command[1:]...)
	}
	return c
}

func (c *crew) at(last int) string { return fmt.Sprintf("127.0.0.%d:%d", last, c.port) }

// startNamed starts cabrank over upstreams that a zone tells.
func startNamed(t *testing.T, z *zone, args ...string) *Cabrank {
	t.Helper()
	return StartCabrankEnv(t, []string{"CABRANK_DNS_SERVERS=" + z.addr, "CABRANK_DNS_MIN_TTL=200ms"}, args...)
}

// Endpoints come and go with the answers for their name, and no call notices:
// while a server fails and while a name is empty nothing changes, and an answer
// that is too long for a datagram comes over TCP.
func TestNamesChangeUnderLoad(t *testing.T) {
	crew, zone := startCrew(t, 11, 3), startZone(t)
	zone.say(t, "workers.test. 0 IN A 127.0.0.11", "workers.test. 0 IN A 127.0.0.12")
	name := "dns:workers.test.:" + strconv.Itoa(crew.port)
	c := startNamed(t, zone, "--upstream", name, "--min-ready", "2")
	c.WaitReady(patience)
	load := startLoad(t, c.Addr, 4, shortWork)
	load.waitAnswered(t, crew.at(11), 3)
	load.waitAnswered(t, crew.at(12), 3)

	zone.say(t, "workers.test. 0 IN A 127.0.0.12", "workers.test. 0 IN A 127.0.0.13")
	load.waitAnswered(t, crew.at(13), 3)
	c.waitGone(crew.at(11))
	crew.workers[crew.at(11)].Signal(syscall.SIGTERM) // it has no call
	crew.workers[crew.at(11)].ExitCode(patience)

	zone.fall(true)
	c.waitLookups(name, "failed", 2)
	load.waitAnswered(t, crew.at(13), 3)
	zone.fall(false)
	zone.say(t)
	c.waitLookups(name, "empty", 2)
	load.waitAnswered(t, crew.at(12), 3)
	c.waitMetric("cabrank_dns_addresses", 2, "name", name)

	long := []string{"workers.test. 0 IN A 127.0.0.12", "workers.test. 0 IN A 127.0.0.13"}
	for i := range 100 { // nobody is there
		long = append(long, fmt.Sprintf("workers.test. 0 IN A 127.0.1.%d", i))
	}
	zone.say(t, long...)
	c.waitMetric("cabrank_dns_addresses", 102, "name", name)
	if zone.questions("tcp") == 0 {
		t.Error("no question over TCP")
	}
	c.waitMetric("cabrank_upstream_state", 100, "state", "unreachable")
	load.waitAnswered(t, crew.at(12), 3)
	zone.say(t, "workers.test. 3600 IN A 127.0.0.12", "workers.test. 3600 IN A 127.0.0.13")
	c.waitMetric("cabrank_upstream_state", 0, "state", "unreachable")

	// The answer holds for an hour now, but for endpoints that fail.
	before := c.metric("cabrank_dns_lookups_total", "name", name)
	load.waitAnswered(t, crew.at(13), 20)
	if after := c.metric("cabrank_dns_lookups_total", "name", name); after > before+1 {
		t.Errorf("%v lookups while the answer held", after-before)
	}
	zone.say(t, "workers.test. 3600 IN A 127.0.0.12")
	crew.workers[crew.at(13)].Signal(syscall.SIGTERM)
	c.waitGone(crew.at(13))
	load.waitAnswered(t, crew.at(12), 3)
	wantNoFailures(t, load.stop())
	c.Stop()
}

// The targets of a service record get calls by their priority, with the ports
// that it tells (RFC 2782).
func TestServicesByPriority(t *testing.T) {
	first, second, zone := startCrew(t, 21, 1), startCrew(t, 22, 1), startZone(t)
	zone.say(t,
		fmt.Sprintf("_grpc._tcp.workers.test. 0 IN SRV 1 5 %d one.workers.test.", first.port),
		fmt.Sprintf("_grpc._tcp.workers.test. 0 IN SRV 2 5 %d two.workers.test.", second.port),
		"one.workers.test. 0 IN A 127.0.0.21", "two.workers.test. 0 IN A 127.0.0.22",
	)
	c := startNamed(t, zone, "--upstream", "srv:_grpc._tcp.workers.test.")
	c.WaitReady(patience)
	c.waitMetric("cabrank_upstream_state", 1, "worker", second.at(22), "state", "standby")
	load := startLoad(t, c.Addr, 4, shortWork)
	load.waitAnswered(t, first.at(21), 10)
	for _, o := range load.outcomes() {
		if o.worker != first.at(21) {
			t.Fatalf("a call of %q", o.worker)
		}
	}
	first.workers[first.at(21)].Signal(syscall.SIGTERM) // calls there end, no new ones are taken
	load.waitAnswered(t, second.at(22), 10)
	first.workers[first.at(21)].ExitCode(patience) // no connection of ours keeps it
	worker := faultWorker(t)
	StartProcess(t, []string{"CABRANK_ADDR=" + first.at(21), "CABRANK_WORKER=again"}, worker[0], worker[1:]...)
	load.waitAnswered(t, "again", 10)
	c.waitMetric("cabrank_upstream_state", 1, "worker", second.at(22), "state", "standby")
	wantNoFailures(t, load.stop())
	c.Stop()
}

// Workers and endpoints elsewhere serve in one rank, and both count as ready.
func TestWorkersAndNamesTogether(t *testing.T) {
	crew, zone := startCrew(t, 31, 1), startZone(t)
	name := "dns:workers.test.:" + strconv.Itoa(crew.port)
	args := append([]string{"--upstream", name, "--workers", "1", "--transport", "unix", "--min-ready", "2", "--"}, faultWorker(t)...)
	c := startNamed(t, zone, args...)
	c.waitWorkers(1)
	c.waitLookups(name, "empty", 1)
	if got := c.Probe("readiness"); got != 503 {
		t.Errorf("readiness %d with one of two", got)
	}
	zone.say(t, "workers.test. 0 IN A 127.0.0.31")
	c.WaitReady(patience)
	load := startLoad(t, c.Addr, 4, shortWork)
	load.waitAnswered(t, "worker-1", 5)
	load.waitAnswered(t, crew.at(31), 5)
	wantNoFailures(t, load.stop())
	c.Stop()
}

// waitGone waits until an endpoint is no more.
func (c *Cabrank) waitGone(endpoint string) {
	c.t.Helper()
	testkit.Eventually(c.t, patience, "the end of "+endpoint, func() bool {
		for _, s := range c.samples()["cabrank_slots"] {
			if s.labels["worker"] == endpoint {
				return false
			}
		}
		return c.metric("cabrank_upstream_state", "worker", endpoint) == 0
	})
}

// waitLookups waits until so many more lookups of a name ended so.
func (c *Cabrank) waitLookups(name, result string, more float64) {
	c.t.Helper()
	before := c.metric("cabrank_dns_lookups_total", "name", name, "result", result)
	testkit.Eventually(c.t, patience, "lookups that are "+result, func() bool {
		return c.metric("cabrank_dns_lookups_total", "name", name, "result", result) >= before+more
	})
}

func wantNoFailures(t *testing.T, all []outcome) {
	t.Helper()
	if failed := failures(all); len(failed) > 0 {
		t.Errorf("%d of %d calls failed, the first with %v", len(failed), len(all), failed[0].err)
	}
}
