package service

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/auth"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/socket"
)

// functionsAtOnce is how many calls of one test function run at a time.
const functionsAtOnce = 64

// SocketOptions are the settings of sockets.
type SocketOptions struct {
	config.Socket

	// Beyond are bounds that are no keys, of which a zero stands for the usual one; what
	// the keys say is put in.
	Beyond socket.Options
	// WaitingBytes is the most memory of calls that wait for a function of this
	// process: 64 MiB if zero.
	WaitingBytes int64
	// TestFunctions has functions to try, if there is no Redis.
	TestFunctions bool
	// Verifier knows who comes with a token; nil: nobody is asked. Cookie is that of a page
	// which has one.
	Verifier *auth.Verifier
	Cookie   string
	Log      *slog.Logger
}

// joiner is a broker that ends.
type joiner interface {
	socket.Broker

	// Waiting returns the calls that have not been answered, as far as this process
	// has them, and their memory.
	Waiting() (calls int, bytes int64)
	// Close ends it, behind the sockets.
	Close()
}

// Sockets are callers over WebSocket. It is an http.Handler.
//
// Life: OpenSockets, requests, Drain, Close.
// Concurrency: every method may be called from anywhere.
type Sockets struct {
	paths  []string
	broker joiner
	server *socket.Server
	pushed bool   // commands are taken
	token  string // of who gives them; "": none is needed
}

// OpenSockets connects to the Redis, if there is one, and takes sockets from then on.
func OpenSockets(o SocketOptions) (*Sockets, error) {
	options := o.Beyond
	if o.Verifier != nil {
		options.Auth = o.Verifier
	}
	joins, err := openBroker(o)
	if err != nil {
		return nil, err
	}
	if r, ok := joins.(*redis.Broker); ok {
		options.Database = r.Database()
	}
	options.AuthCookie, options.MessagesPerSecond = o.Cookie, o.MessageRate
	options.Log = o.Log
	options.Broker, options.Origins = joins, originsOf(o.Origins)
	options.ReadLimit = int64(o.ReadLimit)
	s := &Sockets{paths: o.Paths, broker: joins, server: socket.New(options)}
	if err := s.openPush(o.Socket); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func openBroker(o SocketOptions) (joiner, error) {
	if o.Redis.Calls != "" {
		return redis.Open(redis.Options{Address: o.Redis.Calls, Events: o.Redis.Events, CallCap: o.CallCap, Log: o.Log})
	}
	waiting := o.WaitingBytes
	if waiting == 0 {
		waiting = 64 << 20
	}
	memory := broker.NewMemory(broker.MemoryOptions{CallCap: o.CallCap, WaitingBytes: waiting})
	if o.TestFunctions {
		for uri, f := range broker.TestFunctions() {
			memory.Serve(uri, functionsAtOnce, f) // for as long as the process lives
		}
		for uri, f := range broker.TestStreams() {
			memory.ServeStream(uri, functionsAtOnce, f)
		}
	}
	return memory, nil
}

// originsOf are the origins as requests have them: who has none sends "".
func originsOf(configured []string) (origins []string) {
	for _, origin := range configured {
		if origin == "none" {
			origin = ""
		}
		origins = append(origins, origin)
	}
	return origins
}

// Has reports whether a path is one of sockets.
func (s *Sockets) Has(path string) bool { return slices.Contains(s.paths, path) }

// ServeHTTP makes a socket of a request; on a path that has none it is not found.
func (s *Sockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.Has(r.URL.Path) {
		http.NotFound(w, r)
		return
	}
	s.server.ServeHTTP(w, r)
}

// Configure has what can change hold for sockets that come.
func (s *Sockets) Configure(c config.Socket) { s.server.SetOrigins(originsOf(c.Origins)) }

// SetMost bounds how many sockets there may be.
func (s *Sockets) SetMost(sockets int) { s.server.SetMost(sockets) }

// SetBuffer bounds the bytes that wait for all sockets.
func (s *Sockets) SetBuffer(bytes int64) { s.server.SetBuffer(bytes) }

// Sample is what the metrics page shows.
func (s *Sockets) Sample() admin.SocketSample {
	sample := admin.SocketSample{Stats: s.server.Stats()}
	sample.WaitingCalls, sample.WaitingBytes = s.broker.Waiting()
	if r, ok := s.broker.(*redis.Broker); ok {
		stats := r.Stats()
		sample.Broker = &admin.BrokerSample{Up: stats.Away.IsZero(), Ended: stats.Ended, Lost: stats.Lost, Unknown: stats.Unknown}
	}
	return sample
}

// mostAway is how long a Redis may be away before sockets are better elsewhere: a failover
// is over by then.
const mostAway = 10 * time.Second

// Serves reports whether sockets may come here: Redis can be reached, or could until a
// moment ago.
func (s *Sockets) Serves() bool {
	r, ok := s.broker.(*redis.Broker)
	if !ok {
		return true
	}
	away := r.Stats().Away
	return away.IsZero() || time.Since(away) < mostAway
}

// Drain has sockets leave in the time that ctx has (socket.Server.Drain), and returns
// how many calls were cut.
func (s *Sockets) Drain(ctx context.Context) (cut int) { return s.server.Drain(ctx) }

// Close ends what is left.
func (s *Sockets) Close() {
	s.server.Close()
	s.broker.Close()
}
