//go:build soak

package languages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

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
	if on := line.Text("listen_on"); !strings.HasSuffix(on, fmt.Sprint(":", first+1)) || !strings.Contains(line.Text("workers"), "worker-") {
		t.Errorf("the line is %v", line)
	}
	if late := c.LogLines("worker not ready yet"); len(late) > 0 {
		t.Errorf("it comes after %v", late)
	}
	c.Stop()
}
