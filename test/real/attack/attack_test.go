//go:build soak

package attack_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	// Calm and attack take turns, so that whatever else the machine does meets
	// both.
	turns     = 3
	turn      = 2 * time.Second
	attackers = 2 // connections at a time; one that is ended is made anew
	stepPause = 10 * time.Millisecond
	fewSteps  = 50  // at once and on each connection, so that all make 10,000 a second
	mutes     = 100 // connections of each attacker that says nothing

	// mostSlower is how much longer the 99th percentile of the good caller may
	// take than in calm.
	mostSlower = 3
	// mostMemory is how much the process may grow, in KiB: the output that waits
	// for the attackers, the header blocks and answers that they have begun.
	mostMemory = 32 << 10

	siegeHead = "attack\tcalm p99\tp99\tratio\tKiB before\tmost\tsteps\tended\t"
)

// siege is one attack: how a connection begins, and what it does again and
// again.
type siege struct {
	name   string
	reason string // of the ended connections; "": none ends
	begin  func(a *harness.Arms)
	step   func(a *harness.Arms)
	deaf   bool // it does not read
	// instead is the whole attack of one attacker, until ctx ends; how often is returned.
	instead func(ctx context.Context, addr string) int
	crowd   bool // nothing but a crowd of connections, there before the turn begins
}

func sieges() []siege {
	// 72,000 bytes as HTTP/2 counts them; in a block 2,000.
	many := slices.Repeat([]string{"x", "abc"}, 2000)
	return []siege{
		{name: "rapid reset", reason: "rapid_reset",
			step: func(a *harness.Arms) { a.Do(a.WriteRSTStream(a.Call(false), http2.ErrCodeCancel)) }},
		{name: "MadeYouReset", reason: "made_reset",
			step: func(a *harness.Arms) { a.Do(a.WriteWindowUpdate(a.Call(false), 0)) }},
		{name: "CONTINUATION flood", reason: "continuation_flood",
			begin: func(a *harness.Arms) {
				a.Do(a.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}}))
			},
			step: func(a *harness.Arms) { a.Do(a.WriteContinuation(1, false, []byte{0x82})) }},
		{name: "SETTINGS flood", reason: "settings_flood", step: func(a *harness.Arms) { a.Do(a.WriteSettings()) }},
		{name: "PING flood", reason: "ping_flood", step: func(a *harness.Arms) { a.Do(a.WritePing(false, [8]byte{})) }},
		{name: "PRIORITY flood", reason: "priority_flood",
			step: func(a *harness.Arms) { a.Do(a.WritePriority(1, http2.PriorityParam{})) }},
		{name: "flood of unknown frames", reason: "unknown_frame_flood",
			step: func(a *harness.Arms) { a.Do(a.WriteRawFrame(0x42, 0, 0, nil)) }},
		{name: "empty DATA flood", reason: "empty_data",
			begin: func(a *harness.Arms) { a.Call(false) },
			step:  func(a *harness.Arms) { a.Do(a.WriteData(1, false, nil)) }},
		{name: "WINDOW_UPDATE by one", reason: "window_update_flood",
			step: func(a *harness.Arms) { a.Do(a.WriteWindowUpdate(0, 1)) }},
		{name: "one-byte window", reason: "window_update_flood",
			begin: func(a *harness.Arms) { a.NoWindow(); a.Ask() },
			step:  func(a *harness.Arms) { a.Do(a.WriteWindowUpdate(1, 1)) }},
		{name: "HPACK bomb", reason: "hpack_bomb",
			begin: func(a *harness.Arms) { a.Headers(1, true, "b", strings.Repeat("b", 3900)); a.Next = 3 },
			step: func(a *harness.Arms) {
				a.Do(a.WriteHeaders(http2.HeadersFrameParam{StreamID: a.Next, EndStream: true, EndHeaders: true,
					BlockFragment: bytes.Repeat([]byte{0xbe}, 1000)}))
				a.Next += 2
			}},
		{name: "header list over the limit", reason: "large_header_list",
			begin: func(a *harness.Arms) { // all of it is in the table from the second call on
				a.Call(true, many...)
				a.Kept = a.Encode(harness.Asked(many...)...)
			},
			step: func(a *harness.Arms) {
				a.Do(a.WriteHeaders(http2.HeadersFrameParam{StreamID: a.Next, EndStream: true, EndHeaders: true, BlockFragment: a.Kept}))
				a.Next += 2
			}},
		{name: "streams above the limit", reason: "excess_stream",
			begin: (*harness.Arms).NoWindow,
			step:  (*harness.Arms).Watch},
		// The system's buffers take what one turn brings, so that none ends; see
		// TestWire/attacks of package relay.
		{name: "does not read", deaf: true,
			begin: func(a *harness.Arms) {
				for range 20 {
					a.Do(a.WriteRSTStream(a.Call(false), http2.ErrCodeCancel))
				}
			},
			step: func(a *harness.Arms) { // each is answered by RST_STREAM
				a.Next = (a.Next + 2) % 40
				a.Do(a.WriteData(a.Next, false, []byte("x")))
			}},
		{name: "no preface", instead: silence},
		{name: "idle connections", crowd: true},
	}
}

