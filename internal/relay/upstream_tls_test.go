package relay

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Options.Dial connects to an endpoint that speaks TLS, and it serves like any other; a failed
// dial counts like a refused connection.
func TestEndpointsOverTLS(t *testing.T) {
	const all = 20
	front := httptest.NewUnstartedServer(messages(all, new(atomic.Pointer[http.Header])))
	front.EnableHTTP2 = true
	front.StartTLS()
	defer front.Close()
	at, fails := front.Listener.Addr().String(), atomic.Bool{}
	trust, option := withTLS(t)
	g := newRig(t, option, func(o *Options) {
		o.Shards = 2
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if fails.Load() || network != "tls" || address != at {
				return nil, net.UnknownNetworkError(network)
			}
			config := front.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			config.ServerName, config.NextProtos = "example.com", []string{"h2"}
			dialer := tls.Dialer{Config: config}
			return dialer.DialContext(ctx, "tcp", address)
		}
	})
	e := g.AddEndpoint("far", 50, false)
	g.Up(e, "tls", at)
	var calling sync.WaitGroup
	for range 4 {
		transport := tlsCaller(t, g.addr, trust, true)
		for range 5 {
			calling.Go(func() { callOverTLS(t, transport, all) })
		}
	}
	calling.Wait()
	fails.Store(true)
	g.Up(e, "tls", at) // anew
	caller := tlsCaller(t, g.addr, trust, true)
	r := request1(t, http.MethodPost, hello, nil)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Grpc-Timeout", "200m")
	answer, err := caller.RoundTrip(r)
	testkit.Must(t, err)
	_ = answer.Body.Close()
	status := answer.Header.Get("Grpc-Status")
	testkit.Want(t, status != "" && status != "0", "status %q", status)
}
