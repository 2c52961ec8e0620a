package broker

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// MemoryOptions bound a Memory. Zero is no bound.
type MemoryOptions struct {
	// CallCap is the most calls that wait for one URI.
	CallCap int
	// WaitingBytes is the most memory of all calls that wait, about. Those of one source
	// have three quarters of it at most.
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
	lines   map[string]*line // by URI
	waiting int64            // bytes

	waitingOf map[string]int64 // the same, by source

	// publishing is held while an event goes out: that is the order of events. It is
	// taken before mu, and not held while patterns are compared.
	publishing sync.Mutex
	events     func(Topic, Event)
	channels   map[string]bool
	patterns   map[string]uint64 // the number of each
	list       []pattern         // those that are, by their numbers, and some that were
	number     uint64
}

// turnOfPatterns is after how many patterns whoever has got an event may write it.
const turnOfPatterns = 64

// pattern is one that was subscribed to.
type pattern struct {
	glob   string
	number uint64 // of the subscription
}

// NewMemory returns a broker that nobody uses yet.
func NewMemory(options MemoryOptions) *Memory {
	return &Memory{
		options: options, lines: map[string]*line{}, waitingOf: map[string]int64{},
		channels: map[string]bool{}, patterns: map[string]uint64{},
	}
}

// Listen says where events go, once for each topic that matches. The function must
// not block and not call the broker.
func (m *Memory) Listen(events func(Topic, Event)) {
	m.publishing.Lock()
	defer m.publishing.Unlock()
	m.events = events
}

// Publish sends an event to whoever has subscribed; done is called once.
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

// since returns the patterns that have come since list was all of them. The caller holds
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

// delist takes a pattern out. Who has the list may go on with it. The caller holds
// publishing.
func (m *Memory) delist(glob string) {
	delete(m.patterns, glob)
	if len(m.list) > 2*len(m.patterns)+16 {
		m.list = slices.DeleteFunc(slices.Clone(m.list), func(p pattern) bool { return m.patterns[p.glob] != p.number })
	}
}

// Subscribe has events of a topic come; done is called once, when they do.
func (m *Memory) Subscribe(topic Topic, done func(error)) {
	done(m.change(topic, true))
}

// Unsubscribe is the opposite. Of a topic that is not subscribed it does nothing.
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

// Serve has a function answer calls of a URI, so many at once. Several functions may
// serve one URI. It ends with stop: what runs then runs on.
func (m *Memory) Serve(uri string, atOnce int, f Function) (stop func()) {
	return m.serve(uri, &server{function: f, free: atOnce})
}

// ServeStream is Serve for a function that may have several results.
func (m *Memory) ServeStream(uri string, atOnce int, f StreamFunction) (stop func()) {
	return m.serve(uri, &server{stream: f, free: atOnce})
}

func (m *Memory) serve(uri string, s *server) (stop func()) {
	m.mu.Lock()
	l := m.line(uri)
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

// Close refuses what comes. Calls that wait expire in their time.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// Waiting returns how many calls wait for a function, and their memory in bytes.
func (m *Memory) Waiting() (calls int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lines {
		calls += l.waiting.Len()
	}
	return calls, m.waiting
}
