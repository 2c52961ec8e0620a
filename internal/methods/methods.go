package methods

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/schema"
)

// Door is the name of callers over sockets in the relay's metrics.
const Door = "socket"

// Options of Methods. All are required.
type Options struct {
	Relay *relay.Relay
	// Schema has the methods of the services of Patterns.
	Schema *schema.Schema
	// Patterns name what may be called: "/pkg.Service/Method", or "/pkg.Service/*".
	Patterns []string
}

// Methods answers calls whose URI is a gRPC method.
//
// Life: New; Call any number of times for a socket, then Left.
// Concurrency: every method may be called from anywhere; of one socket Call and Left not
// at the same time.
type Methods struct {
	options  Options
	patterns map[string]bool
	crew     crew

	spaces sync.Pool // of *[]byte, for requests

	mu      sync.Mutex
	callers map[string]*caller // by broker.Caller.ID
}

// caller is one socket.
type caller struct {
	local *relay.Local
	known *broker.Caller // for whom local was made
}

// New returns methods of a relay's workers.
func New(options Options) *Methods {
	m := &Methods{
		options: options, patterns: map[string]bool{}, crew: newCrew(), callers: map[string]*caller{},
	}
	for _, pattern := range options.Patterns {
		m.patterns[strings.TrimSuffix(pattern, "*")] = true
	}
	return m
}

// Takes reports whether calls of a URI are for workers. All others are the broker's.
func (m *Methods) Takes(uri string) bool {
	if !strings.HasPrefix(uri, "/") {
		return false
	}
	return m.patterns[uri] || m.patterns[uri[:strings.LastIndexByte(uri, '/')+1]]
}

// Services returns the services that patterns name.
func Services(patterns []string) (names []string) {
	seen := map[string]bool{}
	for _, pattern := range patterns {
		name, _, _ := strings.Cut(strings.TrimPrefix(pattern, "/"), "/")
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// Call has a worker answer. The call ends when ctx does.
func (m *Methods) Call(ctx context.Context, c broker.Call) {
	m.crew.serve(&call{Call: c, methods: m, from: m.callerOf(c.Caller), ctx: ctx, until: time.Now().Add(c.Timeout)})
}

func (m *Methods) callerOf(who *broker.Caller) *caller {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := m.callers[who.ID]
	if from == nil {
		from = &caller{local: m.options.Relay.ServeLocal(told(who)), known: who}
		m.callers[who.ID] = from
	}
	return from
}

// told returns a socket in the relay's words.
func told(who *broker.Caller) callers.Caller {
	return callers.Caller{Address: who.Address, Identity: callers.TokenIdentity(who.User), Certificate: who.Certificate, Door: Door}
}

// Left ends the calls of a socket that has ended.
func (m *Methods) Left(who *broker.Caller) {
	m.mu.Lock()
	from := m.callers[who.ID]
	delete(m.callers, who.ID)
	m.mu.Unlock()
	if from != nil {
		from.local.Close()
	}
}

// refused is why a call was not taken.
func refused(status int, why string) error { return &broker.CodeError{Code: status, Text: why} }
