package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// Event is what somebody has published.
type Event struct {
	// ID is that of the publisher's message: the same for all who get it.
	ID string
	// Channel is where it was published.
	Channel string
	// Pattern is what it came for, if that is a pattern.
	Pattern string
	// Args is what was published, as JSON.
	Args json.RawMessage
	// Dropped is how many events before this one the subscription had no room for.
	Dropped int64
	// Resumed says that the connection was lost before this event, or that of the server to
	// its broker: others may have been published meanwhile, and missed.
	Resumed bool
}

// revokedCode is that of a subscription that the server has ended: it is not allowed any
// more.
const revokedCode = 403

// cost is what an event counts in a queue, in bytes.
func (e *Event) cost() int { return 160 + len(e.Channel) + len(e.Args) }

// topic is a channel, or a pattern as Redis has them.
type topic struct {
	name    string
	pattern bool
}

// topicOf is that of an event: of the pattern, if it came for one.
func topicOf(channel, pattern string) topic {
	if pattern != "" {
		return topic{pattern, true}
	}
	return topic{channel, false}
}

// Subscription is the events of one channel or pattern.
//
// Life: Subscribe, then Next or All until Close, or until the client has ended.
// Concurrency: all methods may be called from anywhere; each event goes to one of those
// who wait in Next.
type Subscription struct {
	client *Client
	topic  topic

	ready chan struct{} // there may be something to take; holds one

	mu      sync.Mutex
	queue   []Event
	bytes   int
	resumed bool  // events may have been missed since the last one
	over    error // no further event will come
}

// Subscribe subscribes to a channel, and returns when the server has acknowledged it:
// what is published from then on will come.
//
// Errors: as Client.Publish.
func (c *Client) Subscribe(ctx context.Context, channel string) (*Subscription, error) {
	return c.subscribe(ctx, topic{channel, false})
}

// SubscribePattern subscribes to all channels whose name a pattern matches: a glob with
// *, ?, [abc] and \ as Redis has them.
//
// Errors: as Client.Publish.
func (c *Client) SubscribePattern(ctx context.Context, pattern string) (*Subscription, error) {
	return c.subscribe(ctx, topic{pattern, true})
}

func (c *Client) subscribe(ctx context.Context, t topic) (*Subscription, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	began := time.Now()
	r := t.request(kindSub)
	l, err := c.ready(ctx, r, began)
	if err != nil {
		return nil, err
	}
	s := &Subscription{client: c, topic: t, ready: make(chan struct{}, 1)}
	// On the list before it is sent, so that no event is missed; and sent in the same
	// step, so that the server hears of SUB and UNSB in the order of the list.
	c.mu.Lock()
	if c.over != nil {
		c.mu.Unlock()
		return nil, c.over
	}
	c.topics[t] = append(c.topics[t], s)
	w := l.push(r)
	c.mu.Unlock()
	if _, err := l.await(ctx, w, began); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (t topic) request(k kind) request { return request{kind: k, name: t.name, pattern: t.pattern} }

// deliver gives an event to all who have subscribed to it.
func (c *Client) deliver(e Event) {
	c.mu.Lock()
	all := c.topics[topicOf(e.Channel, e.Pattern)]
	c.mu.Unlock()
	if len(all) == 0 && c.options.Unasked != nil {
		c.options.Unasked(e)
	}
	for _, s := range all { // a list that was published is never changed
		s.push(e)
	}
}

// missed notes that the server has missed events.
func (c *Client) missed(t topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.topics[t] {
		s.interrupted()
	}
}

// revoke ends subscriptions that the server has ended.
func (c *Client) revoke(t topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.topics[t] {
		s.end(&RefusedError{Request: kindSub.request(), Name: t.name, Code: revokedCode, Message: "the server has ended the subscription"})
	}
	delete(c.topics, t)
}

// Close ends the subscription. Events that wait can still be taken. The server hears of
// it if nobody else of the client has subscribed to the same.
func (s *Subscription) Close() { s.close() }

// Unsubscribe is Close, and returns when the server has acknowledged it, if it had to
// hear of it.
//
// Errors: as Client.Publish, but for ErrClosed. The subscription has ended in any case.
func (s *Subscription) Unsubscribe(ctx context.Context) error {
	ctx, cancel := s.client.bound(ctx)
	defer cancel()
	l, w := s.close()
	if w == nil {
		return nil
	}
	_, err := l.await(ctx, w, time.Now())
	return err
}

// close returns the request that has gone out, if one has.
func (s *Subscription) close() (*link, *waiting) {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	s.end(ErrClosed)
	all := c.topics[s.topic]
	i := slices.Index(all, s)
	if i < 0 {
		return nil, nil
	}
	if len(all) > 1 {
		c.topics[s.topic] = slices.Delete(slices.Clone(all), i, i+1)
		return nil, nil
	}
	delete(c.topics, s.topic)
	if c.link == nil {
		return nil, nil
	}
	return c.link, c.link.push(s.topic.request(kindUnsb))
}

// end lets no further event come.
func (s *Subscription) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.over = why
	}
	s.signal()
}

// interrupted says that events may be missed from here on.
func (s *Subscription) interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = true
}

// push queues an event, in the place of the oldest ones if need be.
func (s *Subscription) push(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return
	}
	e.Resumed, s.resumed = s.resumed, false
	s.queue = append(s.queue, e)
	s.bytes += e.cost()
	for s.bytes > s.client.options.QueueBytes && len(s.queue) > 1 {
		s.dropOldest()
	}
	s.signal()
}

// dropOldest hands on what the oldest event says of those before it.
func (s *Subscription) dropOldest() {
	old := s.pop()
	s.client.counts.dropped.Add(1)
	next := &s.queue[0]
	next.Dropped += old.Dropped + 1
	next.Resumed = next.Resumed || old.Resumed
}

func (s *Subscription) pop() Event {
	e := s.queue[0]
	s.queue[0] = Event{} // what it holds is not kept
	s.queue = s.queue[1:]
	s.bytes -= e.cost()
	return e
}

func (s *Subscription) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Next returns the next event, once there is one.
//
// Errors: that of ctx; and, when all that waited was taken, ErrClosed after Close, why
// the client has ended, or a RefusedError if the server has ended the subscription, or
// does not allow it any more when it is made again.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		s.mu.Lock()
		if len(s.queue) > 0 {
			e := s.pop()
			if len(s.queue) > 0 {
				s.signal() // for another one who waits
			}
			s.mu.Unlock()
			return e, nil
		}
		over := s.over
		if over != nil {
			s.signal()
		}
		s.mu.Unlock()
		if over != nil {
			return Event{}, over
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// All returns the events as they come. It ends after Close, or with an error of Next.
func (s *Subscription) All(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := s.Next(ctx)
			if errors.Is(err, ErrClosed) {
				return // who has closed it wants no more
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Values returns what was published, each event read into a T. It ends as All does; what
// is no T is an error, behind which the next event comes.
func Values[T any](ctx context.Context, s *Subscription) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range s.All(ctx) {
			var value T
			if err == nil {
				if err = json.Unmarshal(e.Args, &value); err != nil {
					err = fmt.Errorf("event of %s: %w", e.Channel, err)
				}
			}
			if !yield(value, err) {
				return
			}
		}
	}
}
