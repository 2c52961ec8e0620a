package brokertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
)

// listener collects events.
type listener struct {
	t      testing.TB
	broker socket.Broker
	events chan string
}

func listen(t testing.TB, b socket.Broker) listener {
	t.Helper()
	l := listener{t, b, make(chan string, 10_000)}
	b.Listen(func(topic broker.Topic, e broker.Event) {
		l.events <- fmt.Sprintf("%s %t: %s %s %s", topic.Name, topic.Pattern, e.Channel, e.ID, e.Args)
	})
	return l
}

// wait calls f and returns what it is done with.
func (l listener) wait(f func(done func(error))) {
	l.t.Helper()
	done := make(chan error, 2)
	f(func(err error) { done <- err })
	testkit.Must(l.t, receive(l.t, done, "it to be done"))
}

func (l listener) subscribe(name string, pattern bool) {
	l.t.Helper()
	l.wait(func(done func(error)) { l.broker.Subscribe(broker.Topic{Name: name, Pattern: pattern}, done) })
}

func (l listener) unsubscribe(name string, pattern bool) {
	l.t.Helper()
	l.wait(func(done func(error)) { l.broker.Unsubscribe(broker.Topic{Name: name, Pattern: pattern}, done) })
}

func (l listener) publish(channel, id, args string) {
	l.t.Helper()
	e := broker.Event{Channel: channel, ID: id}
	if args != "" {
		e.Args = json.RawMessage(args)
	}
	l.wait(func(done func(error)) { l.broker.Publish(e, done) })
}

func (l listener) want(events ...string) {
	l.t.Helper()
	var got []string
	for range events {
		got = append(got, receive(l.t, l.events, "an event"))
	}
	slices.Sort(got)
	slices.Sort(events)
	if !slices.Equal(got, events) {
		l.t.Fatalf("got %q, want %q", got, events)
	}
}

const someID = "01234567-89ab-4def-8123-456789abcdef"

func comes(t guest) {
	l := listen(t, t.Broker)
	l.subscribe("c", false)
	l.publish("other", someID, "1")
	l.publish("c", someID, `{"x":1}`)
	l.publish("c", "", "")
	l.want("c false: c "+someID+` {"x":1}`, "c false: c  ")
}

func comesByPattern(t guest) {
	l := listen(t, t.Broker)
	l.subscribe("n[a-c]*", true)
	l.subscribe("nb", false)
	l.publish("nx", someID, "1")
	l.publish("nb", someID, "2")
	l.want("n[a-c]* true: nb "+someID+" 2", "nb false: nb "+someID+" 2")
}

func eventsInOrder(t guest) {
	l := listen(t, t.Broker)
	l.subscribe("c", false)
	const events = 500
	for i := range events {
		t.Broker.Publish(broker.Event{Channel: "c", ID: someID, Args: json.RawMessage(fmt.Sprint(i))}, func(error) {})
	}
	for i := range events {
		if got, want := receive(t, l.events, "an event"), fmt.Sprintf("c false: c %s %d", someID, i); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func unsubscribes(t guest) {
	l := listen(t, t.Broker)
	// A name that no other test has: nodes of a Cluster may tell each other of the second
	// event when the next test has subscribed.
	l.subscribe("left", false)
	l.subscribe("end", false)
	l.publish("left", someID, "1")
	l.want("left false: left " + someID + " 1")
	l.unsubscribe("left", false)
	l.unsubscribe("never", true)
	l.publish("left", someID, "2")
	l.publish("end", someID, "3")
	l.want("end false: end " + someID + " 3")
}

func subscribesAgain(t guest) {
	l := listen(t, t.Broker)
	for i := range 20 {
		l.subscribe("c", i%2 == 0)
		l.publish("c", someID, "1")
		l.want(fmt.Sprintf("c %t: c %s 1", i%2 == 0, someID))
		l.unsubscribe("c", i%2 == 0)
	}
}

func forNobody(t guest) {
	listen(t, t.Broker).publish("nobody", someID, "1")
}