// During each attack a caller on another connection keeps its 99th percentile,
// measured from the time at which each call was due, within three times that of
// calm; memory stays bounded; and nothing is left afterwards.
func TestAttacksUnderLoad(t *testing.T) {
	c := harness.StartCabrank(t, "--workers", "2", "--slots", "20", "--transport", "unix",
		"--", harness.CabrankBinary(t), "demo", "worker", "--work", "5ms")
	c.WaitReady(harness.Patience)
	good := demopb.NewGreeterClient(harness.Dial(t, c.Addr))
	callInTime(t, good) // warm

	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, siegeHead)
	for _, s := range sieges() {
		t.Run(s.name, func(t *testing.T) { s.run(t, c, good, rows) })
	}
	rows.Flush()
	t.Logf("\n%s", table.String())
}

func (s siege) run(t *testing.T, c *harness.Cabrank, good demopb.GreeterClient, rows io.Writer) {
	t.Helper()
	before, threads := harness.RSSKiB(t, c.PID), c.Metric("go_goroutines")
	ended := c.Metric("cabrank_connections_ended_total", "reason", s.reason)
	var quiet, loud []time.Duration
	most, steps := 0, 0
	for range turns {
		quiet = append(quiet, callInTime(t, good)...)
		n, took := s.turn(t, c, good, &most)
		loud, steps = append(loud, took...), steps+n
	}

	calm, hurt := p99(quiet), p99(loud)
	now := c.Metric("cabrank_connections_ended_total", "reason", s.reason) - ended
	ratio := float64(hurt) / float64(calm)
	fmt.Fprintf(rows, "%s\t%v\t%v\t%.2f\t%d\t%d\t%d\t%.0f\t\n", s.name, calm.Round(10*time.Microsecond),
		hurt.Round(10*time.Microsecond), ratio, before, most, steps, now)
	testkit.Want(t, steps != 0, "there was no attack")
	testkit.Want(t, ratio <= mostSlower, "p99 %v, %v in calm: %.1f times", hurt, calm, ratio)
	testkit.Want(t, most <= before+s.memory(), "%d KiB, %d before", most, before)
	testkit.Want(t, s.reason == "" || now != 0, "no connection was ended for %s", s.reason)
	testkit.Eventually(t, harness.Patience, "the attack's goroutines to end", func() bool {
		return c.Metric("go_goroutines") <= threads+5
	})
}

// memory is how much the process may grow, KiB.
func (s siege) memory() int {
	if s.crowd {
		return harness.CrowdSize * harness.MostIdle
	}
	return mostMemory
}

