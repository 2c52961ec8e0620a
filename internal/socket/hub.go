package socket

import (
	"errors"
	"sync"

	"github.com/cabrank/cabrank/internal/broker"
)

// hub keeps the subscriptions of all sockets: the broker is asked once for each topic.
//
// Concurrency: every method may be called from anywhere. done is called once, outside
// of all locks, maybe before subscribe has returned.
type hub struct {
	broker         Broker
	deliver        func(members map[*session]struct{}, topic broker.Topic, e broker.Event)
	command        func(e broker.Event) // called for commands of servers, its own too; nil: not taken. Set before the first socket
	commandChannel string               // the channel of command

	// Called for the members of each topic at the begin and the end of a gap; the caller
	// holds mu.
	cut func(members map[*session]struct{})
	gap func(members map[*session]struct{}, topic broker.Topic)

	mu     sync.RWMutex
	topics map[broker.Topic]*topic
	away   bool // in a gap
}

// errAway refuses subscriptions in a gap: events would be missed.
var errAway = errors.New("events do not come now")

// topic is a topic with members, or one whose last member has just left.
//
// The broker is asked for one step at a time: joining, joined, leaving. Changes meanwhile
// wait.
type topic struct {
	members map[*session]struct{}
	payer   *session // the member, or last member, whose account pays for the topic
	state   topicState
	waiting []func(error) // the done of subscribes without an answer
}

type topicState int

const (
	apart topicState = iota // the broker is not subscribed
	joining
	joined
	leaving
)

func newHub(b Broker, deliver func(map[*session]struct{}, broker.Topic, broker.Event)) *hub {
	h := &hub{broker: b, deliver: deliver, topics: map[broker.Topic]*topic{}}
	b.Listen(h.event)
	if lossy, ok := b.(Lossy); ok {
		lossy.OnGap(h.gapBegins, h.gapEnded)
	}
	return h
}

// gapBegins stops all events until the end of the gap.
func (h *hub) gapBegins() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = true
	for _, t := range h.topics {
		if t.state == joined { // the others will be refused
			h.cut(t.members)
		}
	}
}

// gapEnded tells all members that they may have missed events before, and miss none from
// here on.
func (h *hub) gapEnded() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = false
	for name, t := range h.topics {
		if t.state == joined {
			h.gap(t.members, name)
		}
	}
}

// event passes an event on. Events of one topic come one after the other.
func (h *hub) event(name broker.Topic, e broker.Event) {
	if isReserved(e.Channel) { // sockets never get it, whatever pattern it matches
		if h.command != nil && name == (broker.Topic{Name: h.commandChannel}) {
			h.command(e)
		}
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.topics[name]; t != nil && len(t.members) > 0 && !h.away {
		h.deliver(t.members, name, e)
	}
}

// subscribe adds s to the members of a topic. It is done when events come.
func (h *hub) subscribe(name broker.Topic, s *session, done func(error)) {
	h.mu.Lock()
	if h.away {
		h.mu.Unlock()
		done(errAway)
		return
	}
	t := h.topics[name]
	if t == nil {
		t = &topic{members: map[*session]struct{}{}}
		h.topics[name] = t
	}
	if len(t.members) == 0 {
		t.paidBy(s, name)
	}
	t.members[s] = struct{}{}
	if t.state == joined {
		h.mu.Unlock()
		done(nil)
		return
	}
	t.waiting = append(t.waiting, done)
	step := h.nextStep(name, t)
	h.mu.Unlock()
	step()
}

// unsubscribe takes s out of the members. After it returns s gets no more events.
func (h *hub) unsubscribe(name broker.Topic, s *session) {
	h.mu.Lock()
	t := h.topics[name]
	if t == nil {
		h.mu.Unlock()
		return
	}
	t.leave(s, name)
	step := h.nextStep(name, t)
	h.mu.Unlock()
	step()
}

// paidBy makes another socket pay for a topic; nil: none.
func (t *topic) paidBy(payer *session, name broker.Topic) {
	bytes, work := topicBytes+len(name.Name), workOf(name)
	if t.payer != nil {
		t.payer.account.holdNames(-bytes)
		t.payer.compare.Give(work)
	}
	if t.payer = payer; payer != nil {
		payer.account.holdNames(bytes)
		payer.compare.force(work)
	}
}

// leave takes a member out. If it has paid for the topic another one does.
func (t *topic) leave(s *session, name broker.Topic) {
	delete(t.members, s)
	if t.payer != s {
		return
	}
	for other := range t.members {
		t.paidBy(other, name)
		return
	}
}

// has reports whether s has subscribed, or waits for it.
func (h *hub) has(name broker.Topic, s *session) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	t := h.topics[name]
	if t == nil {
		return false
	}
	_, is := t.members[s]
	return is
}

// expel is unsubscribe for calls from the broker: the broker is asked later.
func (h *hub) expel(name broker.Topic, s *session) (was bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[name]
	if t == nil {
		return false
	}
	_, was = t.members[s]
	t.leave(s, name)
	go h.nextStep(name, t)() // ends with the broker's answer
	return was
}

// nextStep returns the next request to the broker, to be called without mu. The caller
// holds mu.
func (h *hub) nextStep(name broker.Topic, t *topic) (step func()) {
	wanted := len(t.members) > 0
	switch {
	case wanted && t.state == apart:
		t.state = joining
		return func() { h.broker.Subscribe(name, func(err error) { h.hasJoined(name, t, err) }) }
	case !wanted && t.state == joined:
		t.state = leaving
		return func() { h.broker.Unsubscribe(name, func(error) { h.hasLeft(name, t) }) }
	case !wanted && t.state == apart:
		delete(h.topics, name)
		t.paidBy(nil, name)
	}
	return func() {}
}

// hasJoined tells the waiting sockets. If the broker could not subscribe they are not
// members.
func (h *hub) hasJoined(name broker.Topic, t *topic, err error) {
	h.mu.Lock()
	t.state = joined
	told := t.waiting
	t.waiting = nil
	switch {
	case err != nil:
		t.state = apart
		clear(t.members)
	case h.away: // subscribed, but events do not come
		err = errAway
		clear(t.members)
	}
	step := h.nextStep(name, t)
	h.mu.Unlock()
	for _, done := range told {
		done(err)
	}
	step()
}

// hasLeft forgets the topic, or joins again. A broker that could not unsubscribe has
// ended.
func (h *hub) hasLeft(name broker.Topic, t *topic) {
	h.mu.Lock()
	t.state = apart
	step := h.nextStep(name, t)
	h.mu.Unlock()
	step()
}

// size returns how many topics are subscribed.
func (h *hub) size() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.topics)
}
