package socket

import (
	"log/slog"
	"time"
)

// Options of a Server. Zero takes the value that is named, unless it says otherwise. The tags
// are of flags of cabrank socket serve, for package config.
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
	AllowEmptySubprotocol bool `key:"allow-empty-subprotocol" default:"false" help:"serve callers that do not ask for juggler.0, too"`
	// CloseURI ends the socket of who calls it, with 1000. Zero: no URI does.
	CloseURI string `key:"close-uri" kind:"line" arg:"URI" default:"none" help:"URI that ends the socket of who calls it"`

	// ReadLimit is the most bytes of a message: 1 MiB. One that is longer ends its
	// socket with 1009.
	ReadLimit int64
	// WriteLimit is the most bytes of a reply. Zero: none. One that is longer ends
	// the socket.
	WriteLimit int64 `key:"write-limit" arg:"BYTES" default:"0" range:"0..1GiB" unit:"B" help:"most bytes of a reply; 0: any"`
	// ReadTimeout is how long a message may take to come in once it has begun: 30 s.
	ReadTimeout time.Duration `key:"read-timeout" arg:"TIME" default:"30s" range:"1ms..720h" help:"how long a message may take to come in"`
	// WriteTimeout is how long a client may take to read what was written: 30 s.
	WriteTimeout time.Duration `key:"write-timeout" arg:"TIME" default:"30s" range:"1ms..720h" help:"how long a caller may take to read what was sent"`
	// Ping is after how much silence a client is pinged: 30 s. It ends when it was
	// silent for half of that again.
	Ping time.Duration `key:"ping" arg:"TIME" default:"30s" range:"1ms..720h" help:"silence after which a caller is pinged; half as much again ends it"`

	// MaxSockets: 100,000. What is above is refused with 503.
	MaxSockets int `key:"max-sockets" arg:"N" default:"100000" range:"1..10000000" help:"most sockets"`
	// HandshakesPerSecond: 1,000. What is above is refused with 503.
	HandshakesPerSecond int `key:"max-handshakes" arg:"N" default:"1000" range:"1..10000000" help:"most new sockets in a second"`
	// MessagesPerSecond of a socket, and as many at once after a pause. What is above
	// is read later. Zero: any number.
	MessagesPerSecond int
	// MaxCalls is the most calls of a socket at a time: 1,000. What is above is refused.
	MaxCalls int `key:"max-calls" arg:"N" default:"1000" range:"1..1000000" help:"most calls of a socket at a time"`
	// MaxSubscriptions of a socket: 1,000. What is above is refused.
	MaxSubscriptions int `key:"max-subscriptions" arg:"N" default:"1000" range:"1..1000000" help:"most subscriptions of a socket"`
	// MaxName is the most bytes of a URI or channel: 1,024. What is above is refused.
	MaxName int `key:"max-name" arg:"BYTES" default:"1024" range:"1..1MiB" unit:"B" help:"most bytes of a URI or channel"`
	// QueueBytes is the most bytes of events that wait for one socket: 256 KiB. The
	// oldest are dropped.
	QueueBytes int `key:"queue-bytes" arg:"BYTES" default:"256KiB" range:"1..1GiB" unit:"B" help:"most bytes of events that wait for one socket; the oldest are dropped"`
	// Log is told of origins that may not. Zero: nobody is.
	Log *slog.Logger
	// BufferTotal is the most memory of all that waits for all sockets, with as much as
	// lives for the garbage collector: 64 MiB.
	BufferTotal int64 `key:"buffer-total" arg:"BYTES" default:"64MiB" range:"1..1024GiB" unit:"B" help:"bytes by which the process may grow for all that waits for sockets"`
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
