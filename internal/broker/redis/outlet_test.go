package redis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/redis"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/fakeredis"
)

// begin makes a call, and returns where its acceptance is told.
func begin(b *redis.Broker, timeout time.Duration) <-chan error {
	accepted := make(chan error, 1)
	b.Call(context.Background(), broker.Call{
		URI: "f", Timeout: timeout, Unsure: true,
		Accepted: func(err error) { accepted <- err }, Answered: func(json.RawMessage, error) {},
	})
	return accepted
}

func open(t *testing.T, server *fakeredis.Server) *redis.Broker {
	t.Helper()
	b, err := redis.Open(redis.Options{Address: server.Address, Log: slog.New(slog.DiscardHandler)})
	testkit.Must(t, err)
	t.Cleanup(b.Close)
	return b
}

// A connection that ends between a call and its answer: nobody says that it was refused.
func TestCallWithoutAnswerIsUnknown(t *testing.T) {
	testkit.CheckLeaks(t)
	server := fakeredis.Start(t, func(c *fakeredis.Conn, args []string) string {
		if args[0] == "LPUSH" {
			c.Close()
		}
		return fakeredis.Default(args)
	})
	err := <-begin(open(t, server), time.Minute)
	testkit.Want(t, errors.Is(err, broker.ErrUnknown), "got %v", err)
}

// A connection that had ended before is no reason to refuse a call.
func TestCallAfterAnIdleEnd(t *testing.T) {
	testkit.CheckLeaks(t)
	server := fakeredis.Start(t, func(_ *fakeredis.Conn, args []string) string { return fakeredis.Default(args) })
	b := open(t, server)
	for range 5 {
		testkit.Must(t, <-begin(b, time.Minute))
		server.Cut()
	}
}

// While Redis is silent, a call ends in its time. One that was not sent never is.
func TestSilentRedisGetsNoCallThatIsOver(t *testing.T) {
	testkit.CheckLeaks(t)
	silent, pushed := make(chan struct{}), atomic.Int64{}
	server := fakeredis.Start(t, func(_ *fakeredis.Conn, args []string) string {
		if args[0] == "LPUSH" {
			pushed.Add(1)
			<-silent
		}
		return fakeredis.Default(args)
	})
	b := open(t, server)
	first := begin(b, 200*time.Millisecond)
	testkit.Eventually(t, 10*time.Second, "the first one to be sent", func() bool { return pushed.Load() == 1 })
	second := begin(b, 100*time.Millisecond)
	err := <-second
	testkit.Want(t, err != nil && !errors.Is(err, broker.ErrUnknown), "what was not sent: %v", err)
	testkit.Is(t, <-first, broker.ErrUnknown, "what was sent")
	close(silent)
	err = <-begin(b, time.Minute)
	testkit.Want(t, err == nil && pushed.Load() == 2, "%v, %d calls came", err, pushed.Load())
}

// What is tried again is what was asked for: events that a replica has refused reach the
// next primary as they were.
func TestRefusedEventsAreSentAsTheyWere(t *testing.T) {
	testkit.CheckLeaks(t)
	var lost atomic.Int64 // connections up to this one
	const events = 200
	heard := make(chan string, 10*events)
	server := fakeredis.Start(t, func(c *fakeredis.Conn, args []string) string {
		if args[0] == "PUBLISH" {
			if int64(c.Number) <= lost.Load() {
				return "-LOADING not here\r\n"
			}
			heard <- args[1]
		}
		return fakeredis.Default(args)
	})
	b := open(t, server)
	lost.Store(3)
	done := make(chan error, events)
	publish := func(i int) {
		b.Publish(broker.Event{Channel: fmt.Sprintf("news %d", i), ID: broker.NewID()}, func(err error) { done <- err })
	}
	for i := range events {
		publish(i)
	}
	went := 0
	for range events {
		if <-done == nil {
			went++
		}
	}
	// While the subscriptions are gone, too, nothing is published: all may be refused.
	more := events
	testkit.Eventually(t, time.Minute, "an event to go", func() bool {
		publish(more)
		more++
		if <-done != nil {
			return false
		}
		went++
		return true
	})
	got := map[string]bool{}
	for len(heard) > 0 {
		channel := <-heard
		testkit.Want(t, strings.HasPrefix(channel, "news ") && !got[channel], "heard %q", channel)
		got[channel] = true
	}
	testkit.Want(t, len(got) == went, "%d of %d that went were heard", len(got), went)
}

// An event that is refused where later ones have gone is not sent behind them.
func TestRefusedEventIsNotSentLate(t *testing.T) {
	testkit.CheckLeaks(t)
	const events = 4
	asked, release, heard := make(chan struct{}), make(chan struct{}), make(chan string, 2*events)
	var seen atomic.Int64
	server := fakeredis.Start(t, func(_ *fakeredis.Conn, args []string) string {
		if args[0] != "PUBLISH" {
			return fakeredis.Default(args)
		}
		switch seen.Add(1) {
		case 1: // the others gather
			close(asked)
			<-release
		case 2:
			return "-LOADING not yet\r\n"
		}
		heard <- args[2]
		return fakeredis.Default(args)
	})
	b := open(t, server)
	done := make(chan error, events)
	for i := range events {
		b.Publish(broker.Event{Channel: "news", ID: fmt.Sprint(i)}, func(err error) { done <- err })
		if i == 0 {
			<-asked
		}
	}
	close(release)
	refused := 0
	for range events {
		if <-done != nil {
			refused++
		}
	}
	last := ""
	for range events - refused {
		if event := <-heard; event < last {
			t.Errorf("%s came behind %s", event, last)
		} else {
			last = event
		}
	}
	testkit.Want(t, refused == 1, "%d events were refused", refused)
}
