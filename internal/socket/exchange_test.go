package socket

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/exchange"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// start starts a server with a broker in memory, which the functions of tests serve.
func start(t testing.TB, options Options, memory broker.MemoryOptions) (url string, server *Server, b *broker.Memory) {
	t.Helper()
	testkit.CheckLeaks(t)
	b = broker.NewMemory(memory)
	for uri, f := range broker.TestFunctions() {
		b.Serve(uri, 4, f)
	}
	for uri, f := range broker.TestStreams() {
		b.ServeStream(uri, 4, f)
	}
	options.Broker = b
	url, server = serve(t, options)
	return url, server, b
}

func serve(t testing.TB, options Options) (url string, server *Server) {
	t.Helper()
	server = New(options)
	listener := httptest.NewServer(http.HandlerFunc(server.ServeHTTP))
	t.Cleanup(func() {
		server.Close()
		listener.Close()
		testkit.Eventually(t, within, "the budget to have all back", func() bool { return server.budget.used.Load() == 0 })
	})
	return "ws" + strings.TrimPrefix(listener.URL, "http") + "/ws", server
}

// Every case of docs/juggler.md, to the byte; marked lines are what is repaired. And
// every message of docs/juggler.md.
func TestExchanges(t *testing.T) {
	testkit.CheckLeaks(t)
	for _, c := range slices.Concat(exchange.Cases(t), exchange.NewCases(t)) {
		exchange.Run(t, c, target())
	}
}

// target is a server in memory.
func target() exchange.Target {
	return exchange.Target{Kind: "new", Start: func(t *testing.T, options exchange.Options) (string, func()) {
		t.Helper()
		url, _, b := start(t, Options{
			Origins: options.Words("origins"), AllowEmptySubprotocol: options["allow_empty_subprotocol"] != "",
			ReadLimit: int64(options.Int("read_limit")), WriteLimit: int64(options.Int("write_limit")),
			CloseURI: options["close_uri"],
		}, broker.MemoryOptions{CallCap: options.Int("call_cap")})
		return url, b.Close
	}}
}

// What docs/juggler.md shows is what a server says; but for tokens, of which there are
// none here.
func TestDocumentedExchanges(t *testing.T) {
	document := testkit.ReadFile(t, "../../docs/juggler.md")
	blocks, ran := strings.Split(string(document), "```"), 0
	for i := 1; i < len(blocks); i += 2 {
		text := strings.TrimSpace(blocks[i])
		if !strings.HasPrefix(text, "> ") || strings.Contains(text, `"token"`) {
			continue
		}
		// An id that is cut short is any, of one event or several.
		text = regexp.MustCompile(`"id":"[0-9a-f]+\.\.\."`).ReplaceAllString(text, `"id":"$$uuid"`)
		cases, err := exchange.Parse("juggler.md", fmt.Sprintf("== block %d\njoin proto=juggler.1\n%s\n", i/2, text))
		testkit.Must(t, err)
		exchange.Run(t, cases[0], target())
		ran++
	}
	testkit.Want(t, ran >= 6, "%d exchanges are there", ran)
}
