//go:build real || soak

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/test/real/harness"
)

// chaosBound is the deadline of every call: so long that none is refused for it
// on a machine that stands still for a while.
const chaosBound = 2 * time.Minute

// meanSlotTime is how long a call keeps a slot on average.
const meanSlotTime = ((harness.StreamShare-1)*(harness.UnaryLeast+harness.UnaryMost)/2 + harness.StreamMessages*harness.StreamPause) / harness.StreamShare

// openCallers are connections that loads share, one after the other.
type openCallers struct {
	conns []*grpc.ClientConn
}

func dialOpenCallers(t *testing.T, addr string) *openCallers {
	t.Helper()
	const connections = 4
	c := &openCallers{}
	for range connections {
		c.conns = append(c.conns, harness.Dial(t, addr))
	}
	return c
}

// openLoad starts calls at random moments, as many independent callers do, and
// never waits for answers.
//
// Life: openCallers.start, stop once. The moments, kinds and sizes of the calls
// come from the seed alone.
type openLoad struct {
	*openCallers

	name  string // part of the calls' ids
	quit  chan struct{}
	paced chan struct{}
	calls sync.WaitGroup

	mu    sync.Mutex
	ended []harness.ChaosCall // guarded by mu
}

// start begins with so many calls a second.
func (c *openCallers) start(t *testing.T, name string, rate float64, seed uint64) *openLoad {
	t.Helper()
	name = strings.ReplaceAll(name, " ", "-")
	l := &openLoad{openCallers: c, name: name, quit: make(chan struct{}), paced: make(chan struct{})}
	go func() { // ended by stop
		defer close(l.paced)
		l.pace(t.Context(), rate, rand.New(rand.NewPCG(seed, 1)))
	}()
	return l
}

// pace starts every call when it is due.
func (l *openLoad) pace(ctx context.Context, rate float64, random *rand.Rand) {
	due := time.Now()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for number := 0; ; number++ {
		due = due.Add(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
		alarm.Reset(time.Until(due))
		select {
		case <-l.quit:
			return
		case <-alarm.C:
		}
		call := harness.ChaosCall{Kind: drawKind(random)}
		call.ID, call.Intended = fmt.Sprintf("%s-%s-%d", l.name, call.Kind, number), due
		work := harness.UnaryLeast + time.Duration(random.Int64N(int64(harness.UnaryMost-harness.UnaryLeast)))
		l.calls.Go(func() { l.make(ctx, l.conns[number%len(l.conns)], call, work) })
	}
}

func drawKind(random *rand.Rand) harness.ChaosKind {
	again := random.IntN(2) == 0
	switch stream := random.IntN(harness.StreamShare) == 0; {
	case stream && again:
		return harness.CountCall
	case stream:
		return harness.ChatCall
	case again:
		return harness.CPUCall
	default:
		return harness.IOCall
	}
}

// make makes one call and keeps how it ended.
func (l *openLoad) make(ctx context.Context, conn *grpc.ClientConn, call harness.ChaosCall, work time.Duration) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, harness.CallIDKey, call.ID), chaosBound)
	defer cancel()
	client := workpb.NewWorkClient(conn)
	millis := uint32(work.Milliseconds())
	var header metadata.MD
	switch call.Kind {
	case harness.IOCall:
		_, call.Err = client.Io(ctx, &workpb.IoRequest{Millis: millis}, grpc.Header(&header))
	case harness.CPUCall:
		_, call.Err = client.Cpu(ctx, &workpb.CpuRequest{N: millis}, grpc.Header(&header))
	case harness.CountCall:
		header, call.Err = harness.CountStream(ctx, client, &call)
	case harness.ChatCall:
		header, call.Err = chatStream(ctx, client, &call)
	}
	call.Headed = len(header) > 0
	call.Ended = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, call)
}

// chatStream sends a message after each answer and a pause.
func chatStream(ctx context.Context, client workpb.WorkClient, call *harness.ChaosCall) (metadata.MD, error) {
	stream, err := client.Chat(ctx)
	if err != nil {
		return nil, err
	}
	for {
		text := strconv.Itoa(call.Messages)
		if call.Messages == harness.StreamMessages {
			err = stream.CloseSend()
		} else {
			err = stream.Send(&workpb.ChatMessage{Text: text})
		}
		if err != nil && !errors.Is(err, io.EOF) { // at EOF Recv says why
			return nil, err
		}
		answer, err := stream.Recv()
		if err != nil {
			header, _ := stream.Header() // err says why there is none
			return header, call.Whole(err)
		}
		if call.Messages++; answer.GetText() != text {
			return nil, harness.ErrGarbled
		}
		<-time.After(harness.StreamPause) // the caller thinks
	}
}

// stop starts no more calls, waits for those under way and returns all.
func (l *openLoad) stop() []harness.ChaosCall {
	close(l.quit)
	<-l.paced
	l.calls.Wait()
	return l.ended
}
