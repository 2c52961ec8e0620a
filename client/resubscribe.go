package client

import (
	"context"
	"errors"
	"time"
)

// isFinal reports whether another attempt will not be better. A server whose Redis is
// away refuses with 500 or 503, one that is asked too much with 429.
func isFinal(err error) bool {
	no, isRefusal := errors.AsType[*RefusedError](err)
	return isRefusal && no.Code < 500 && no.Code != 429
}

// resubscribe makes all subscriptions on a new connection. By mu.
func (c *Client) resubscribe(l *link) {
	if len(c.topics) == 0 {
		return
	}
	asked := map[topic]*waiting{}
	for t := range c.topics {
		asked[t] = l.push(t.request(kindSub))
	}
	l.aside.Go(func() { c.settle(l, asked) }) // ends with the link, which waits for it
}

// settle waits until all subscriptions are confirmed, and asks again for those that were
// refused for a while.
func (c *Client) settle(l *link, asked map[topic]*waiting) {
	for attempt := 0; len(asked) > 0; attempt++ {
		refused := map[topic]error{}
		for t, w := range asked {
			_, err := l.await(context.Background(), w, time.Time{}) // it ends with the link
			if err != nil {
				refused[t] = err
			}
		}
		if !l.pause(c.options.pause(attempt), len(refused)) {
			return
		}
		clear(asked)
		c.mu.Lock()
		for t, err := range refused {
			switch {
			case c.topics[t] == nil: // nobody wants it any more
			case isFinal(err):
				for _, s := range c.topics[t] {
					s.end(err)
				}
				delete(c.topics, t)
			default:
				asked[t] = l.push(t.request(kindSub))
			}
		}
		c.mu.Unlock()
	}
}

// pause waits before what was refused is asked for again; it does not wait for nothing.
// It reports false when the connection has ended.
func (l *link) pause(d time.Duration, refused int) bool {
	if refused == 0 {
		d = 0
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.done:
		return false
	}
}
