package service

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/methods"
	"github.com/cabrank/cabrank/internal/socket"
)

const (
	// waitingBytes is the most memory of calls that wait for a function of this process,
	// where socket serve says nothing else.
	waitingBytes = 64 << 20
	// functionsAtOnce is how many calls of one test function run at a time.
	functionsAtOnce = 64
	// brokerTime is how long the broker may take to subscribe to commands.
	brokerTime = 5 * time.Second
	// mostAway is how long a Redis may be away before sockets are better elsewhere: a
	// failover is over by then.
	mostAway = 10 * time.Second
)

// joiner is a broker that ends.
type joiner interface {
	socket.Broker

	// Waiting returns the calls that have not been answered, as far as this process
	// has them, and their memory.
	Waiting() (calls int, bytes int64)
	// Close ends it, behind the sockets.
	Close()
}

// sockets are callers over WebSocket.
//
// Life: openSockets, requests, Drain, close.
type sockets struct {
	*socket.Server

	broker joiner
}

// socketsAlone reports whether no endpoint serves calls, and none will.
func (s *service) socketsAlone() bool { return socketsAlone(s.cfg) }

func socketsAlone(cfg *config.Config) bool { return len(cfg.Command) == 0 && len(cfg.Upstreams) == 0 }

// openSockets connects to the Redis, if there is one, and takes callers over WebSocket from
// then on, if they have a path.
func (s *service) openSockets() error {
	keys, options := s.cfg.Socket, s.cfg.Socket.Serve.Options
	if len(keys.Paths) == 0 {
		return nil
	}
	if len(keys.Methods) > 0 {
		options.Methods = methods.New(methods.Options{Relay: s.relay, Schema: s.schema, Patterns: keys.Methods})
	}
	joins, err := s.openBroker()
	if err != nil {
		return err
	}
	if r, ok := joins.(*redis.Broker); ok {
		options.Database = r.Database()
	}
	if s.verifier != nil {
		options.Auth = s.verifier
	}
	options.AuthCookie, options.MessagesPerSecond, options.ReadLimit = s.cfg.Auth.Cookie, keys.MessageRate, keys.ReadLimit
	options.Broker, options.Origins, options.Log = joins, originsOf(keys.Origins), s.log
	open := &sockets{socket.New(options), joins}
	if err := s.takePush(open.Server); err != nil {
		open.close()
		return err
	}
	s.sockets = open
	return nil
}

func (s *service) openBroker() (joiner, error) {
	keys := s.cfg.Socket
	if calls, events := keys.RedisAddresses(); calls != "" {
		return redis.Open(redis.Options{Address: calls, Events: events, CallCap: keys.CallCap, Log: s.log})
	}
	memory := broker.NewMemory(broker.MemoryOptions{CallCap: keys.CallCap, WaitingBytes: cmp.Or(keys.Serve.WaitingTotal, waitingBytes)})
	if keys.Serve.TestFunctions {
		for uri, f := range broker.TestFunctions() {
			memory.Serve(uri, functionsAtOnce, f) // for as long as the process lives
		}
		for uri, f := range broker.TestStreams() {
			memory.ServeStream(uri, functionsAtOnce, f)
		}
	}
	return memory, nil
}

// pushes reports whether the application speaks to sockets.
func (s *service) pushes() bool { return s.sockets != nil && s.cfg.Socket.Push.On }

// takePush reads the token of the application and has sockets take its commands, if it may
// give any.
//
// Errors: one line with the key of the configuration, without the token.
func (s *service) takePush(to *socket.Server) (err error) {
	if !s.cfg.Socket.Push.On {
		return nil
	}
	if s.pushToken, err = pushToken(s.cfg.Socket.PushToken); err != nil {
		return fmt.Errorf("socket.push_token: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), brokerTime)
	defer cancel()
	if err := to.TakeCommands(ctx); err != nil {
		return fmt.Errorf("socket.push: %w", err)
	}
	return nil
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

// routes are the paths of the port that have a handler for callers over HTTP/1.
func (s *service) routes() map[string]http.Handler {
	routes := make(map[string]http.Handler)
	if s.sockets != nil {
		for _, path := range s.cfg.Socket.Paths {
			routes[path] = s.sockets
		}
	}
	return routes
}

func (s *sockets) sample() admin.SocketSample {
	sample := admin.SocketSample{Stats: s.Stats()}
	sample.WaitingCalls, sample.WaitingBytes = s.broker.Waiting()
	if r, ok := s.broker.(*redis.Broker); ok {
		stats := r.Stats()
		sample.Broker = &admin.BrokerSample{Up: stats.Away.IsZero(), Ended: stats.Ended, Lost: stats.Lost, Unknown: stats.Unknown}
	}
	return sample
}

// serves reports whether sockets may come here: Redis can be reached, or could until a
// moment ago.
func (s *sockets) serves() bool {
	r, ok := s.broker.(*redis.Broker)
	if !ok {
		return true
	}
	away := r.Stats().Away
	return away.IsZero() || time.Since(away) < mostAway
}

// drainSockets has them leave in the time, or until ctx ends, and returns how many calls
// were cut.
func (s *service) drainSockets(ctx context.Context, timeout time.Duration) (cut int) {
	if s.sockets == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.sockets.Drain(ctx)
}

// close ends what is left.
func (s *sockets) close() {
	s.Close()
	s.broker.Close()
}
