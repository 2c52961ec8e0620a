//go:build (real || soak) && linux

package fibonacci_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/nameserver"
	"github.com/cabrank/cabrank/test/real/harness"
)

// callsByServer reads how many calls each server has answered.
func callsByServer(t *testing.T, f *front, path string) map[string]int {
	t.Helper()
	code, body, header := get(t, f.url+path)
	testkit.Need(t, code == http.StatusOK, "%s: %d %s", path, code, body)
	calls := map[string]int{}
	for part := range strings.SplitSeq(header.Get("X-Calls-By-Server"), ", ") {
		name, number, _ := strings.Cut(part, "=")
		calls[name], _ = strconv.Atoi(number)
	}
	return calls
}

// A headless service: every address of the name gets its part of the calls. The same
// name without round robin gives them all to one.
func TestHeadless(t *testing.T) {
	zone := nameserver.StartZone(t)
	zone.Say("servers.test. 0 IN A 127.0.0.61", "servers.test. 0 IN A 127.0.0.62")
	port := testkit.FreePorts(t, 2, "127.0.0.61", "127.0.0.62")
	for i := range 2 {
		startServerAt(t, fmt.Sprintf("127.0.0.%d", 61+i), port, "server.py", fmt.Sprintf("POD_NAME=srv-%d", i+1))
	}
	target := fmt.Sprintf("dns://%s/servers.test:%d", zone.Addr, port)
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			front := startFront(t, f.front, target, "GRPC_SERVER_SVC_TYPE=headless", "WORKERS=1")
			testkit.Eventually(t, harness.Patience, "both servers", func() bool {
				return len(callsByServer(t, front, "/fibonacci/random?iterations=10&output=false")) == 2
			})
			calls := callsByServer(t, front, "/fibonacci/random?iterations=100&output=false")
			testkit.Want(t, calls["srv-1"] == 50 && calls["srv-2"] == 50, "headless: %v, want 50 each", calls)
			single := startFront(t, f.front, target)
			if calls := callsByServer(t, single, "/fibonacci/random?iterations=100&output=false"); len(calls) != 1 {
				t.Errorf("one connection: %v", calls)
			}
		})
	}
}

// CONNECTIONS is how many the front has, 0 a new one for each request: so many
// different servers can a balancer of connections give it.
func TestConnections(t *testing.T) {
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			s := startServer(t, f.server)
			for setting, want := range map[int]int{1: 1, 3: 3, 0: 6} {
				wire := harness.Tap(t, s.addr)
				front := startFront(t, f.front, wire.Addr, fmt.Sprintf("CONNECTIONS=%d", setting))
				for range 6 {
					get(t, front.url+"/fibonacci/random?iterations=4")
				}
				testkit.Equal(t, wire.Opened(), want, "CONNECTIONS=%d: connections of 6 requests", setting)
				front.Kill()
			}
		})
	}
}

// start matches the command line of the README.
var start = regexp.MustCompile("(?m)^    cabrank run (.*) -- .*$")

// Behind cabrank, started as the README says, every worker gets its part.
func TestBehindCabrank(t *testing.T) {
	m := start.FindStringSubmatch(readme(t))
	testkit.Need(t, m != nil, "README.md: no line '    cabrank run … -- …'")
	for _, f := range flavours() {
		t.Run(f.name, func(t *testing.T) {
			args := append(strings.Fields(m[1]), "--min-ready", "3", "--", python(t), "examples/fibonacci/"+f.server)
			c := harness.StartCabrankEnv(t, []string{"PYTHONDONTWRITEBYTECODE=1"}, args...)
			c.WaitReady(harness.LangBound)
			front := startFront(t, f.front, c.Addr, "GRPC_SERVER_SVC_TYPE=relay", "WORKERS=6")
			calls := callsByServer(t, front, "/fibonacci/random?iterations=300&output=false&fibo_start=2000&fibo_end=2000")
			for _, worker := range []string{"worker-1", "worker-2", "worker-3"} {
				if calls[worker] < 10 { // a third, but for a worker that the machine holds up
					t.Errorf("%s has answered %d of 300 calls: %v", worker, calls[worker], calls)
				}
			}
		})
	}
}
