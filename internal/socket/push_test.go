package socket

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/auth"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// startPushed starts two servers at one broker, of which each knows tokens a, b and c:
// their names are their users.
func startPushed(t *testing.T, databases ...int) (first, second *Server, urls [2]string) {
	t.Helper()
	testkit.CheckLeaks(t)
	knows := tokens{}
	for _, user := range []string{"a", "b", "c"} {
		knows[user] = &auth.Identity{User: user, Call: []string{"*"}, Publish: []string{"*"}, Subscribe: []string{"*"}}
	}
	both := &shared{Memory: broker.NewMemory(broker.MemoryOptions{})}
	var servers [2]*Server
	for i := range servers {
		options := Options{Auth: knows, Broker: both}
		if databases != nil {
			options.Database = databases[i]
		}
		urls[i], servers[i] = serve(t, options)
		testkit.Must(t, servers[i].TakeCommands(t.Context()))
	}
	return servers[0], servers[1], urls
}

// shared is a broker of several servers.
type shared struct {
	*broker.Memory

	all []func(broker.Topic, broker.Event)
}

func (s *shared) Listen(events func(broker.Topic, broker.Event)) {
	s.all = append(s.all, events)
	s.Memory.Listen(func(topic broker.Topic, e broker.Event) {
		for _, events := range s.all {
			events(topic, e)
		}
	})
}

func (s *shared) Unsubscribe(_ broker.Topic, done func(error)) { done(nil) } // the other server may want it

func mustCommand(t *testing.T, s *Server, c Command) {
	t.Helper()
	_, err := s.Command(t.Context(), c)
	testkit.Must(t, err)
}

// What everyone hears does not come to a socket that has to show its token first.
func TestEveryoneHasShownATokenFirst(t *testing.T) {
	first, _, urls := startPushed(t)
	stranger, known := join(t, &websocket.Dialer{}, urls[1]), dial(t, urls[1]+"?token=b")
	known.send(subFrame("1", "news")) // it is there when that is acknowledged
	known.want("ack 1")
	mustCommand(t, first, Command{Action: Broadcast, Everyone: true, Channel: "staff", Args: json.RawMessage(`1`)})
	if got := known.next(); got.kind != Evnt || got.args != "1" {
		t.Errorf("got %+v", got)
	}
	stranger.send(`{"type":"auth","id":1,"token":"a"}`)
	if got := stranger.next(); !strings.HasPrefix(got, `{"type":"ack","id":1`) {
		t.Errorf("got %s before the token was shown", got)
	}
	mustCommand(t, first, Command{Action: Broadcast, Everyone: true, Channel: "staff", Args: json.RawMessage(`2`)})
	testkit.Says(t, stranger.next(), `"args":2`)
}

// Commands come to all sockets of a user, on all servers, and to no other.
func TestCommandsByUser(t *testing.T) {
	first, _, urls := startPushed(t)
	here, there := dial(t, urls[0]+"?token=a"), dial(t, urls[1]+"?token=a")
	other := dial(t, urls[1]+"?token=b")
	for _, c := range []*client{here, there, other} {
		c.send(subFrame("1", "news")).want("ack 1")
	}
	mustCommand(t, first, Command{Action: Broadcast, User: "a", Channel: "notice", Args: json.RawMessage(`{"n":1}`)})
	for _, c := range []*client{here, there} {
		if got := c.next(); got.kind != Evnt || got.args != `{"n":1}` {
			t.Errorf("got %+v", got)
		}
	}
	mustCommand(t, first, Command{Action: Unsubscribe, User: "a", Channel: "news"})
	_, err := first.Publish(t.Context(), "news", json.RawMessage(`2`))
	testkit.Must(t, err)
	if got := other.next(); got.kind != Evnt || got.args != "2" {
		t.Errorf("the other user got %+v", got)
	}
	there.send(subFrame("2", "news")) // and nothing came before
	there.want("ack 2")
	mustCommand(t, first, Command{Action: Broadcast, Everyone: true, Channel: "all", Args: json.RawMessage(`3`)})
	for _, c := range []*client{here, there, other} {
		if got := c.next(); got.args != "3" {
			t.Errorf("of everyone's got %+v", got)
		}
	}
	mustCommand(t, first, Command{Action: Disconnect, User: "a", Reason: "gone"})
	here.wantClosed(closePush)
	there.wantClosed(closePush)
	other.send(pubFrame("3", "x", "y")).want("ack 3")
	testkit.Eventually(t, within, "the ends to be counted", func() bool { return first.Stats().Ended["push"] == 1 })
}

