//go:build soak

package languages_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// 200 rolls of workers that start fast, under load: memory, descriptors and
// goroutines are what they were after the first 20, and no call fails.
func TestSoakRolls(t *testing.T) {
	const rolls, warm, workers = 200, 20, 2
	socket := filepath.Join(harness.ShortTempDir(t), "control.sock")
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "2", "--slots", "4", "--control", socket)
	o := harness.NewOperator(t, socket)
	c.WaitWorkers(workers)
	roll := func(times int) harness.Footprint {
		load := harness.StartLoad(t, c.Addr, 4, harness.ShortWork)
		for range times {
			testkit.Must(t, o.Run(harness.ChangeLimit, "restart"))
		}
		all := load.Stop()
		if failed := harness.Failures(all); len(failed) > 0 {
			t.Errorf("%d of %d calls failed, the first with %v", len(failed), len(all), failed[0].Err)
		}
		return harness.FootprintOf(c, c.PID)
	}
	before := roll(warm)
	after := roll(rolls - warm)
	t.Logf("after %d rolls %+v, after %d %+v", warm, before, rolls, after)
	testkit.Must(t, before.GrownBy(after))
	if after.Kibibytes > before.Kibibytes+8<<10 {
		t.Errorf("memory grew from %d to %d KiB", before.Kibibytes, after.Kibibytes)
	}
}

// rubyServer is a server with health and nothing else, as gruf makes it, at the address
// that is its argument.
const rubyServer = `require 'grpc'
require 'grpc/health/checker'
health = Grpc::Health::Checker.new
health.add_status('', Grpc::Health::V1::HealthCheckResponse::ServingStatus::SERVING)
server = GRPC::RpcServer.new
server.add_http2_port(ARGV[0], :this_port_is_insecure)
server.handle(health)
server.run_till_terminated_or_interrupted(%w[INT TERM])`

// Workers of gRPC's C core that do not listen where they are told share a port, as gruf's
// 9001 without --host, and the log says so when they do, not when their boot takes long.
func TestRubyWorkersOnOnePort(t *testing.T) {
	first := testkit.FreePorts(t, 8)
	c := harness.StartCabrankEnv(t, harness.LangEnv(t), "--workers", "3", "--start-port", fmt.Sprint(first), "--", "ruby", "-e", rubyServer, fmt.Sprint("0.0.0.0:", first+1))
	told := func() []harness.LogLine {
		return c.LogLines("workers share a port and will not get ready: have each listen on its own address, by {addr} in its arguments (gruf --host {addr}) or by CABRANK_ADDR or PORT in its environment")
	}
	c.Wait(harness.LangBound, "the shared port to be told", func() bool { return len(told()) > 0 })
	line := told()[0]
	testkit.Want(t, strings.HasSuffix(line.Text("listen_on"), fmt.Sprint(":", first+1)) && strings.Contains(line.Text("workers"), "worker-"),
		"the line is %v", line)
	late := c.LogLines("worker not ready yet")
	testkit.Want(t, len(late) == 0, "it comes after %v", late)
}

// A worker in Ruby whose words wait in it is told of; one that writes at once is not,
// and its words come.
func TestRubyWorkerHoldsItsWordsBack(t *testing.T) {
	held, at := "worker has written nothing: its runtime holds back what is printed to a pipe, and loses it when it is killed, unless told to write at once", "$stdout.sync = true"
	for sync, start := range map[string]string{"as it is": "", "at once": at + "; "} {
		t.Run(sync, func(t *testing.T) {
			c := harness.StartCabrankEnv(t, harness.LangEnv(t), "--workers", "1", "--", "ruby", "-e",
				strings.Replace(rubyServer, "server.run", start+"puts 'here'; server.run", 1), "{addr}")
			if start != "" {
				c.Wait(harness.LangBound, "the worker's word", func() bool { return c.Output() != "" })
				c.WaitWorkers(1)
			} else {
				c.Wait(harness.LangBound, "the hint", func() bool { return len(c.LogLines(held)) > 0 })
				line := c.LogLines(held)[0]
				testkit.Want(t, line.Text("by") == at && c.Output() == "", "the line is %v, the output %q", line, c.Output())
			}
		})
	}
}
