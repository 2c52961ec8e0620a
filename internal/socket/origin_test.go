package socket

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What is refused for its origin is a line with both names, short, and not one for each.
func TestRefusedOriginsAreTold(t *testing.T) {
	var log testkit.Buffer
	url, server := serve(t, Options{Broker: broker.NewMemory(noBounds), Log: slog.New(slog.NewJSONHandler(&log, nil))})
	host := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/ws")
	for range 5 {
		code, _ := knock(t, url, http.Header{"Origin": {"https://shop.example" + strings.Repeat("x", 5000)}})
		testkit.Want(t, code == http.StatusForbidden, "status %d", code)
	}
	text := log.String()
	if n := strings.Count(text, "\n"); n != 1 || len(text) > 800 || !strings.Contains(text, `"origin":"https://shop.example`) || !strings.Contains(text, `"host":"`+host) {
		t.Errorf("%d lines: %s", n, text)
	}
	server.originTold.Store(1)
	knock(t, url, http.Header{"Origin": {"https://other.example"}})
	testkit.Says(t, log.String(), `"origin":"https://other.example","host":"`+host+`","refused_since":5`)
}