// A socket is found by its id until it ends; one that has none of the names never.
func TestCommandsByConnection(t *testing.T) {
	first, second, urls := startPushed(t)
	one, two := dial(t, urls[0]+"?token=a"), dial(t, urls[0]+"?token=a")
	one.send(subFrame("1", "c")).want("ack 1")
	var ids []string
	testkit.Eventually(t, within, "both to be in the directory", func() bool {
		first.directory.mu.Lock()
		defer first.directory.mu.Unlock()
		ids = slices.Collect(maps.Keys(first.directory.ids))
		return len(ids) == 2
	})
	mustCommand(t, second, Command{Action: Broadcast, Connection: "nobody", Channel: "c"})
	mustCommand(t, second, Command{Action: Broadcast, Channel: "c"})
	for i, id := range ids {
		mustCommand(t, second, Command{Action: Disconnect, Connection: id, Code: 4000 + i})
	}
	codes := map[int]bool{}
	for _, c := range []*client{one, two} {
		var closed *websocket.CloseError
		got := c.next()
		testkit.Need(t, errors.As(got.err, &closed), "got %+v", got)
		codes[closed.Code] = true
	}
	testkit.Want(t, codes[4000] && codes[4001], "they ended with %v", codes)
	testkit.Eventually(t, within, "the directory to be empty", func() bool {
		first.directory.mu.Lock()
		defer first.directory.mu.Unlock()
		return len(first.directory.ids) == 0 && len(first.directory.users) == 0
	})
}

// Commands stay within the servers of their database; events are those of all.
func TestCommandsOfADatabase(t *testing.T) {
	for _, databases := range [][]int{{0, 1}, {1, 0}, {1, 2}} {
		first, second, urls := startPushed(t, databases...)
		c := dial(t, urls[1]+"?token=a")
		c.send(subFrame("1", "news")).want("ack 1")
		mustCommand(t, first, Command{Action: Broadcast, Everyone: true, Channel: "notice"})
		mustCommand(t, first, Command{Action: Disconnect, User: "a"})
		_, err := first.Publish(t.Context(), "news", json.RawMessage("1"))
		testkit.Must(t, err)
		if got := c.next(); got.kind != Evnt || got.args != "1" {
			t.Errorf("of %d at %d: %+v", databases[0], databases[1], got)
		}
		mustCommand(t, second, Command{Action: Disconnect, User: "a"})
		if got := c.next(); !websocket.IsCloseError(got.err, closePush) {
			t.Errorf("before the end: %+v", got)
		}
	}
}

// What servers tell each other is for no client, whatever it subscribes to, and no client
// can say it.
func TestOwnChannels(t *testing.T) {
	first, _, urls := startPushed(t)
	c := dial(t, urls[0]+"?token=a")
	for i, pattern := range []string{"*", "juggler*", "juggler.1:push", "[j]uggler.1:*"} {
		c.send(frameText(Sub, fmt.Sprint(i+1), map[string]any{"channel": pattern, "pattern": true}))
		got := c.next()
		testkit.Want(t, got.kind == Ack || got.code == 403, "%s: %+v", pattern, got)
	}
	c.send(subFrame("8", reservedPrefix+pushChannel))
	if got := c.next(); got.kind != Nack {
		t.Errorf("subscribed: %+v", got)
	}
	orders, _ := json.Marshal(Command{Action: Disconnect, User: "a"})
	c.send(frameText(Pub, "9", map[string]any{"channel": reservedPrefix + pushChannel, "args": json.RawMessage(orders)}))
	if got := c.next(); got.kind != Nack {
		t.Errorf("published: %+v", got)
	}
	_, err := first.Publish(t.Context(), reservedPrefix+pushChannel, orders)
	testkit.Want(t, errors.Is(err, ErrOwnChannel), "published by push: %v", err)
	mustCommand(t, first, Command{Action: Unsubscribe, User: "b", Channel: "x"})
	mustCommand(t, first, Command{Action: Disconnect, User: "a"})
	if got := c.next(); !websocket.IsCloseError(got.err, closePush) {
		t.Errorf("before the end: %+v", got)
	}
}

// A client of juggler.1 is told of what is taken from it, and by what code it ends.
func TestCommandsAreTold(t *testing.T) {
	first, _, urls := startPushed(t)
	c := join(t, new(websocket.Dialer), urls[0]+"?token=a")
	c.send(`{"type":"sub","id":1,"channel":"news"}`, `{"type":"sub","id":2,"pattern":"n*"}`).want(`{"type":"ack","id":1}`, `{"type":"ack","id":2}`)
	longest := strings.Repeat("x", 123)
	mustCommand(t, first, Command{Action: Unsubscribe, User: "a", Channel: "n*", Pattern: true})
	mustCommand(t, first, Command{Action: Unsubscribe, User: "a", Channel: "news"})
	mustCommand(t, first, Command{Action: Unsubscribe, User: "a", Channel: "news"}) // changes nothing
	mustCommand(t, first, Command{Action: Disconnect, User: "a", Reason: longest})
	c.want(`{"type":"unsb","pattern":"n*"}`, `{"type":"unsb","channel":"news"}`, "websocket: close 4403: "+longest)
}
