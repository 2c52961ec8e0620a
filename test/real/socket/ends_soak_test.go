//go:build soak

package socket_test

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Whichever way the connection ends on which calls go out, the next call is taken: Redis is
// there. Also over TLS, where its last words come before the end.
func TestEndsOfAConnectionSoak(t *testing.T) {
	testkit.CheckLeaks(t)
	plain := redisd.Start(t)
	secure, address := startSecure(t)
	for name, c := range map[string]struct {
		address string
		server  dialer
	}{"plain": {"unix://" + plain.Socket, plain}, "TLS": {address, secure}} {
		t.Run(name, func(t *testing.T) {
			b := openBroker(t, nil, redis.Options{Address: c.address})
			admin, err := c.server.Dial()
			testkit.Must(t, err)
			defer admin.Close()
			for range 100 {
				accepted := make(chan error, 1)
				b.Call(context.Background(), broker.Call{
					URI: "nobody", Timeout: time.Minute, Unsure: true,
					Accepted: func(err error) { accepted <- err }, Answered: func(json.RawMessage, error) {},
				})
				testkit.Must(t, testkit.Take(t, accepted, harness.Patience, "nobody says whether a call was taken"))
				list, err := redigo.String(admin.Do("CLIENT", "LIST", "TYPE", "normal"))
				testkit.Must(t, err)
				for _, found := range regexp.MustCompile(`(?m)^id=(\d+) .* cmd=(lpush|role|time|set) `).FindAllStringSubmatch(list, -1) {
					_, err = admin.Do("CLIENT", "KILL", "ID", found[1])
					testkit.Must(t, err)
				}
			}
		})
	}
}
