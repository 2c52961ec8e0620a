package socket

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A page may connect to its own host, whatever names the port that it has anyway.
func TestOriginOfTheHost(t *testing.T) {
	for _, tc := range []struct {
		origin, host string
		want         bool
	}{
		{"https://shop.example", "shop.example", true},
		{"https://shop.example", "shop.example:443", true},
		{"https://Shop.example:443", "shop.example", true},
		{"http://shop.example", "shop.example:80", true},
		{"https://shop.example", "shop.example:80", true}, // behind a proxy that ends TLS
		{"http://shop.example:8080", "shop.example:8080", true},
		{"http://shop.example:8080", "shop.example", false},
		{"https://shop.example", "shop.example:8443", false},
		{"https://shop.example", "127.0.0.1:9000", false},
		{"https://shop.example.evil", "shop.example", false},
		{"http://[::1]:443", "[::1]", true},
		{"null", "shop.example", false},
		{"https://%zz", "shop.example", false},
	} {
		if got := isOfHost(tc.origin, tc.host); got != tc.want {
			t.Errorf("a page of %s at %s: %t", tc.origin, tc.host, got)
		}
	}
}

// What is refused for its origin is a line with both names, short, and not one for each.
func TestRefusedOriginsAreTold(t *testing.T) {
	var log testkit.Buffer
	url, server := serve(t, Options{Broker: broker.NewMemory(noBounds), Log: slog.New(slog.NewJSONHandler(&log, nil))})
	host := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/ws")
	for range 5 {
		if code := status(t, url, http.Header{"Origin": {"https://shop.example" + strings.Repeat("x", 5000)}}); code != http.StatusForbidden {
			t.Errorf("status %d", code)
		}
	}
	text := log.String()
	if n := strings.Count(text, "\n"); n != 1 || len(text) > 800 || !strings.Contains(text, `"origin":"https://shop.example`) || !strings.Contains(text, `"host":"`+host) {
		t.Errorf("%d lines: %s", n, text)
	}
	server.originTold.Store(1)
	status(t, url, http.Header{"Origin": {"https://other.example"}})
	if text := log.String(); !strings.Contains(text, `"origin":"https://other.example","host":"`+host+`","refused_since":5`) {
		t.Error(text)
	}
}
