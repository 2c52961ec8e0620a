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

// errLost refuses subscriptions without a connection.
var errLost = errors.New("no connection to redis")

// feed is the connection with all subscriptions.
type feed struct {
	broker *Broker
	first  link // for run

	away atomic.Int64 // since when the connection is lost, in ns since 1970; 0: it is up

	mu     sync.Mutex
	conn   rueidis.DedicatedClient // nil while it is lost
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

// tellGap calls the function for the beginning or the end of a gap.
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

// open opens the first connection, for run.
func (f *feed) open() (err error) {
	f.first, err = f.connect(f.broker.ctx)
	if err != nil {
		f.first.release()
		err = fmt.Errorf("redis at %s: %w", f.broker.events.client.Where, err)
	}
	return err
}

// run keeps a connection, and opens another one when it breaks: at once if the last one
// was up for a while, otherwise after growing pauses.
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

// await returns when a connection is broken, its node has left the Cluster, or ctx ends.
func (f *feed) await(ctx context.Context, now link) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for is := true; is; {
		select {
		case <-now.broken: //nolint:errcheck // for any error another one is opened
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
	// or as the primary of Sentinels: a node that was taken out may go on alone.
	lookEvery = 10 * time.Second

	// mostTopics is how many topics one command subscribes to.
	mostTopics = 500
)

// connect opens a connection, to any node of a Cluster, and subscribes to all topics on
// it. The link has to be released, also after an error.
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

// names returns the names of all channels, or of all patterns. The caller holds mu.
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

// change subscribes or unsubscribes; done gets the answer of Redis.
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
	if f.conn != conn { // the next connection has subscribed already, without this topic
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
		return // not published by this protocol
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
