package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// serve starts a server with the functions of tests.
func serve(t *testing.T) (url string) {
	t.Helper()
	memory := broker.NewMemory(broker.MemoryOptions{})
	for uri, f := range broker.TestFunctions() {
		memory.Serve(uri, 64, f)
	}
	server := socket.New(socket.Options{Broker: memory})
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		web.Close()
		memory.Close()
	})
	return "ws" + strings.TrimPrefix(web.URL, "http")
}

func counts(c traffic.Counter) string {
	var all []string
	for _, n := range c.Counts() {
		if n.N != 0 {
			all = append(all, fmt.Sprintf("%s %d", n.Name, n.N))
		}
	}
	return strings.Join(all, ", ")
}

// Each way to fail has a code, and texts that are few.
func TestFailed(t *testing.T) {
	cause := errors.New("gone")
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&client.RefusedError{Name: "f", Code: 500, Message: "no"}, "14 NACK 500 no"},
		{&client.RefusedError{Name: "f", Code: 429, Message: "no"}, "8 NACK 429 no"},
		{&client.RefusedError{Name: "f", Code: 404, Message: "no"}, "12 NACK 404 no"},
		{&client.FunctionError{URI: "f", Message: "no"}, "2 RES with an error: no"},
		{&client.DisconnectedError{Name: "f", Cause: cause}, "14 lost: the connection ended: gone"},
		{&client.ExpiredError{Name: "f", After: time.Second, Taken: true}, "4 EXP: no result in time"},
		{&client.ExpiredError{Name: "f", After: time.Second}, "4 EXP: not acknowledged in time"},
		{&client.ExpiredError{Name: "f", Cause: cause}, "4 EXP: there was no connection: gone"},
		{context.Canceled, "1 given up at the end of the load"},
		{cause, "2 gone"},
	} {
		a := (&socketCalls{}).failure(tc.err)
		testkit.Equal(t, fmt.Sprint(a.Code, " ", a.Message), tc.want, "%v", tc.err)
	}
}

// Calls are counted by how they end, and have arguments of their own.
func TestCalls(t *testing.T) {
	c, err := newSocketCalls(t.Context(), SocketLoad{URL: serve(t), URI: "test.delay", Args: `"{{.RequestNumber}}"`, Connections: 2})
	testkit.Must(t, err)
	defer c.Close()
	due := time.Now()
	if a := c.Call(t.Context(), traffic.Call{Number: 12, Due: due}); a.Code != 0 || time.Since(due) < 12*time.Millisecond || a.Received.Bytes == 0 || a.Sent.Bytes != 4 {
		t.Errorf("got %+v", a)
	}
	if a := c.Call(t.Context(), traffic.Call{Number: 60_000, Due: due, Deadline: time.Now().Add(time.Second)}); a.Code != 4 {
		t.Errorf("got %+v", a)
	}
	got := counts(c)
	testkit.Want(t, got == "CALL 2, ACK 2, RES 1, EXP 1" && c.Opened() == 2, "%s, %d opened", got, c.Opened())
	_, err = newSocketCalls(t.Context(), SocketLoad{URL: "ws://127.0.0.1:1/", URI: "f", Args: "1", Connections: 50})
	testkit.Refused(t, err, "refused")
}
