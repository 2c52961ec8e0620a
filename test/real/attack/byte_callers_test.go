//go:build soak

package attack_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// R9, the bar: 20 callers that send their request a byte at a time do not hold the
// two slots there are, so that others keep their latency; and they are served, too.
func TestByteAtATimeCallers(t *testing.T) { //nolint:tparallel // beside each other, not beside tests that are judged by their time
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "2", "--slots", "1").Booted(2)
		byteAtATime(t, c)
	})
	for _, lang := range []string{"python", "ruby"} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			c, _ := harness.OneThread(t, lang)
			byteAtATime(t, c)
		})
	}
}

func byteAtATime(t *testing.T, c *harness.Cabrank) {
	t.Helper()
	const callers, service, between = 20, 5 * time.Millisecond, 30 * time.Millisecond
	conn := harness.Dial(t, c.Addr)
	measure := func(calls int) []time.Duration {
		var took []time.Duration
		for n := range calls {
			began := time.Now()
			harness.CallIo(t.Context(), conn, strconv.Itoa(n), service).WantOK(t)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took
	}
	measure(100) // so that it is known who speaks first
	calm := measure(200)

	message := append([]byte{0, 0, 0, 0, 103, 0x08, 1, 0x7a, 99}, make([]byte, 99)...) // an IoRequest, and a field that nobody knows
	quit := make(chan struct{})
	var sending sync.WaitGroup
	for n := range callers {
		p := testkit.DialCaller(t, c.Addr)
		p.Greet()
		p.Skip(testkit.WindowUpdate)
		p.WriteHeaders(1, testkit.NoEnd, ":method", "POST", ":scheme", "http", ":path", workpb.Work_Io_FullMethodName,
			":authority", "slow", "content-type", "application/grpc", "te", "trailers", harness.CallIDKey, fmt.Sprintf("slow-%d", n))
		sending.Go(func() {
			tick := time.NewTicker(between)
			defer tick.Stop()
			for i := range message {
				<-tick.C
				p.WriteData(1, testkit.EndStream(i == len(message)-1), message[i:i+1])
			}
			p.WantHeaders(1, testkit.NoEnd)
			p.WantData(1, testkit.NoEnd)
			p.WantHeaders(1, testkit.End)
		})
	}
	go func() { sending.Wait(); close(quit) }() // ends with the callers
	var beside []time.Duration
	for done := false; !done; {
		select {
		case <-quit:
			done = true
		default:
			beside = append(beside, measure(20)...)
		}
	}
	slices.Sort(beside)
	t.Logf("calls of %v: calm %s; beside %d callers of a byte each %v: %s", service, harness.SpreadOf(calm), callers, between, harness.SpreadOf(beside))
	if was, is := calm[len(calm)/2], beside[len(beside)/2]; is > 10*was+100*time.Millisecond { // one that has waited for a caller takes seconds
		t.Errorf("half of the calls took more than %v, of %v in calm", is, was)
	}
	longest := beside[len(beside)-1]
	testkit.Want(t, longest <= time.Duration(len(message))*between/2, "a call took %v: it has waited for a caller", longest)
	c.Stop()
}
