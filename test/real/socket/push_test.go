//go:build real || soak

package socket_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/real/harness"
)

// pushHTTP asks for something over HTTP, and returns the status of the answer.
func pushHTTP(t testing.TB, address, what, body string) int {
	t.Helper()
	response, err := http.Post("http://"+address+"/v1/"+what, "application/json", strings.NewReader(body))
	testkit.Must(t, err)
	defer response.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// A page in a browser gets what a Ruby and a Python program publish, by HTTP and by gRPC,
// without a Redis, in the order in which they do.
func TestPushToBrowser(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	const token = "a token of 16 bytes"
	testkit.Must(t, os.WriteFile(secret, []byte(token+"\n"), 0o600))
	var c *harness.Cabrank
	site := harness.NewSite(t, page, func() string { return c.Addr })
	c = harness.StartCabrankEnv(t,
		[]string{"CABRANK_SOCKET_ORIGIN=" + site.Origin, "CABRANK_SOCKET_PUSH=127.0.0.1:0", "CABRANK_SOCKET_PUSH_TOKEN=" + secret},
		withSockets(t)...)
	address := c.Listening("push listening")
	site.Show(t.TempDir())
	site.WantSaid("subscribed")
	testkit.Equal(t, pushHTTP(t, address, "publish", `{"channel":"news"}`), http.StatusUnauthorized, "without the token: status")
	root := harness.Root(t)
	here := filepath.Join(root, "test", "real", "socket", "testdata")
	for language, command := range map[string][]string{
		"ruby":   {"ruby", "-I", root + "/examples/ruby/lib", here + "/push.rb"},
		"python": {"env", "PYTHONPATH=" + root + "/examples/python", "PYTHONDONTWRITEBYTECODE=1", "python3", here + "/push.py"},
	} {
		p := harness.StartLangProcess(t, []string{"CABRANK_PUSH_TOKEN=" + token}, append(command, address, "news"))
		code := p.ExitCode(harness.Patience)
		testkit.Need(t, code == 0, "%s: exit code %d\n%s", language, code, p.Log())
		for _, by := range []string{"http", "grpc"} {
			site.WantSaid(fmt.Sprintf(`{"from":%q,"by":%q}`, language, by))
		}
	}
	testkit.Want(t, !strings.Contains(c.Log(), token), "the token is in the log")
}

// Two servers at one Redis obey what is said to one of them. A client's pattern shows
// nothing of it.
func TestPushOverRedis(t *testing.T) {
	redis := redisd.Start(t)
	var pushed, addresses [2]string
	for i := range addresses {
		c, url := startServe(t, "--redis", "unix://"+redis.Socket, "--push", "127.0.0.1:0")
		addresses[i] = strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/ws")
		pushed[i] = c.Listening("push listening")
	}
	here, there := dial(t, addresses[0]), dial(t, addresses[1])
	for _, p := range []*peer{here, there} {
		p.send(3, `{"channel":"*","pattern":true}`).want(8, "")
	}
	for i := range 20 { // by one server, then by the other: each is answered when Redis has it
		if status := pushHTTP(t, pushed[i%2], "publish", fmt.Sprintf(`{"channel":"c","args":%d}`, 100+i)); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	if status := pushHTTP(t, pushed[1], "broadcast", `{"everyone":true,"channel":"notice","args":200}`); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	for _, p := range []*peer{here, there} {
		for i := range 20 {
			p.want(10, fmt.Sprintf(`"args":%d`, 100+i))
		}
		p.want(10, `"args":200`)
	}
	redis.Kill()
	testkit.Equal(t, pushHTTP(t, pushed[0], "publish", `{"channel":"c"}`), http.StatusServiceUnavailable, "without Redis: status")
}

// An upgrade hands the listener over: who publishes reaches the sockets of the new
// process, and nobody is refused.
func TestUpgradeWithPush(t *testing.T) {
	m := harness.StartManaged(t, []string{"CABRANK_SOCKET_PUSH=127.0.0.1:0"}, nil, withSockets(t)...)
	m.WaitReady(harness.Patience)
	address := m.Listening("push listening")
	hears := func() *peer {
		p := dial(t, m.Addr)
		p.send(3, `{"channel":"c"}`).want(8, "")
		testkit.Equal(t, pushHTTP(t, address, "publish", `{"channel":"c","args":1}`), http.StatusOK, "status")
		p.want(10, `"args":1`)
		return p
	}
	before := hears()
	m.UpgradeBy(func() {
		m.SignalTo(m.Main, syscall.SIGUSR2)
		before.wantLeave()
	})
	hears()
	m.End()
}

// Beyond loopback there is no push without a token, and no start.
func TestPushIsGuarded(t *testing.T) {
	for _, tc := range []struct {
		flags string
		code  int
		want  string
	}{
		{"--push :0", 2, "socket.push: :0 can be reached from elsewhere"},
		{"--push 0.0.0.0:0", 2, "0.0.0.0:0 can be reached from elsewhere"},
		{"--push 9001", 2, `"9001" is not HOST:PORT`},
		{"--push-token env:NONE --push 127.0.0.1:0", 1, "socket.push_token: the variable is not set"},
	} {
		ends(t, nil, tc.code, tc.want, append([]string{"serve", "--listen", "127.0.0.1:0", "--log-format", "text"}, strings.Fields(tc.flags)...)...)
	}
}
