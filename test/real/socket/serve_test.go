//go:build real || soak

package socket_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/exchange"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

// startServe starts cabrank socket serve with a metrics page.
func startServe(t testing.TB, flags ...string) (c harness.Cabrank, url string) {
	t.Helper()
	args := append([]string{"socket", "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"}, flags...)
	c = harness.Cabrank{Process: harness.StartProcess(t, nil, harness.CabrankBinary(t), args...)}
	url = "ws://" + c.Listening("listening") + "/ws"
	c.MetricsAddr = c.Listening("metrics listening")
	return c, url
}

// The binary passes every exchange, with the flags of each option.
func TestServeExchanges(t *testing.T) {
	flags := map[string]string{
		"call_cap": "--call-cap", "read_limit": "--read-limit", "write_limit": "--write-limit",
		"close_uri": "--close-uri", "allow_empty_subprotocol": "--allow-empty-subprotocol",
	}
	target := exchange.Target{Kind: "new", Start: func(t *testing.T, options exchange.Options) (string, func()) {
		t.Helper()
		args := []string{"--test-functions"}
		for name, flag := range flags {
			if value := options[name]; value != "" {
				args = append(args, flag+"="+value)
			}
		}
		for _, origin := range options.Words("origins") {
			if origin == "" {
				origin = "none"
			}
			args = append(args, "--origin", origin)
		}
		_, url := startServe(t, args...)
		return url, nil
	}}
	for _, c := range slices.Concat(exchange.Cases(t), exchange.NewCases(t)) {
		exchange.Run(t, c, target)
	}
}

// A stop refuses who is new, lets calls end, tells sockets to leave and counts what it
// had to cut.
func TestServeStops(t *testing.T) {
	for name, tc := range map[string]struct {
		delay, timeout string
		results        int64
		code           int
	}{
		"in time":  {"700", "20s", 1, 0},
		"too late": {"60000", "300ms", 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			c, url := startServe(t, "--test-functions", "--drain-timeout", tc.timeout)
			ws := open(t, url, oldjuggler.Protocol)
			request(t, ws, call("test.delay", tc.delay))
			c.Signal(syscall.SIGTERM)
			var results atomic.Int64
			err := (&peer{t, ws}).untilEnd(map[string]*atomic.Int64{"": &results})
			testkit.Want(t, websocket.IsCloseError(err, websocket.CloseGoingAway) && results.Load() == tc.results,
				"%d results, then %v", results.Load(), err)
			if code := c.ExitCode(harness.Patience); code != tc.code {
				t.Errorf("exit code %d, want %d:\n%s", code, tc.code, c.Log())
			}
		})
	}
}

// Mistakes end with one line and 2, before anything is opened.
func TestServeMistakes(t *testing.T) {
	for flags, want := range map[string]string{
		"--config nowhere.yml": `cannot read "nowhere.yml"`,
		"--path ws":            `flag --path: socket.path: "ws" does not begin with /`,
		"--ping 0s":            `flag --ping: ping: "0s" is out of range; allowed: 1ms to 720h`,
		"--log-level loud":     `flag --log-level: log.level: "loud" is unknown; allowed: debug, info, warn, error`,
		"--listen localhost":   `flag --listen: listen: "localhost" is not HOST:PORT`,
		"--metrics :99999":     `flag --metrics: metrics: ":99999" has no port from 0 to 65535`,
		"--max-sockets -1":     `flag --max-sockets: max-sockets: "-1" is out of range; allowed: 1 to 10000000`,
		"--lisen localhost":    "unknown flag: --lisen",
	} {
		ends(t, nil, 2, want, append([]string{"serve"}, strings.Fields(flags)...)...)
	}
}

// Other paths are no sockets, and a request that is none is told so.
func TestServePaths(t *testing.T) {
	_, url := startServe(t, "--path", "/a", "--path", "/b/c")
	base := "http" + strings.TrimSuffix(strings.TrimPrefix(url, "ws"), "/ws")
	for path, want := range map[string]int{"/a": 400, "/b/c": 400, "/ws": 404, "/": 404, "/metrics": 404} {
		response, err := http.Get(base + path)
		testkit.Must(t, err)
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		testkit.Want(t, response.StatusCode == want, "%s: %s", path, response.Status)
	}
	http.DefaultClient.CloseIdleConnections()
}

