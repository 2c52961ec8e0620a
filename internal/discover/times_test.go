package discover

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Other times hold for endpoints that are watched already, and for those that
// drain.
func TestRosterTakesOtherTimes(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0")
	address := server.Addr().String()
	b := newBoard()
	o := testOptions(b, address)
	o.HealthInterval, o.DrainTimeout = time.Hour, time.Hour
	r := newRoster(t, o)
	r.Start()
	b.await(t, address, "up at tcp "+address)
	server.say(false) // and nobody asks
	r.Configure(Times{DrainTimeout: time.Hour, HealthInterval: 20 * time.Millisecond, HealthTimeout: o.HealthTimeout})
	b.await(t, address, "down")
	b.setWork(address, Work{InFlight: 1})
	testkit.Must(t, r.Replace(nil))
	r.Configure(Times{DrainTimeout: time.Millisecond, HealthInterval: time.Hour, HealthTimeout: time.Hour})
	b.await(t, address, "remove")
	b.wantTold(t, address, "add", "up at tcp "+address, "down", "cut", "remove")
}
