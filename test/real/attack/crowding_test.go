//go:build soak

package attack_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// One caller does not crowd out another one, at the defaults: neither by calls that do
// not move, nor by calls that it cancels and whose slots are held as ghosts (R5, R9). The other one comes from another address and asks for
// 30 % of what the workers can do.
func TestNobodyIsCrowdedOut(t *testing.T) {
	for name, attack := range map[string]func(ctx context.Context, t *testing.T, addr string){
		"nothing but HEADERS": stopped(func(a *harness.Arms) { a.Call(false) }),
		"half a message": stopped(func(a *harness.Arms) {
			id, half := a.Call(false), make([]byte, 13_000)
			binary.BigEndian.PutUint32(half[1:], 60_000)
			for range 3 {
				a.Do(a.WriteData(id, false, half))
			}
		}),
		"a message and no end": stopped(func(a *harness.Arms) { a.Do(a.WriteData(a.Call(false), false, make([]byte, 5))) }),
		"cancelled calls":      cancelledCalls,
	} {
		t.Run(name, func(t *testing.T) {
			c := harness.StartCabrank(t, "--workers", "3", "--slots", "5", "--transport", "unix",
				"--", harness.CabrankBinary(t), "demo", "worker", "--work", harness.ShortWork.String())
			c.WaitWorkers(3)
			good := demopb.NewGreeterClient(harness.DialFrom(t, "127.0.0.2", c.Addr))
			const turn = 2 * time.Second
			goodCalls(t, good, turn/4) // so that it is known how long they take
			calm, _ := goodCalls(t, good, turn)

			ctx, stop := context.WithCancel(t.Context())
			var busy sync.WaitGroup
			busy.Go(func() { attack(ctx, t, c.Addr) })
			beside, failed := goodCalls(t, good, 2*turn)
			stop()
			busy.Wait()
			t.Logf("calm: %s; beside: %s, %d failed", harness.SpreadOf(calm), harness.SpreadOf(beside), failed)
			testkit.Want(t, failed*100 <= len(beside), "%d of %d calls failed", failed, failed+len(beside))
			// The 99th percentile is looked at by hand; a busy machine is not to fail here.
			// Those that have waited for the attacker's calls take seconds.
			was, is := calm[len(calm)*9/10], beside[len(beside)*9/10]
			testkit.Want(t, is <= 10*was+100*time.Millisecond, "a tenth of the calls took more than %v, of %v in calm", is, was)
		})
	}
}

// goodCalls makes 30 % of the calls that 15 slots can do, some of which are answered.
func goodCalls(t *testing.T, good demopb.GreeterClient, lasts time.Duration) (took []time.Duration, failed int) {
	t.Helper()
	took, why := inRhythm(t, good, 10*harness.ShortWork/3/15, lasts)
	for _, n := range why {
		failed += n
	}
	testkit.Need(t, len(took) != 0, "no call was answered: %v", why)
	return took, failed
}

// stopped begins 20 calls at once and then 20 a second, and goes on with none.
func stopped(begin func(*harness.Arms)) func(context.Context, *testing.T, string) {
	return func(ctx context.Context, t *testing.T, addr string) {
		t.Helper()
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		go func() { _, _ = io.Copy(io.Discard, nc) }() // ends with the connection
		a := harness.NewArms()
		for range 20 {
			begin(a)
		}
		for tick := time.NewTicker(50 * time.Millisecond); ; begin(a) {
			if _, err := nc.Write(a.Out.Bytes()); err != nil {
				t.Errorf("the attacker's connection: %v", err)
				return
			}
			a.Out.Reset()
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}
}

// cancelledCalls begins 60 streams a second and cancels each after 5 ms, before any
// worker has answered: of their method nothing is known.
func cancelledCalls(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	greeter := demopb.NewGreeterClient(harness.Dial(t, addr))
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := time.NewTicker(time.Second / 60)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		calls.Go(func() {
			soon, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			if stream, err := greeter.ListHellos(soon, &demopb.ListHellosRequest{Count: 1000}); err == nil {
				_, _ = stream.Recv()
			}
		})
	}
}
