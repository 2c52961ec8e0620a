package main

import (
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Every metric of sockets, and every reason, is explained.
func TestSocketMetricsAreDocumented(t *testing.T) {
	memory := broker.NewMemory(broker.MemoryOptions{})
	server := socket.New(socket.Options{Broker: memory})
	t.Cleanup(server.Close)
	on := testkit.Listen(t)
	page, err := admin.ServeMetrics(on, "/metrics", admin.Sources{
		Sockets: func() admin.SocketSample {
			return admin.SocketSample{Stats: server.Stats(), Broker: &admin.BrokerSample{}}
		},
	}, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		page.Shutdown(t.Context())
	})
	response, err := http.Get("http://" + page.Addr().String() + "/metrics")
	testkit.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	document := testkit.ReadFile(t, "../../docs/metrics.md")
	names := regexp.MustCompile(`(?m)^# TYPE (cabrank_socket\w+) `).FindAllStringSubmatch(string(text), -1)
	testkit.Want(t, len(names) == 14, "%d metrics of sockets", len(names))
	for _, m := range names {
		testkit.Want(t, strings.Contains(string(document), "\n| `"+m[1]+"` |"), "docs/metrics.md has no row for %s", m[1])
	}
	_, section, _ := strings.Cut(string(document), "## Sockets")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile(`cabrank_socket\w+\{(?:reason|kind)="(\w+)"\}`).FindAllStringSubmatch(string(text), -1) {
		testkit.Want(t, strings.Contains(section, "`"+m[1]+"`"), "docs/metrics.md does not explain %s", m[0])
	}
}

// docs/socket.md names all limits that are flags, with their defaults where they are
// plain numbers.
func TestSocketLimitsAreDocumented(t *testing.T) {
	document := testkit.ReadFile(t, "../../docs/socket.md")
	newSocketServeCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || strings.HasPrefix(f.Name, "log-") || f.Name == "path" || f.Name == "allow-empty-subprotocol" {
			return
		}
		testkit.Want(t, strings.Contains(string(document), "--"+f.Name), "docs/socket.md does not explain --%s", f.Name)
	})
}
