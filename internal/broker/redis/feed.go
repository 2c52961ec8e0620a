package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
)

// errLost refuses subscriptions while there is no connection.
var errLost = errors.New("no connection to redis")

// feed is the connection with all subscriptions.
type feed struct {
	broker *Broker
	first  link // for run

	away atomic.Int64 // since when there is no connection, in ns since 1970; 0: there is one

	mu     sync.Mutex
	conn   rueidis.DedicatedClient // nil: there is none
	topics map[broker.Topic]bool

	events struct {
		sync.RWMutex

		to            func(broker.Topic, broker.Event)
		begins, ended func() // of a gap
	}
}

func newFeed(b *Broker) *feed { return &feed{broker: b, topics: map[broker.Topic]bool{}} }

func (f *feed) listen(events func(broker.Topic, broker.Event)) {
	f.events.Lock()
	defer f.events.Unlock()
	f.events.to = events
}

func (f *feed) onGap(begins, ended func()) {
	f.events.Lock()
	defer f.events.Unlock()
	f.events.begins, f.events.ended = begins, ended
}

// tellGap tells that a gap begins, or has ended.
func (f *feed) tellGap(ended bool) {
	f.events.RLock()
	tell := f.events.begins
	if ended {
		tell = f.events.ended
	}
	f.events.RUnlock()
	if tell != nil {
		tell()
	}
}

// link is a connection, until it is broken.
type link struct {
	node    string // its address
	broken  <-chan error
	release func()
}

// open has the first connection, for run.
func (f *feed) open() (err error) {
	f.first, err = f.connect(f.broker.ctx)
	if err != nil {
		f.first.release()
		err = fmt.Errorf("redis at %s: %w", f.broker.events.client.Where, err)
	}
	return err
}

// run has a connection, and another one when it breaks: at once if that one has lived for a
// while. Pauses grow as long as none does.
func (f *feed) run() {
	ctx, log, since := f.broker.ctx, f.broker.options.Log, time.Now()
	f.await(ctx, f.first)
	for wait := redislink.NewBackoff(); ctx.Err() == nil; {
		log.Warn("redis is lost: nothing is published or subscribed to, events and commands of others are missed")
		f.tellGap(false)
		if time.Since(since) > lookEvery {
			wait.Reset()
		} else {
			wait.Pause(ctx)
		}
		now, err := f.connect(ctx)
		for err != nil && ctx.Err() == nil {
			now.release()
			wait.Pause(ctx)
			now, err = f.connect(ctx)
		}
		if err == nil {
			f.tellGap(true)
			log.Info("redis is there again", "topics", f.count())
			since = time.Now()
			f.await(ctx, now)
		} else {
			now.release()
		}
	}
}

// await returns when a connection is broken, its node is one no more, or ctx ends.
func (f *feed) await(ctx context.Context, now link) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for is := true; is; {
		select {
		case <-now.broken: //nolint:errcheck // whatever broke it, another one is opened
			is = false
		case <-ctx.Done():
			is = false
		case <-look.C:
			is = f.broker.events.has(now.node)
		}
	}
	f.mu.Lock()
	f.conn = nil
	f.away.Store(time.Now().UnixNano())
	f.mu.Unlock()
	now.release()
}

const (
	// lookEvery is how often a connection's node is looked for among those of a Cluster,
	// or as the primary of Sentinels: one that was taken out of it may live on, alone.
	lookEvery = 10 * time.Second

	// mostTopics is how many are subscribed by one command.
	mostTopics = 500
)

// connect opens a connection, to any node of a Cluster, and has all topics come on it.
// It is to be released, also after an error.
func (f *feed) connect(ctx context.Context) (link, error) {
	address, node := f.broker.events.anyNode()
	if node == nil {
		return link{release: func() {}}, errLost
	}
	conn, giveBack := node.Dedicate()
	now := link{
		node:   address,
		broken: conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: f.message}),
		release: func() {
			conn.Close()
			giveBack()
		},
	}
	ctx, cancel := context.WithTimeout(ctx, redislink.AnswerWithin)
	defer cancel()
	if _, err := f.broker.events.client.Check(ctx, conn, ""); err != nil {
		return now, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pattern := range []bool{false, true} {
		for names := range slices.Chunk(f.names(pattern), mostTopics) {
			if err := conn.Do(ctx, command(conn, pattern, true, names...)).Error(); err != nil {
				return now, err
			}
		}
	}
	f.conn = conn
	f.away.Store(0)
	return now, nil
}

// names returns those of all channels, or patterns. The caller holds mu.
func (f *feed) names(pattern bool) (names []string) {
	for topic := range f.topics {
		if topic.Pattern == pattern {
			names = append(names, topic.Name)
		}
	}
	return names
}

func command(conn rueidis.DedicatedClient, pattern, wanted bool, names ...string) rueidis.Completed {
	switch {
	case wanted && pattern:
		return conn.B().Psubscribe().Pattern(names...).Build()
	case wanted:
		return conn.B().Subscribe().Channel(names...).Build()
	case pattern:
		return conn.B().Punsubscribe().Pattern(names...).Build()
	}
	return conn.B().Unsubscribe().Channel(names...).Build()
}

// change subscribes or unsubscribes; done is told what Redis says.
func (f *feed) change(topic broker.Topic, wanted bool, done func(error)) {
	go func() { // ends when Redis answers, or the connection does
		done(f.ask(topic, wanted))
	}()
}

func (f *feed) ask(topic broker.Topic, wanted bool) error {
	f.mu.Lock()
	conn := f.conn
	if !wanted {
		delete(f.topics, topic)
	}
	f.mu.Unlock()
	if conn == nil {
		return errLost
	}
	ctx, cancel := context.WithTimeout(f.broker.ctx, redislink.AnswerWithin)
	defer cancel()
	if err := conn.Do(ctx, command(conn, topic.Pattern, wanted, topic.Name)).Error(); err != nil || !wanted {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conn != conn { // the next one has been told already what there is
		return errLost
	}
	f.topics[topic] = true
	return nil
}

func (f *feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.topics)
}

// message is called for one event after the other.
func (f *feed) message(m rueidis.PubSubMessage) {
	var p redislink.Event
	if err := json.Unmarshal([]byte(m.Message), &p); err != nil {
		return // of somebody who does not keep to the form
	}
	topic := broker.Topic{Name: m.Channel}
	if m.Pattern != "" {
		topic = broker.Topic{Name: m.Pattern, Pattern: true}
	}
	f.events.RLock()
	to := f.events.to
	f.events.RUnlock()
	if to != nil {
		to(topic, broker.Event{Channel: m.Channel, ID: p.ID, Args: p.Args})
	}
}
