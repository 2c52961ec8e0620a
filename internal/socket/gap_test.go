package socket

import (
	"errors"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

func (b *scripted) OnGap(begins, ended func()) { b.begins, b.ended = begins, ended }

// Who may have missed events is told for each subscription, behind what came before and
// before what comes next; who cannot be told has its socket end.
func TestGap(t *testing.T) {
	url, _, b := startScripted(t, Options{})
	news, all := broker.Topic{Name: "news"}, broker.Topic{Name: "n*", Pattern: true}
	event := func(topic broker.Topic, args string) {
		b.events(topic, broker.Event{Channel: "news", ID: idOf("1"), Args: []byte(args)})
	}
	now, old, idle := join(t, &websocket.Dialer{}, url), dial(t, url), dial(t, url)
	now.send(`{"type":"sub","id":1,"channel":"news"}`, `{"type":"sub","id":2,"pattern":"n*"}`)
	b.await(t, "sub news", "sub n*").done("sub news", nil)
	b.done("sub n*", nil)
	now.want(`{"type":"ack","id":1}`, `{"type":"ack","id":2}`)
	old.send(subFrame("1", "news")).want("ack 1")
	event(news, "1")
	b.begins()
	event(news, "2") // of an order that nobody knows
	event(all, "2")
	now.send(`{"type":"sub","id":3,"channel":"news"}`, `{"type":"sub","id":4,"channel":"more"}`)
	now.want(`{"type":"evnt","id":"`+idOf("1")+`","channel":"news","args":1}`,
		`{"type":"nack","id":3,"error":{"code":503,"message":"not available now"}}`,
		`{"type":"nack","id":4,"error":{"code":503,"message":"not available now"}}`)
	b.ended()
	event(news, "3")
	first, second := now.next(), now.next()
	want := [2]string{`{"type":"gap","channel":"news"}`, `{"type":"gap","pattern":"n*"}`}
	testkit.Want(t, [2]string{first, second} == want || [2]string{second, first} == want, "got %s, %s", first, second)
	now.want(`{"type":"evnt","id":"` + idOf("1") + `","channel":"news","args":3}`)
	old.want("evnt 1")
	got := old.next()
	testkit.Want(t, websocket.IsCloseError(got.err, websocket.CloseAbnormalClosure), "juggler.0 was told %+v", got)
	idle.send(subFrame("1", "news")) // it had no subscription
	idle.want("ack 1")
}

// A subscription that is confirmed behind the beginning of a gap is refused, and given up.
func TestSubscriptionInAGap(t *testing.T) {
	url, _, b := startScripted(t, Options{})
	c := join(t, &websocket.Dialer{}, url)
	c.send(`{"type":"sub","id":1,"channel":"news"}`)
	b.await(t, "sub news")
	b.begins()
	b.done("sub news", nil)
	b.await(t, "sub news", "unsub news")
	c.want(`{"type":"nack","id":1,"error":{"code":503,"message":"not available now"}}`)
	b.done("unsub news", errors.New("no connection"))
	b.ended()
	c.send(`{"type":"sub","id":2,"channel":"news"}`)
	b.await(t, "sub news", "unsub news", "sub news").done("sub news", nil)
	c.want(`{"type":"ack","id":2}`)
}
