//go:build soak

package socket_test

import (
	"testing"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
)

// The function that docs/juggler.md has results streamed of is one that cabrank socket callee
// has.
func TestCalleeProcessCountsSoak(t *testing.T) {
	server := redisd.Start(t)
	startCalleeProcess(t, server)
	_, url := startServe(t, "--redis", "unix://"+server.Socket)
	c := dialClient(t, url, client.Options{Protocols: []string{client.Juggler1}})
	sum := 0
	for n, err := range client.Stream[int](t.Context(), c, "test.count", "100") {
		testkit.Must(t, err)
		sum += n
	}
	testkit.Want(t, sum == 5050, "got %d", sum)
}
