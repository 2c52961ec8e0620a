package socket

import (
	"context"

	"github.com/cabrank/cabrank/internal/broker"
)

// Methods answers calls whose URI is a gRPC method; what it guarantees is in the
// documentation of package methods.
type Methods interface {
	// Takes reports whether calls of a URI are for it. All others are the Broker's.
	Takes(uri string) bool
	// Call has the method answer, as Broker.Call has a function.
	Call(ctx context.Context, call broker.Call)
	// Left ends the calls of a socket. It is called once, for those of which there was
	// one.
	Left(caller *broker.Caller)
}

// Broker is what sockets need of whoever joins them with functions and with each
// other. What each method guarantees is in the documentation of package broker.
//
// Every done is called once, in any goroutine, maybe before the method has returned.
type Broker interface {
	// Listen says where events go. It is called once, first.
	Listen(events func(broker.Topic, broker.Event))
	// Call asks for a function. The call ends when ctx does.
	Call(ctx context.Context, call broker.Call)
	// Publish sends an event. Those of one channel go out in the order of the calls.
	Publish(e broker.Event, done func(error))
	// Subscribe and Unsubscribe are never called for a topic for which one of them is
	// not done.
	Subscribe(topic broker.Topic, done func(error))
	// Unsubscribe has no event of the topic come any more, once it is done.
	Unsubscribe(topic broker.Topic, done func(error))
}

// Lossy is a Broker that loses sight of events for a while, and knows it.
type Lossy interface {
	// OnGap has the functions called when a gap begins and when it has ended, by one
	// goroutine. Subscriptions last; of the time between some events may come and others
	// are missed. It is called once, behind Listen.
	OnGap(begins, ended func())
}
