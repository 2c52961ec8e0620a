//go:build real || soak

package real_test

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
)

// A chaosKind is one kind of call, with the name of its method.
type chaosKind string

const (
	ioCall    chaosKind = "Io"    // unary, must not run twice
	cpuCall   chaosKind = "Cpu"   // unary, marked idempotent
	countCall chaosKind = "Count" // server stream, marked idempotent
	chatCall  chaosKind = "Chat"  // bidirectional, must not run twice
)

// idempotent reports whether the configuration marks calls of the kind so.
func (k chaosKind) idempotent() bool { return k == cpuCall || k == countCall }

func (k chaosKind) streams() bool { return k == countCall || k == chatCall }

// What calls take: unary ones a random time, streams so many messages with a
// pause before each.
const (
	unaryLeast, unaryMost = 5 * time.Millisecond, 35 * time.Millisecond
	streamMessages        = 10
	streamPause           = 20 * time.Millisecond
	streamShare           = 10 // one call in so many is a stream
)

// chaosBound is the deadline of every call: so long that none is refused for it
// on a machine that stands still for a while.
const chaosBound = 2 * time.Minute

// meanSlotTime is how long a call keeps a slot on average.
const meanSlotTime = ((streamShare-1)*(unaryLeast+unaryMost)/2 + streamMessages*streamPause) / streamShare

// chaosCall is one call as its caller saw it.
type chaosCall struct {
	id       string
	kind     chaosKind
	intended time.Time // when it was due
	ended    time.Time
	headed   bool // a response header had come
	messages int  // that came
	err      error
}

// took is how long the call took from its intended start, so that a test that
// is late counts against the result and not for it.
func (c *chaosCall) took() time.Duration { return c.ended.Sub(c.intended) }

// openCallers are connections that loads share, one after the other.
type openCallers struct {
	conns []*grpc.ClientConn
}

func dialOpenCallers(t *testing.T, addr string) *openCallers {
	t.Helper()
	const connections = 4
	c := &openCallers{}
	for range connections {
		c.conns = append(c.conns, dialLang(t, addr))
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
	ended []chaosCall // guarded by mu
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
		call := chaosCall{kind: drawKind(random)}
		call.id, call.intended = fmt.Sprintf("%s-%s-%d", l.name, call.kind, number), due
		work := unaryLeast + time.Duration(random.Int64N(int64(unaryMost-unaryLeast)))
		l.calls.Go(func() { l.make(ctx, l.conns[number%len(l.conns)], call, work) })
	}
}

func drawKind(random *rand.Rand) chaosKind {
	again := random.IntN(2) == 0
	switch stream := random.IntN(streamShare) == 0; {
	case stream && again:
		return countCall
	case stream:
		return chatCall
	case again:
		return cpuCall
	default:
		return ioCall
	}
}

// make makes one call and keeps how it ended.
func (l *openLoad) make(ctx context.Context, conn *grpc.ClientConn, call chaosCall, work time.Duration) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, callIDKey, call.id), chaosBound)
	defer cancel()
	client := workpb.NewWorkClient(conn)
	millis := uint32(work.Milliseconds())
	var header metadata.MD
	switch call.kind {
	case ioCall:
		_, call.err = client.Io(ctx, &workpb.IoRequest{Millis: millis}, grpc.Header(&header))
	case cpuCall:
		_, call.err = client.Cpu(ctx, &workpb.CpuRequest{N: millis}, grpc.Header(&header))
	case countCall:
		header, call.err = countStream(ctx, client, &call)
	case chatCall:
		header, call.err = chatStream(ctx, client, &call)
	}
	call.headed = len(header) > 0
	call.ended = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, call)
}

// A number of messages that is not the one asked for, or not in order.
var errGarbled = errors.New("the stream ended well, and its messages are not those that were asked for")

func countStream(ctx context.Context, client workpb.WorkClient, call *chaosCall) (metadata.MD, error) {
	stream, err := client.Count(ctx, &workpb.CountRequest{To: streamMessages, PauseMillis: uint32(streamPause.Milliseconds())})
	if err != nil {
		return nil, err
	}
	for {
		number, err := stream.Recv()
		if err != nil {
			header, _ := stream.Header() // err says why there is none
			return header, call.whole(err)
		}
		if call.messages++; int(number.GetValue()) != call.messages {
			return nil, errGarbled
		}
	}
}

// chatStream sends a message after each answer and a pause.
func chatStream(ctx context.Context, client workpb.WorkClient, call *chaosCall) (metadata.MD, error) {
	stream, err := client.Chat(ctx)
	if err != nil {
		return nil, err
	}
	for {
		text := strconv.Itoa(call.messages)
		if call.messages == streamMessages {
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
			return header, call.whole(err)
		}
		if call.messages++; answer.GetText() != text {
			return nil, errGarbled
		}
		<-time.After(streamPause) // the caller thinks
	}
}

// whole returns how a stream ended, given what its last Recv said.
func (c *chaosCall) whole(err error) error {
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case c.messages != streamMessages:
		return errGarbled
	default:
		return nil
	}
}

// stop starts no more calls, waits for those under way and returns all.
func (l *openLoad) stop() []chaosCall {
	close(l.quit)
	<-l.paced
	l.calls.Wait()
	return l.ended
}