// turn lets the attackers loose for a turn, and returns how many steps they made
// and how long the good caller's calls took.
func (s siege) turn(t *testing.T, c *harness.Cabrank, good demopb.GreeterClient, most *int) (steps int, took []time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	made := make([]int, attackers)
	if s.crowd {
		idle := harness.GatherCrowd(t, c)
		defer idle.Leave()
		made, steps = nil, len(idle.Conns)
	}
	for i := range made {
		busy.Go(func() { made[i] = s.fight(ctx, c.Addr) })
	}
	busy.Go(func() { *most = max(*most, mostRSS(ctx, t, c.PID)) })
	took = callInTime(t, good)
	stop()
	busy.Wait()
	for _, n := range made {
		steps += n
	}
	return steps, took
}

// fight attacks over one connection after the other, and returns how many steps
// were made.
func (s siege) fight(ctx context.Context, addr string) (steps int) {
	pace := time.NewTicker(stepPause)
	defer pace.Stop()
	if s.instead != nil {
		return s.instead(ctx, addr)
	}
	for ctx.Err() == nil {
		steps += s.connection(ctx, addr, pace)
		select {
		case <-ctx.Done():
		case <-pace.C:
		}
	}
	return steps
}

// silence holds connections and says nothing on them.
func silence(ctx context.Context, addr string) int {
	var all []net.Conn
	for range mutes {
		if nc, err := net.Dial("tcp", addr); err == nil {
			all = append(all, nc)
		}
	}
	<-ctx.Done()
	for _, nc := range all {
		nc.Close()
	}
	return len(all)
}

// connection attacks until its connection or ctx ends.
func (s siege) connection(ctx context.Context, addr string, pace *time.Ticker) (steps int) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return 0
	}
	defer nc.Close()
	gone := make(chan struct{})
	if !s.deaf {
		go func() { // ends with the connection
			defer close(gone)
			io.Copy(io.Discard, nc)
		}()
	}
	a := harness.NewArms()
	if s.begin != nil {
		s.begin(a)
	}
	for ; ; steps += fewSteps {
		for range fewSteps {
			s.step(a)
		}
		nc.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := nc.Write(a.Out.Bytes()); err != nil {
			return steps
		}
		a.Out.Reset()
		select {
		case <-ctx.Done():
			return steps
		case <-gone:
			return steps
		case <-pace.C:
		}
	}
}

// callInTime makes calls for one turn, none of which may fail.
func callInTime(t *testing.T, good demopb.GreeterClient) []time.Duration {
	t.Helper()
	took, failed := inRhythm(t, good, goodPace, turn)
	testkit.Want(t, len(failed) == 0 && len(took) != 0, "calls failed: %v", failed)
	return took
}

func p99(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)*99/100]
}

// mostRSS looks at the memory of a process until ctx ends.
func mostRSS(ctx context.Context, t *testing.T, pid int) (most int) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return most
		case <-look.C:
			most = max(most, harness.RSSKiB(t, pid))
		}
	}
}

// A worker that takes all memory of the container is killed by the kernel, which the log
// and the metrics tell from a kill -9 by somebody.
func TestOutOfMemoryIsNamed(t *testing.T) {
	inContainer(t, containerMemory)
	once := filepath.Join(t.TempDir(), "once")
	worker := `if mkdir "$1"; then exec tail /dev/zero; else exec "$0" demo worker; fi`
	c := harness.StartCabrank(t, "--workers", "1", "--", "sh", "-c", worker, harness.CabrankBinary(t), once)
	c.WaitLog(harness.Patience, "worker ended")
	if ended := c.LogLines("worker ended")[0]; ended.Text("cause") != "oom" || !strings.Contains(ended.Text("how"), "out of memory") {
		t.Errorf("of a worker that took all memory the log says %v", ended)
	}
	c.WaitReady(harness.Patience)
	c.KillPID(c.ReadyPIDs("worker-1")[0])
	c.Wait(harness.Patience, "a second end", func() bool { return len(c.LogLines("worker ended")) == 2 })
	if ended := c.LogLines("worker ended")[1]; ended.Text("cause") != "signal" {
		t.Errorf("of one that somebody has killed it says %v", ended)
	}
}
