package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Protocols that a client speaks, as WebSocket has subprotocols.
const (
	// Juggler0 is the one of the old servers.
	Juggler0 = "juggler.0"
	// Juggler1 has calls that can be canceled, streams, and errors with codes.
	Juggler1 = "juggler.1"
)

const (
	// mostUnsent bounds the bytes of requests that wait for the network. Whoever has
	// another one waits.
	mostUnsent = 1 << 20
	// mostUnderWay bounds the requests whose answer has not come. Whoever has another
	// one waits. A server has a bound of its own, 1,000 calls by default.
	mostUnderWay = 1 << 16
	// closeWithin is how long Close waits for the server to close, too.
	closeWithin = time.Second
)

// Options of a Client. Zero takes the value that is named.
type Options struct {
	// Protocols are offered to the server, which chooses. Nil: both.
	Protocols []string
	// Header returns what a handshake has in its header beside what WebSocket needs,
	// such as a cookie. It is asked before each. An error counts as a connection that failed. Nil: nothing.
	Header func(context.Context) (http.Header, error)
	// Token returns the token with which the client says who it is: it goes with each
	// handshake as Authorization: Bearer. Under juggler.1 it is asked for a new one
	// before the server's time for the old one is over, so that the connection stays.
	// An error counts as a connection that failed. Nil: no token.
	Token func(context.Context) (string, error)
	// TLS is for wss. Nil: the defaults of crypto/tls.
	TLS *tls.Config
	// DialContext opens the connection below. Nil: that of a net.Dialer. There is no
	// proxy.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// HandshakeTimeout is how long a connection and its handshake may take: 10 s.
	HandshakeTimeout time.Duration

	// CallTimeout is what calls have whose context has no deadline: 60 s.
	CallTimeout time.Duration
	// Ping is after how much silence the server is pinged: 30 s. It is left when it was
	// silent for half of that again.
	Ping time.Duration
	// WriteTimeout is how long the server may take to read what was sent: 30 s. Then it
	// is left.
	WriteTimeout time.Duration
	// ReadLimit is the most bytes of a message: 16 MiB. One that is longer ends the
	// connection.
	ReadLimit int64
	// QueueBytes is the most bytes of events that wait in one subscription: 1 MiB. The
	// oldest are dropped, all but the last.
	QueueBytes int

	// ReconnectMin and ReconnectMax bound the pause before a connection is made again:
	// 200 ms, and 30 s. It doubles with each attempt, and between half and all of it
	// is waited.
	ReconnectMin, ReconnectMax time.Duration
	// NoReconnect ends the client with its first connection.
	NoReconnect bool
	// Notify is told of each connection and of each that ended, in order, by one
	// goroutine, which waits for it. It must not call Close. Nil: nobody is told.
	Notify func(Status)
	// Unasked gets the events that no subscription gets: those of channels to which the
	// server has subscribed the connection by itself. They come in order, by the
	// goroutine that reads, which waits for it; it must not use the client. Nil: they
	// are dropped.
	Unasked func(Event)
	// Trace is told of each message, before anybody else; by several goroutines, which
	// wait for it. It must not use the client. Nil: nobody is told.
	Trace func(Message)
}

// Status is what has become of the connection.
type Status struct {
	// Connected is true when there is one.
	Connected bool
	// Err is why there is none: why it ended, or could not be made.
	Err error
	// Pause is how long it will be until the next attempt.
	Pause time.Duration
}

func orElse[T int | int64 | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

func (o Options) withDefaults() Options {
	orElse(&o.HandshakeTimeout, 10*time.Second)
	orElse(&o.CallTimeout, time.Minute)
	orElse(&o.Ping, 30*time.Second)
	orElse(&o.WriteTimeout, 30*time.Second)
	orElse(&o.ReadLimit, 16<<20)
	orElse(&o.QueueBytes, 1<<20)
	orElse(&o.ReconnectMin, 200*time.Millisecond)
	orElse(&o.ReconnectMax, 30*time.Second)
	if len(o.Protocols) == 0 {
		o.Protocols = []string{Juggler1, Juggler0}
	}
	if o.Notify == nil {
		o.Notify = func(Status) {}
	}
	return o
}
