//go:build real

package real_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

// R9, the bar: 20 callers that send their request a byte at a time do not hold the
// two slots there are, so that others keep their latency; and they are served, too.
func TestByteAtATimeCallers(t *testing.T) {
	t.Run("go", func(t *testing.T) {
		c := startFault(t, faultWorker(t), "--workers", "2", "--slots", "1")
		c.waitWorkers(2)
		byteAtATime(t, c)
	})
	for _, lang := range []string{"python", "ruby"} {
		t.Run(lang, func(t *testing.T) {
			c, _ := oneThread(t, lang)
			byteAtATime(t, c)
		})
	}
}

func byteAtATime(t *testing.T, c *Cabrank) {
	t.Helper()
	const callers, service, between = 20, 5 * time.Millisecond, 30 * time.Millisecond
	conn := dialLang(t, c.Addr)
	measure := func(calls int) []time.Duration {
		var took []time.Duration
		for n := range calls {
			began := time.Now()
			if got := callIo(t.Context(), conn, strconv.Itoa(n), service); got.err != nil {
				t.Errorf("call %d: %v", n, got.err)
			}
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
			":authority", "slow", "content-type", "application/grpc", "te", "trailers", callIDKey, fmt.Sprintf("slow-%d", n))
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
	t.Logf("calls of %v: calm %s; beside %d callers of a byte each %v: %s", service, spread(calm), callers, between, spread(beside))
	if was, is := calm[len(calm)/2], beside[len(beside)/2]; is > 2*was+10*time.Millisecond {
		t.Errorf("half of the calls took more than %v, of %v in calm", is, was)
	}
	if longest := beside[len(beside)-1]; longest > time.Duration(len(message))*between/2 {
		t.Errorf("a call took %v: it has waited for a caller", longest)
	}
	c.Stop()
}

// spread words what sorted times are like.
func spread(sorted []time.Duration) string {
	at := func(part int) time.Duration { return sorted[(len(sorted)-1)*part/100].Round(100 * time.Microsecond) }
	return fmt.Sprintf("median %v, p99 %v, longest %v (%d)", at(50), at(99), at(100), len(sorted))
}

// startFaultEnv is startFault with one slot and settings from the environment.
func startFaultEnv(t *testing.T, env ...string) *Cabrank {
	t.Helper()
	args := slices.Concat([]string{"--transport", "unix", "--workers", "1", "--slots", "1", "--"}, faultWorker(t))
	c := StartCabrankEnv(t, env, args...)
	c.waitWorkers(1)
	return c
}

// R9: a conversation that its caller has left lying holds the only slot, until
// somebody else waits for stall_timeout.
func TestStalledCallerMakesRoom(t *testing.T) {
	c := startFaultEnv(t, "CABRANK_STALL_TIMEOUT=1s")
	conn := dialLang(t, c.Addr)
	chat, err := workpb.NewWorkClient(conn).Chat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chat.Header(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got := callIo(t.Context(), conn, "1", time.Millisecond); got.err != nil {
		t.Errorf("the call behind it: %v", got.err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("it had its slot after %v", took)
	}
	if _, err := chat.Recv(); status.Code(err) != codes.Aborted || status.Convert(err).Message() != "cabrank: caller stalled" {
		t.Errorf("the conversation ended with %v", err)
	}
	c.Stop()
}

// R9: an answer of 900 KiB that nobody takes holds no slot, and is whole when its
// caller comes back.
func TestAnswerWaitsForItsCaller(t *testing.T) {
	c := startFaultEnv(t)
	conn := dialLang(t, c.Addr)
	slow := testkit.DialCaller(t, c.Addr)
	slow.Greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	slow.Skip(testkit.WindowUpdate)
	slow.WriteHeaders(1, testkit.NoEnd, ":method", "POST", ":scheme", "http", ":path", workpb.Work_Chat_FullMethodName,
		":authority", "slow", "content-type", "application/grpc", "te", "trailers")
	text := strings.Repeat("x", 900<<10)
	message, err := proto.Marshal(&workpb.ChatMessage{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	prefix := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	slow.WriteBody(1, testkit.End, append(prefix, message...))
	slow.WantHeaders(1, testkit.NoEnd)
	for n := range 20 {
		if got := callIo(t.Context(), conn, strconv.Itoa(n), time.Millisecond); got.err != nil {
			t.Fatalf("call %d beside it: %v", n, got.err)
		}
	}
	slow.WriteWindowUpdate(0, 1<<24)
	slow.WriteWindowUpdate(1, 1<<24)
	for got := 0; got < len(prefix)+len(message); {
		got += len(slow.WantData(1, testkit.NoEnd))
	}
	slow.WantHeaders(1, testkit.End)
	c.Stop()
}

// R5: with on_cancel: finish a worker ends what it has begun though its caller has
// gone, and the next call has to wait for that.
func TestWorkIsFinished(t *testing.T) {
	const service = 500 * time.Millisecond
	for how, done := range map[string]bool{"finish": true, "free": false} {
		t.Run(how, func(t *testing.T) {
			c := startFaultEnv(t, "CABRANK_ON_CANCEL="+how)
			conn := dialLang(t, c.Addr)
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan outcome, 1)
			go func() { left <- callIo(ctx, conn, "left", service) }() // ends with ctx
			c.waitTaken(1)
			cancel()
			<-left
			if got := callIo(t.Context(), conn, "next", 0); got.err != nil {
				t.Errorf("the next call: %v", got.err)
			}
			if got := strings.Contains(c.Output(), "done left"); got != done {
				t.Errorf("done is %v, want %v", got, done)
			}
			c.Stop()
		})
	}
}
