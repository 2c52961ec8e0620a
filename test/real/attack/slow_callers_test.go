//go:build real || soak

package attack_test

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// startFaultEnv is StartFault with one slot and settings from the environment.
func startFaultEnv(t *testing.T, env ...string) *harness.Cabrank {
	t.Helper()
	args := slices.Concat([]string{"--transport", "unix", "--workers", "1", "--slots", "1", "--"}, harness.FaultWorker(t))
	c := harness.StartCabrankEnv(t, env, args...).Booted(1)
	return c
}

// R9: a conversation that its caller has left lying holds the only slot, until
// somebody else waits for stall_timeout.
func TestStalledCallerMakesRoom(t *testing.T) {
	c := startFaultEnv(t, "CABRANK_STALL_TIMEOUT=1s")
	conn := harness.Dial(t, c.Addr)
	chat, err := workpb.NewWorkClient(conn).Chat(t.Context())
	testkit.Must(t, err)
	_, err = chat.Header()
	testkit.Must(t, err)
	began := time.Now()
	harness.CallIo(t.Context(), conn, "1", time.Millisecond).WantOK(t)
	took := time.Since(began)
	testkit.Want(t, took >= time.Second, "it had its slot after %v", took)
	if _, err := chat.Recv(); status.Code(err) != codes.Aborted || status.Convert(err).Message() != "cabrank: caller stalled" {
		t.Errorf("the conversation ended with %v", err)
	}
	c.Stop()
}

// R9: an answer of 900 KiB that nobody takes holds no slot, and is whole when its
// caller comes back.
func TestAnswerWaitsForItsCaller(t *testing.T) {
	c := startFaultEnv(t)
	conn := harness.Dial(t, c.Addr)
	slow := testkit.DialCaller(t, c.Addr)
	slow.Greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	slow.Skip(testkit.WindowUpdate)
	slow.WriteHeaders(1, testkit.NoEnd, ":method", "POST", ":scheme", "http", ":path", workpb.Work_Chat_FullMethodName,
		":authority", "slow", "content-type", "application/grpc", "te", "trailers")
	text := strings.Repeat("x", 900<<10)
	message, err := proto.Marshal(&workpb.ChatMessage{Text: text})
	testkit.Must(t, err)
	prefix := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	slow.WriteBody(1, testkit.End, append(prefix, message...))
	slow.WantHeaders(1, testkit.NoEnd)
	for n := range 20 {
		harness.CallIo(t.Context(), conn, strconv.Itoa(n), time.Millisecond).WantOK(t)
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
			conn := harness.Dial(t, c.Addr)
			ctx, cancel := context.WithCancel(t.Context())
			left := harness.GoIo(ctx, conn, "left", service) // ends with ctx
			c.WaitTaken(1)
			cancel()
			<-left
			harness.CallIo(t.Context(), conn, "next", 0).WantOK(t)
			c.WaitTaken(2) // the worker has said before that what it had said of the first one
			testkit.Equal(t, strings.Contains(c.Output(), "done left"), done, "done")
			c.Stop()
		})
	}
}
