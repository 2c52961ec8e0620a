//go:build real || soak

package socket_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
)

// What a pattern matches is what Redis says: a PUBLISH returns how many it has reached.
func TestGlobsAreThoseOfRedis(t *testing.T) {
	server := redisd.Start(t)
	listener, publisher := redis.PubSubConn{Conn: dialRedis(t, server)}, dialRedis(t, server)
	random := rand.New(rand.NewPCG(1, 2))
	text := func(letters string, most int) string {
		b := make([]byte, random.IntN(most+1))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	matches := 0
	for range 1500 {
		pattern := text(`ab-]c[*?\^`, 9)
		testkit.Must(t, listener.PSubscribe(pattern))
		listener.Receive()
		for range 12 {
			channel := text(`abc-]*`, 4)
			n, err := redis.Int(publisher.Do("PUBLISH", channel, ""))
			testkit.Must(t, err)
			matches += n
			testkit.Equal(t, broker.Matches(pattern, channel), n == 1, "pattern %q, channel %q", pattern, channel)
			if n == 1 {
				listener.Receive()
			}
		}
		testkit.Must(t, listener.PUnsubscribe(pattern))
		listener.Receive()
	}
	testkit.Want(t, matches >= 500, "only %d of 18,000 match: it compares little", matches)
}
