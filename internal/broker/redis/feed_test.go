package redis_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/fakeredis"
)

// ask does something and returns what it is done with.
func ask(begin func(done func(error))) error {
	result := make(chan error, 1)
	begin(func(err error) { result <- err })
	return <-result
}

// While there is no connection with the subscriptions nothing is published, and nobody
// subscribes. What there was is told to have a gap once it comes again.
func TestNothingIsPublishedInAGap(t *testing.T) {
	testkit.CheckLeaks(t)
	var feed atomic.Pointer[fakeredis.Conn] // the connection with subscriptions
	var shut atomic.Bool
	server := fakeredis.Start(t, func(c *fakeredis.Conn, args []string) string {
		switch args[0] {
		case "SUBSCRIBE":
			if shut.Load() {
				c.Close()
				return ""
			}
			feed.Store(c)
		case "PUBLISH":
			return ":1\r\n"
		}
		return fakeredis.Default(args)
	})
	b := open(t, server)
	began, ended := make(chan bool, 1), make(chan bool, 1)
	b.OnGap(func() { began <- true }, func() { ended <- true })
	topic := broker.Topic{Name: "news"}
	publish := func() error {
		return ask(func(done func(error)) { b.Publish(broker.Event{Channel: "news", ID: broker.NewID()}, done) })
	}
	testkit.Must(t, ask(func(done func(error)) { b.Subscribe(topic, done) }))
	testkit.Must(t, publish())
	shut.Store(true)
	feed.Load().Close()
	<-began
	for what, do := range map[string]func() error{
		"publish":   publish,
		"subscribe": func() error { return ask(func(done func(error)) { b.Subscribe(broker.Topic{Name: "more"}, done) }) },
	} {
		err := do()
		testkit.Want(t, err != nil && strings.Contains(err.Error(), "no connection"), "%s: %v", what, err)
	}
	shut.Store(false)
	testkit.Take(t, ended, time.Minute, "the gap has no end")
	testkit.Must(t, publish())
}

// A Redis that cannot be reached is told as such, with what it was not asked for, until it
// can be reached again.
func TestStatsOfALostRedis(t *testing.T) {
	testkit.CheckLeaks(t)
	var shut atomic.Bool
	server := fakeredis.Start(t, func(c *fakeredis.Conn, args []string) string {
		if shut.Load() {
			c.Close()
		}
		return fakeredis.Default(args)
	})
	b := open(t, server)
	testkit.Equal(t, b.Stats(), (redis.Stats{}), "at first")
	shut.Store(true)
	server.Cut()
	testkit.Eventually(t, time.Minute, "the loss to be noticed", func() bool { return !b.Stats().Away.IsZero() })
	testkit.Eventually(t, time.Minute, "a call to be refused", func() bool { return <-begin(b, time.Minute) != nil })
	if s := b.Stats(); s.Lost+s.Unknown == 0 {
		t.Errorf("a call was refused: %+v", s)
	}
	shut.Store(false)
	testkit.Eventually(t, time.Minute, "it to be there again", func() bool { return b.Stats().Away.IsZero() })
	if s := b.Stats(); s.Ended < 3 {
		t.Errorf("at last: %+v", s)
	}
	testkit.Must(t, <-begin(b, time.Minute))
}
