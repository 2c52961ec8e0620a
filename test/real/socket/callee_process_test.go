//go:build real || soak

package socket_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/real/harness"
)

// startCalleeProcess starts cabrank socket callee, and waits until it takes calls.
func startCalleeProcess(t testing.TB, server *redisd.Server, flags ...string) *harness.Process {
	t.Helper()
	args := append([]string{"socket", "callee", "--redis", "unix://" + server.Socket, "--log-format", "text"}, flags...)
	p := harness.StartProcess(t, nil, harness.CabrankBinary(t), args...)
	p.WaitLog(harness.Patience, "taking calls")
	return p
}

// taken waits until a call is in nobody's list any more: it runs.
func taken(t *testing.T, server *redisd.Server, uri string) {
	t.Helper()
	conn := dialRedis(t, server)
	testkit.Eventually(t, harness.Patience, "the call to be taken", func() bool {
		n, err := conn.Do("EXISTS", "juggler:calls:{"+uri+"}")
		return err == nil && n == int64(0) && !strings.Contains(dump(t, conn), "calls:timeout")
	})
}

// A signal has it finish what it took, a second one after a while has it end.
func TestCalleeProcessStops(t *testing.T) {
	for name, tc := range map[string]struct {
		delay, drain string
		code         int
		said         string
	}{
		"in time":  {`"600"`, "20s", 0, "answered=1"},
		"too late": {`"60000"`, "200ms", 3, "calls that were cut: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redisd.Start(t)
			p := startCalleeProcess(t, server, "--delays", "3", "--drain-timeout", tc.drain)
			push(t, server, "test.delay.2", tc.delay, time.Minute)
			taken(t, server, "test.delay.2")
			p.Signal(syscall.SIGTERM)
			if code := p.ExitCode(harness.Patience); code != tc.code || !strings.Contains(p.Log(), tc.said) {
				t.Errorf("exit code %d, want %d:\n%s", code, tc.code, p.Log())
			}
			text := dump(t, dialRedis(t, server))
			testkit.Want(t, strings.Contains(text, `"args":600}`) == (tc.code == 0) && !strings.Contains(text, "juggler.1:"),
				"Redis has\n%s", text)
		})
	}
}

// A callee that is killed loses what it has: the call expires, is not run again, and leaves
// nothing in Redis; others go on.
func TestCalleeProcessKilled(t *testing.T) {
	server := redisd.Start(t)
	p := startCalleeProcess(t, server)
	push(t, server, "test.delay", `"60000"`, 500*time.Millisecond)
	taken(t, server, "test.delay")
	p.Kill()
	startCalleeProcess(t, server)
	push(t, server, "test.echo", `"on"`, time.Minute)
	text := await(t, server, `"args":"on"`)
	testkit.Want(t, !strings.Contains(text, "test.delay") && strings.Count(text, "msg_uuid") == 1, "Redis has\n%s", text)
}

// What is wrong with the command line is said in one line.
func TestCalleeProcessUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                                    "--redis or CABRANK_REDIS",
		"--redis localhost:1 --workers 0":     "--workers must be above 0",
		"--redis localhost:1 --delays -1":     "--delays must be 0 to 10000",
		"--redis localhost:1 --log-level all": `flag --log-level: log.level: "all" is unknown`,
	} {
		ends(t, nil, 2, want, append([]string{"callee"}, strings.Fields(args)...)...)
	}
	ends(t, nil, 1, "127.0.0.1:1", "callee", "--redis", "redis://me:secret@127.0.0.1:1", "--log-format", "text")
}
