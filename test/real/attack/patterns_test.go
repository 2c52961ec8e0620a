//go:build soak

package attack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// One socket whose thousand patterns all match delays nobody else's events beyond the bar.
func TestManyPatternsThatMatch(t *testing.T) {
	const patterns = 1000
	channel := strings.Repeat("n", 50)
	c := harness.StartCabrank(t, "--socket-path", "/ws", "--workers", "1", "--", harness.CabrankBinary(t), "demo", "worker")
	c.WaitReady(floodBound)
	calm := eventTimes(t, c.Addr, channel)
	greedy := dialSocket(t, c.Addr)
	for i := range patterns {
		begin := []byte(channel[:10+i/40])
		begin[i%10] = '?'
		glob := string(begin) + strings.Repeat("?", i/10%4) + "*"
		ask(t, greedy, fmt.Sprintf(`{"type":"sub","id":%d,"pattern":%q}`, i, glob))
	}
	read := make(chan int64)
	go func() { // ends with the connection
		n, _ := io.Copy(io.Discard, greedy.NetConn())
		read <- n
	}()
	loud := eventTimes(t, c.Addr, channel)
	greedy.Close()
	if n := <-read; n < int64(len(loud)*patterns*len(channel)) {
		t.Errorf("its socket was sent %d bytes: not all of its patterns have matched", n)
	}
	at := func(times []time.Duration, percent int) time.Duration { return times[len(times)*percent/100] }
	t.Logf("p50 %v, calm %v; p99 %v, calm %v", at(loud, 50), at(calm, 50), at(loud, 99), at(calm, 99))
	testkit.Want(t, at(loud, 99) <= mostFlooded*at(calm, 99), "p99 of events %v, %v in calm", at(loud, 99), at(calm, 99))
}

// eventTimes publishes to a channel, 50 times a second, and returns how long each event was
// under way to another socket, sorted.
func eventTimes(t *testing.T, addr, channel string) (times []time.Duration) {
	t.Helper()
	const events = 300
	to, from := dialSocket(t, addr), dialSocket(t, addr)
	defer to.Close()
	defer from.Close()
	ask(t, to, fmt.Sprintf(`{"type":"sub","id":1,"channel":%q}`, channel))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := range events {
		<-tick.C
		began := time.Now()
		testkit.Must(t, from.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"type":"pub","id":%d,"channel":%q}`, i, channel)))
		_, _, err := to.ReadMessage()
		testkit.Must(t, err)
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times
}

func dialSocket(t *testing.T, addr string) *websocket.Conn {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"juggler.1"}}
	ws, response, err := dialer.Dial("ws://"+addr+"/ws", nil)
	testkit.Must(t, err)
	response.Body.Close()
	if _, _, err := ws.ReadMessage(); err != nil { // welcome
		t.Fatal(err)
	}
	return ws
}

// ask sends a request and has it acknowledged.
func ask(t *testing.T, ws *websocket.Conn, request string) {
	t.Helper()
	testkit.Must(t, ws.WriteMessage(websocket.TextMessage, []byte(request)))
	var answer struct {
		Type string `json:"type"`
	}
	_, text, err := ws.ReadMessage()
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	testkit.Need(t, err == nil && answer.Type == "ack", "%s: %s, %v", request, text, err)
}
