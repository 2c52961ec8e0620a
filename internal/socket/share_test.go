package socket

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Calls that wait count, whoever serves them; who has most is refused, and others are not.
func TestWaitingCallsCount(t *testing.T) {
	url, server, _ := start(t, Options{BufferTotal: 8 << 20}, noBounds)
	bad, good := dial(t, url), dial(t, url)
	for range 20 {
		bad.send(frameText(Call, "1", map[string]any{"uri": "nobody", "timeout": time.Hour, "args": strings.Repeat("x", 500_000)}))
	}
	testkit.Eventually(t, within, "answers", func() bool { return server.Stats().Sent["nack"]+server.Stats().Sent["ack"] == 20 })
	stats := server.Stats()
	if stats.BufferedBytes < 1<<20 || stats.BufferedBytes > 4<<20 || stats.Calls > 4 {
		t.Errorf("%d calls wait, with %d bytes of 8 MiB", stats.Calls, stats.BufferedBytes)
	}
	good.send(frameText(Call, "2", map[string]any{"uri": "test.echo", "timeout": time.Minute, "args": strings.Repeat("x", 50_000)}))
	good.want("ack 2", "res 2")
}

// A plain request for the path of sockets costs no turn of a handshake.
func TestPlainRequestsAreNoHandshakes(t *testing.T) {
	url, _, _ := start(t, Options{HandshakesPerSecond: 3}, noBounds)
	for range 20 {
		response, err := http.Get("http" + strings.TrimPrefix(url, "ws"))
		testkit.Must(t, err)
		response.Body.Close()
		testkit.Need(t, response.StatusCode == http.StatusBadRequest, "a plain request: %d", response.StatusCode)
	}
	dial(t, url)
}

// One source has seven eighths of the sockets at most.
func TestSocketsOfOneSource(t *testing.T) {
	all := sources{all: map[string]*source{}}
	one, other := all.of("a", time.Now()), all.of("b", time.Now())
	open := 0
	for all.admits(one, open+1, 80) {
		open++
	}
	testkit.Want(t, open == 70, "one source has %d of 80", open)
	for range 5 {
		if open++; !all.admits(other, open, 80) {
			t.Fatalf("the other one is refused at %d", open)
		}
	}
}

// Events that wait make room for whoever needs it, but not for a source that has most of
// what is used itself.
func TestRoomIsMadeForWhoHasLittle(t *testing.T) {
	server := &Server{open: map[*session]struct{}{}}
	server.budget.total.Store(1 << 20)
	dropped, events := 0, &account{budget: &server.budget}
	out, _ := stuckOutbox(t, 1<<20, events, &dropped)
	server.open[&session{server: server, out: out}] = struct{}{}
	for range 20 {
		out.event(newFrame(make([]byte, 10_000), events))
	}
	defer out.abort()
	greedy, modest := &account{budget: &server.budget, source: new(atomic.Int64)}, &account{budget: &server.budget, source: new(atomic.Int64)}
	greedy.force(250_000)
	if server.shedFor(greedy); dropped != 0 {
		t.Errorf("a source that has most itself has %d events of others dropped", dropped)
	}
	if server.shedFor(modest); dropped == 0 || !server.hasRoom() {
		t.Errorf("%d events were dropped for a source that has nothing", dropped)
	}
}