// A request that does not come to its end, in its head or in its body, ends in 10 s.
func TestServeHalfRequests(t *testing.T) {
	_, url := startServe(t)
	endsHalves(t, strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/ws"),
		"", "GET /ws HTTP/1.1\r\n", "GET /ws HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
}

// endsHalves begins requests, which the server has to end.
func endsHalves(t testing.TB, address string, requests ...string) {
	t.Helper()
	var halves []net.Conn
	for _, half := range requests {
		conn, err := net.Dial("tcp", address)
		testkit.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = io.WriteString(conn, half)
		testkit.Must(t, err)
		halves = append(halves, conn)
	}
	deadline := time.Now().Add(harness.Patience)
	for i, conn := range halves {
		conn.SetReadDeadline(deadline)
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q has not ended", requests[i])
		}
	}
}

// slowReaders has so many sockets read nothing of so many events of 2 KB, in one channel
// for all or in several, and holds the memory of the server to its budget, or to most.
func slowReaders(t *testing.T, readers, events, channels, budget, most int) {
	t.Helper()
	c, url := startServe(t, "--buffer-total", fmt.Sprint(budget), "--max-handshakes", "100000", "--write-timeout", "10m")
	join(t, openMany(t, url, oldjuggler.Protocol, readers), channels)
	before := harness.RSSKiB(t, c.PID)
	publisher := dialOld(t, url)
	text, highest := strings.Repeat("x", 2000), 0
	for i := range events {
		_, err := publisher.Pub(fmt.Sprint("c", i%channels), text)
		testkit.Must(t, err)
		if i%100 == 0 {
			highest = max(highest, harness.RSSKiB(t, c.PID))
		}
	}
	testkit.Eventually(t, 5*time.Minute, "all to be published", func() bool {
		highest = max(highest, harness.RSSKiB(t, c.PID))
		return c.Metric("cabrank_socket_messages_total", "kind", "pub") == float64(events)
	})
	grown, dropped := (highest-before)<<10, c.Metric("cabrank_socket_events_dropped_total")
	t.Logf("%d readers, %d events: grown by %.1f MiB of %d, %.0f events dropped", readers, events, float64(grown)/(1<<20), budget>>20, dropped)
	testkit.Want(t, grown <= most && dropped != 0, "grown by %d bytes, want at most %d; %.0f events dropped", grown, most, dropped)
	c.WaitMetric("cabrank_sockets", float64(readers+1))
}

func TestSlowReaders(t *testing.T) { slowReaders(t, 100, 3000, 1, 32<<20, 32<<20) }

// The binary over Redis, one and a Cluster, with an old callee and an old client.
func TestServeOverRedis(t *testing.T) {
	one, many := redisd.Start(t), redisd.StartCluster(t, 3, 0)
	for address, dial := range map[string]dialer{"unix://" + one.Socket: one, many.URL(): many} {
		t.Cleanup(runOldCallee(t, dial, 4, map[string]oldjuggler.Function{"test.reverse": oldjuggler.TestFunctions()["test.reverse"]}))
		_, url := startServe(t, "--redis", address)
		client := dialOld(t, url)
		_, err := client.Call("test.reverse", "abc", 10*time.Second)
		testkit.Must(t, err)
		in := client.next(oldjuggler.Res)
		testkit.Want(t, string(in.Args) == `"cba"`, "got %s", in.Args)
	}
}

// Without a Redis at its address it does not start, says where, and no password.
func TestServeWithoutRedis(t *testing.T) {
	nobody := testkit.FreeAddress(t)
	for address, want := range map[string]string{
		nobody:                               nobody,
		"redis://me:secret@" + nobody + "/1": nobody,
		"mysql://me:secret@localhost":        "redis: want an address",
		"me:secret@localhost:6379":           "redis: want an address",
		"redis:/me:secret@localhost:6379":    "redis: want an address",
	} {
		ends(t, []string{"CABRANK_REDIS=" + address}, 1, want, "serve", "--listen", "127.0.0.1:0", "--log-format", "text")
	}
}
