package socket

import (
	"log/slog"
	"time"
)

// Options of a Server. Zero takes the value that is named, unless it says otherwise.
type Options struct {
	// Broker is required.
	Broker Broker
	// Database is a number at the broker: commands are for servers of the same alone.
	Database int

	// Methods takes calls of gRPC methods. Nil: all calls are the Broker's.
	Methods Methods

	// Origins are those of which a socket may come, compared letter by letter; "" is
	// a request without one. None: the host that the request names.
	Origins []string
	// Auth knows who comes with a token. Nil: nobody is asked for one, and may do all.
	Auth Auth
	// AuthCookie is the cookie that has the token of a page. It counts for pages of
	// Origins alone, never for those of the host if it is not one of them. Zero: none.
	AuthCookie string
	// AllowEmptySubprotocol accepts clients with which no subprotocol is agreed.
	AllowEmptySubprotocol bool
	// CloseURI ends the socket of who calls it, with 1000. Zero: no URI does.
	CloseURI string

	// ReadLimit is the most bytes of a message: 1 MiB. One that is longer ends its
	// socket with 1009.
	ReadLimit int64
	// WriteLimit is the most bytes of a reply. Zero: none. One that is longer ends
	// the socket.
	WriteLimit int64
	// ReadTimeout is how long a message may take to come in once it has begun: 30 s.
	ReadTimeout time.Duration
	// WriteTimeout is how long a client may take to read what was written: 30 s.
	WriteTimeout time.Duration
	// Ping is after how much silence a client is pinged: 30 s. It ends when it was
	// silent for half of that again.
	Ping time.Duration

	// MaxSockets: 100,000. What is above is refused with 503.
	MaxSockets int
	// HandshakesPerSecond: 1,000. What is above is refused with 503.
	HandshakesPerSecond int
	// MessagesPerSecond of a socket, and as many at once after a pause. What is above
	// is read later. Zero: any number.
	MessagesPerSecond int
	// MaxCalls is the most calls of a socket at a time: 1,000. What is above is refused.
	MaxCalls int
	// MaxSubscriptions of a socket: 1,000. What is above is refused.
	MaxSubscriptions int
	// MaxName is the most bytes of a URI or channel: 1,024. What is above is refused.
	MaxName int
	// QueueBytes is the most bytes of events that wait for one socket: 256 KiB. The
	// oldest are dropped.
	QueueBytes int
	// Log is told of origins that may not. Zero: nobody is.
	Log *slog.Logger
	// BufferTotal is the most memory of all that waits for all sockets, with as much as
	// lives for the garbage collector: 64 MiB.
	BufferTotal int64
}

func orElse[T int | int64 | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

func (o Options) withDefaults() Options {
	orElse(&o.ReadLimit, 1<<20)
	orElse(&o.ReadTimeout, 30*time.Second)
	orElse(&o.WriteTimeout, 30*time.Second)
	orElse(&o.Ping, 30*time.Second)
	orElse(&o.MaxSockets, 100_000)
	orElse(&o.HandshakesPerSecond, 1_000)
	orElse(&o.MaxCalls, 1_000)
	orElse(&o.MaxSubscriptions, 1_000)
	orElse(&o.MaxName, 1_024)
	orElse(&o.QueueBytes, 256<<10)
	orElse(&o.BufferTotal, 64<<20)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
