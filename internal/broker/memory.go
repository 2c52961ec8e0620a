package broker

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// MemoryOptions bound a Memory. Zero is no bound.
type MemoryOptions struct {
	// CallCap is how many calls may wait for one URI.
	CallCap int
	// WaitingBytes is how much memory all waiting calls may take, about. Calls of one
	// source may take three quarters of it.
	WaitingBytes int64
}

// Memory is a broker in one process.
//
// Life: NewMemory, Listen at most once, then anything, Close.
// Concurrency: every method may be called from anywhere.
type Memory struct {
	options MemoryOptions

	mu      sync.Mutex
	closed  bool
	queues  map[string]*uriQueue // by URI
	waiting int64                // bytes

	waitingOf map[string]int64 // the same, by source

	// publishing is held while an event goes out, which keeps events in order. It is
	// taken before mu, and not held while patterns are compared.
	publishing sync.Mutex
	events     func(Topic, Event)
	channels   map[string]bool
	patterns   map[string]uint64 // numbers of subscribed patterns
	list       []pattern         // by number: all subscribed patterns and some former ones
	number     uint64
}

// turnOfPatterns is after how many patterns Publish yields to subscribers with the event.
const turnOfPatterns = 64

// pattern is a pattern that was subscribed to.
type pattern struct {
	glob   string
	number uint64 // of the subscription
}

// NewMemory returns a broker without calls and subscriptions.
func NewMemory(options MemoryOptions) *Memory {
	return &Memory{
		options: options, queues: map[string]*uriQueue{}, waitingOf: map[string]int64{},
		channels: map[string]bool{}, patterns: map[string]uint64{},
	}
}

// Listen sets the function for events. It is called once for each matching topic, and
// must not block nor call the broker.
func (m *Memory) Listen(events func(Topic, Event)) {
	m.publishing.Lock()
	defer m.publishing.Unlock()
	m.events = events
}

// Publish sends an event to all subscribers; done is called once.
func (m *Memory) Publish(e Event, done func(error)) {
	done(m.publish(e))
}

func (m *Memory) publish(e Event) error {
	m.publishing.Lock()
	list := m.list
	m.publishing.Unlock()
	found := matching(list, e.Channel)
	m.publishing.Lock()
	defer m.publishing.Unlock()
	if m.isClosed() {
		return ErrClosed
	}
	if m.events == nil {
		return nil
	}
	if m.channels[e.Channel] {
		m.events(Topic{Name: e.Channel}, e)
	}
	for i, p := range append(found, matching(m.since(list), e.Channel)...) {
		if i%turnOfPatterns == 0 && i+turnOfPatterns < len(found) {
			runtime.Gosched()
		}
		if m.patterns[p.glob] == p.number {
			m.events(Topic{Name: p.glob, Pattern: true}, e)
		}
	}
	return nil
}

func matching(list []pattern, channel string) (found []pattern) {
	for _, p := range list {
		if Matches(p.glob, channel) {
			found = append(found, p)
		}
	}
	return found
}

// since returns the patterns that were subscribed after list was read. The caller holds
// publishing.
func (m *Memory) since(list []pattern) []pattern {
	last := uint64(0)
	if len(list) > 0 {
		last = list[len(list)-1].number
	}
	from := len(m.list)
	for from > 0 && m.list[from-1].number > last {
		from--
	}
	return m.list[from:]
}

// enlist adds a pattern. The caller holds publishing.
func (m *Memory) enlist(glob string) {
	if m.patterns[glob] == 0 {
		m.number++
		m.patterns[glob] = m.number
		m.list = append(m.list, pattern{glob, m.number})
	}
}

// delist takes a pattern out. A goroutine that has read the list may go on with it. The
// caller holds publishing.
func (m *Memory) delist(glob string) {
	delete(m.patterns, glob)
	if len(m.list) > 2*len(m.patterns)+16 {
		m.list = slices.DeleteFunc(slices.Clone(m.list), func(p pattern) bool { return m.patterns[p.glob] != p.number })
	}
}

// Subscribe subscribes to a topic; done is called once, when its events come.
func (m *Memory) Subscribe(topic Topic, done func(error)) {
	done(m.change(topic, true))
}

// Unsubscribe is the opposite. For a topic that is not subscribed it does nothing.
func (m *Memory) Unsubscribe(topic Topic, done func(error)) {
	done(m.change(topic, false))
}

func (m *Memory) change(topic Topic, wanted bool) error {
	m.publishing.Lock()
	defer m.publishing.Unlock()
	if m.isClosed() {
		return ErrClosed
	}
	switch {
	case topic.Pattern && wanted:
		m.enlist(topic.Name)
	case topic.Pattern:
		m.delist(topic.Name)
	case wanted:
		m.channels[topic.Name] = true
	default:
		delete(m.channels, topic.Name)
	}
	return nil
}

func (m *Memory) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// Call asks for a function. The call ends when ctx does.
func (m *Memory) Call(ctx context.Context, call Call) {
	w := &waiter{memory: m, ctx: ctx, call: call}
	if err := m.enqueue(w); err != nil {
		call.Accepted(err)
		return
	}
	call.Accepted(nil)
	w.watch()
	m.dispatch(call.URI)
}

// Serve makes a function answer calls of a URI, at most atOnce at a time. Several
// functions may serve one URI. It ends with stop; running calls go on.
func (m *Memory) Serve(uri string, atOnce int, f Function) (stop func()) {
	return m.serve(uri, &server{function: f, free: atOnce})
}

// ServeStream is Serve for a function that may have several results.
func (m *Memory) ServeStream(uri string, atOnce int, f StreamFunction) (stop func()) {
	return m.serve(uri, &server{stream: f, free: atOnce})
}

func (m *Memory) serve(uri string, s *server) (stop func()) {
	m.mu.Lock()
	l := m.queueOf(uri)
	l.servers = append(l.servers, s)
	m.mu.Unlock()
	m.dispatch(uri)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		l.leave(s)
		m.forget(uri, l)
	}
}

// Close refuses new requests. Waiting calls expire in their time.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// Waiting returns how many calls wait for a function, and their memory in bytes.
func (m *Memory) Waiting() (calls int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.queues {
		calls += l.waiting.Len()
	}
	return calls, m.waiting
}
