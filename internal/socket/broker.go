package socket

import (
	"context"

	"github.com/cabrank/cabrank/internal/broker"
)

// Methods answers calls whose URI is a gRPC method. Package methods documents what it
// guarantees.
type Methods interface {
	// Takes reports whether calls of a URI are for it. The Broker has all others.
	Takes(uri string) bool
	// Call lets the method answer, like Broker.Call a function.
	Call(ctx context.Context, call broker.Call)
	// Left ends the calls of a socket. It is called once for each socket that has made
	// one.
	Left(caller *broker.Caller)
}

// Broker connects sockets with functions and with each other. Package broker documents
// what each method guarantees.
//
// Every done is called once, in any goroutine, maybe before the method has returned.
type Broker interface {
	// Listen sets the function for events. It is called once, first.
	Listen(events func(broker.Topic, broker.Event))
	// Call asks for a function. The call ends when ctx does.
	Call(ctx context.Context, call broker.Call)
	// Publish sends an event. Events of one channel go out in the order of the calls.
	Publish(e broker.Event, done func(error))
	// Subscribe subscribes to a topic. It is not called for a topic while another
	// Subscribe or Unsubscribe of it is not done.
	Subscribe(topic broker.Topic, done func(error))
	// Unsubscribe ends the subscription: no event of the topic comes after it is done.
	Unsubscribe(topic broker.Topic, done func(error))
}

// Lossy is a Broker that may miss events for a while, and notices it.
type Lossy interface {
	// OnGap sets the functions that one goroutine calls when a gap begins and when it
	// has ended. Subscriptions stay; some events of the time between may come, others
	// are missed. It is called once, after Listen.
	OnGap(begins, ended func())
}
