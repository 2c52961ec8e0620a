package socket

import (
	"errors"
	"sync"

	"github.com/cabrank/cabrank/internal/broker"
)

// hub has the subscriptions of all sockets: the broker is asked once for each topic.
//
// Concurrency: every method may be called from anywhere. done is called once, outside
// of all locks, maybe before subscribe has returned.
type hub struct {
	broker  Broker
	deliver func(members map[*session]struct{}, topic broker.Topic, e broker.Event)
	own     func(e broker.Event) // of other servers; nil: they are not heard. Set before there are sockets
	orders  string               // the channel of own

	// What a gap has done to the members of a topic; the caller holds mu.
	cut func(members map[*session]struct{})
	gap func(members map[*session]struct{}, topic broker.Topic)

	mu     sync.RWMutex
	topics map[broker.Topic]*topic
	away   bool // there is a gap
}

// errAway refuses subscriptions while there is a gap: events would be missed.
var errAway = errors.New("events do not come now")

// topic is one that somebody wants, or has wanted until now.
//
// The broker hears of it one step at a time: joining, joined, leaving. What is wanted
// meanwhile waits.
type topic struct {
	members map[*session]struct{}
	payer   *session // a member, or the last one that was: the topic counts as its
	state   topicState
	waiting []waiting
}

type topicState int

const (
	apart topicState = iota // the broker knows nothing of it
	joining
	joined
	leaving
)

// waiting is a socket that has subscribed and was not told yet.
type waiting struct {
	session *session
	done    func(error)
}

func newHub(b Broker, deliver func(map[*session]struct{}, broker.Topic, broker.Event)) *hub {
	h := &hub{broker: b, deliver: deliver, topics: map[broker.Topic]*topic{}}
	b.Listen(h.event)
	if lossy, ok := b.(Lossy); ok {
		lossy.OnGap(h.gapBegins, h.gapEnded)
	}
	return h
}

// gapBegins has nothing come but what is said at the end of the gap.
func (h *hub) gapBegins() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = true
	for _, t := range h.topics {
		if t.state == joined { // others are refused
			h.cut(t.members)
		}
	}
}

// gapEnded tells all members: they have missed what was before, and miss nothing from here.
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

// event passes an event on. Those of one topic come one after the other.
func (h *hub) event(name broker.Topic, e broker.Event) {
	if isOwn(e.Channel) { // and nobody else's, whatever pattern it matches
		if h.own != nil && name == (broker.Topic{Name: h.orders}) {
			h.own(e)
		}
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.topics[name]; t != nil && len(t.members) > 0 && !h.away {
		h.deliver(t.members, name, e)
	}
}

// subscribe is done when events come.
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
	t.waiting = append(t.waiting, waiting{s, done})
	step := h.nextStep(name, t)
	h.mu.Unlock()
	step()
}

// unsubscribe has no event come to s any more when it returns.
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

// paidBy has a topic count as another socket's; nil: as nobody's.
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

// leave takes a member out. What it has paid for goes to another one.
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

// expel is unsubscribe that the broker may call itself: that is asked later.
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

// nextStep returns what is to be asked of the broker, outside of mu, which the caller
// holds.
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

// hasJoined tells those who have waited. If the broker could not, they are not members.
func (h *hub) hasJoined(name broker.Topic, t *topic, err error) {
	h.mu.Lock()
	t.state = joined
	told := t.waiting
	t.waiting = nil
	switch {
	case err != nil:
		t.state = apart
		clear(t.members)
	case h.away: // it has, and hears nothing
		err = errAway
		clear(t.members)
	}
	step := h.nextStep(name, t)
	h.mu.Unlock()
	for _, w := range told {
		w.done(err)
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
