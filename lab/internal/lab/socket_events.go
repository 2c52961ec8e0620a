package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// leastSize is the bytes that the number of an event needs.
const leastSize = 32

// subscribersQueue is what may wait for one of many subscribers, who do nothing else.
const subscribersQueue = 256 << 10

// socketEvents publishes events. A call of it ends when all subscribers have the event; its
// first message is when the first of them has it.
//
// Life: newSocketEvents; calls; Close when all have ended.
type socketEvents struct {
	options     SocketLoad
	run         string // tells its events from those of others
	pad         string
	publisher   *client.Client
	subscribers []*client.Client
	subscribed  sync.WaitGroup

	posting sync.Mutex // numbers go out in their order
	number  uint64

	mu      sync.RWMutex
	flights map[uint64]*flight

	sent, delivered, disordered, repeated atomic.Int64
}

// flight is an event that not all have.
type flight struct {
	left  atomic.Int64
	first atomic.Int64 // when the first had it, in ns; 0 before
	all   chan struct{}
}

var (
	_ traffic.Client  = (*socketEvents)(nil)
	_ traffic.Dialer  = (*socketEvents)(nil)
	_ traffic.Counter = (*socketEvents)(nil)
)

// newSocketEvents opens the sockets and subscribes.
//
// Errors: one line, for a server that cannot be reached or does not let subscribe.
func newSocketEvents(ctx context.Context, o SocketLoad) (*socketEvents, error) {
	e := &socketEvents{options: o, run: fmt.Sprintf("%08x", uint32(time.Now().UnixNano())), flights: map[uint64]*flight{}}
	e.pad = strings.Repeat("x", max(o.Size, leastSize)-leastSize)
	var err error
	if e.publisher, err = client.Dial(ctx, o.URL, o.Client); err != nil {
		return nil, err
	}
	o.Client.QueueBytes = subscribersQueue
	if e.subscribers, err = openSockets(ctx, o.URL, o.Subscribers, o.Client); err != nil {
		e.Close()
		return nil, err
	}
	for _, c := range e.subscribers {
		s, err := c.Subscribe(ctx, o.Channel)
		if err != nil {
			e.Close()
			return nil, err
		}
		e.subscribed.Go(func() { e.take(s) }) // ends with the socket, in Close
	}
	return e, nil
}

type published struct {
	Run    string `json:"run"`
	Number uint64 `json:"n"`
}

// args has the same number of bytes for each number.
func (e *socketEvents) args(number uint64) json.RawMessage {
	return fmt.Appendf(nil, `{"run":%q,"n":%d,"x":%q}`, e.run, number, e.pad)
}

func (e *socketEvents) take(s *client.Subscription) {
	next := uint64(0)
	for event, err := range s.All(context.Background()) {
		now := time.Now().UnixNano()
		var p published
		if err != nil || json.Unmarshal(event.Args, &p) != nil || p.Run != e.run {
			continue
		}
		e.delivered.Add(1)
		switch {
		case p.Number+1 == next:
			e.repeated.Add(1)
		case p.Number < next:
			e.disordered.Add(1)
		default:
			next = p.Number + 1
		}
		e.mu.RLock()
		f := e.flights[p.Number]
		e.mu.RUnlock()
		if f == nil {
			continue // its call has ended at its deadline
		}
		f.first.CompareAndSwap(0, now)
		if f.left.Add(-1) == 0 {
			close(f.all)
		}
	}
}

// Call publishes one event.
func (e *socketEvents) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	ctx, cancel := call.Bound(ctx)
	defer cancel()
	f := &flight{all: make(chan struct{})}
	f.left.Store(int64(len(e.subscribers)))
	number, receipt, err := e.post(ctx, f)
	defer e.land(number)
	if err == nil {
		err = receipt.Wait(ctx)
	}
	if err != nil {
		return socketFailure(err)
	}
	answer := traffic.Answer{Sent: traffic.Volume{Messages: 1, Bytes: int64(len(e.args(number)))}}
	select {
	case <-f.all:
	case <-ctx.Done():
		answer.Code, answer.Message = uint32(codes.DeadlineExceeded), "not all subscribers have the event"
		if errors.Is(ctx.Err(), context.Canceled) {
			answer.Code = uint32(codes.Canceled)
		}
	}
	answer.Received.Messages = int64(len(e.subscribers)) - max(f.left.Load(), 0)
	answer.Received.Bytes = answer.Received.Messages * answer.Sent.Bytes
	if first := f.first.Load(); first > 0 {
		answer.First = time.Unix(0, first)
	}
	return answer
}

// post hands an event over; numbers go out in their order.
func (e *socketEvents) post(ctx context.Context, f *flight) (uint64, *client.Receipt, error) {
	e.posting.Lock()
	defer e.posting.Unlock()
	number := e.number
	e.number++
	e.mu.Lock()
	e.flights[number] = f
	e.mu.Unlock()
	e.sent.Add(1)
	receipt, err := e.publisher.Post(ctx, e.options.Channel, e.args(number))
	return number, receipt, err
}

// land forgets an event.
func (e *socketEvents) land(number uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.flights, number)
}

// Opened returns how many connections were opened so far.
func (e *socketEvents) Opened() int64 { return opened(e.subscribers) + e.publisher.Stats().Connections }

// Counts returns the messages so far.
func (e *socketEvents) Counts() []traffic.Count {
	var dropped int64
	for _, c := range e.subscribers {
		dropped += c.Stats().Dropped
	}
	n := e.publisher.Stats()
	return []traffic.Count{
		{Name: "PUB", N: e.sent.Load()},
		{Name: "ACK", N: n.Acks},
		{Name: "NACK", N: n.Nacks},
		{Name: "EVNT to all subscribers", N: e.delivered.Load()},
		{Name: "EVNT due to them", N: e.sent.Load() * int64(len(e.subscribers))},
		{Name: "EVNT out of order", N: e.disordered.Load()},
		{Name: "EVNT repeated", N: e.repeated.Load()},
		{Name: "EVNT dropped by the generator", N: dropped},
	}
}

// String says how events go.
func (e *socketEvents) String() string {
	return fmt.Sprintf("one publisher, %d subscribers, each with a WebSocket, %s", len(e.subscribers), e.publisher.Protocol())
}

// Close ends the sockets.
func (e *socketEvents) Close() {
	if e.publisher != nil {
		e.publisher.Close()
	}
	closeSockets(e.subscribers)
	e.subscribed.Wait()
}
