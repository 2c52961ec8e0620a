package socket

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/broker"
)

const (
	// ownPrefix begins the channels by which servers of one broker talk to each other.
	// No client publishes there, or hears of what is.
	ownPrefix = "juggler.1:"
	// pushChannel has commands, behind the number of a database that is not the first.
	pushChannel = "push"
)

// pushChannel is the one of the servers of one database.
func (o *Options) pushChannel() string {
	if o.Database == 0 {
		return ownPrefix + pushChannel
	}
	return ownPrefix + strconv.Itoa(o.Database) + ":" + pushChannel
}

// Action is what a command does to the sockets that it is for.
type Action string

// The actions.
const (
	Broadcast   Action = "broadcast"   // an event comes, whatever they have subscribed to; of everyone's to those who have shown a token, if one is wanted
	Disconnect  Action = "disconnect"  // they end
	Unsubscribe Action = "unsubscribe" // they hear no more of a channel, or of a pattern
)

// Command is what the application wants of sockets, on whatever server of the broker
// they are.
//
// Shape: one of User, Connection and Everyone says of which.
type Command struct {
	Action Action `json:"action"`

	User       string `json:"user,omitempty"`
	Connection string `json:"connection,omitempty"` // broker.Caller.ID
	Everyone   bool   `json:"everyone,omitempty"`

	Channel string          `json:"channel,omitempty"` // of Broadcast and Unsubscribe
	Pattern bool            `json:"pattern,omitempty"` // of Unsubscribe: Channel is a glob
	Args    json.RawMessage `json:"args,omitempty"`    // of Broadcast

	Code   int    `json:"code,omitempty"`   // of Disconnect: of the close frame; 0: 4403
	Reason string `json:"reason,omitempty"` // of Disconnect, at most 123 bytes
}

// ErrOwnChannel refuses to publish in a channel of the servers themselves.
var ErrOwnChannel = errors.New("channels that begin with " + ownPrefix + " are the server's own")

// isOwn reports whether a channel is one of the servers themselves.
func isOwn(channel string) bool { return strings.HasPrefix(channel, ownPrefix) }

// TakeCommands has commands for sockets obeyed from now on, of this server and of others
// at its broker. It is called once, before there are sockets.
func (s *Server) TakeCommands(ctx context.Context) error {
	s.directory = newDirectory()
	s.hub.own, s.hub.orders = s.obey, s.options.pushChannel()
	return await(ctx, func(done func(error)) { s.options.Broker.Subscribe(broker.Topic{Name: s.hub.orders}, done) })
}

// Publish publishes an event, and returns its id when the broker has it: one that is
// published after that comes after it. Args is a JSON value, or nil.
//
// Errors: ErrOwnChannel, that of the broker, or of ctx.
func (s *Server) Publish(ctx context.Context, channel string, args json.RawMessage) (id string, err error) {
	if isOwn(channel) {
		return "", ErrOwnChannel
	}
	id = broker.NewID()
	return id, s.publish(ctx, broker.Event{Channel: channel, ID: id, Args: args})
}

// Command has all servers obey, which took TakeCommands. It returns the id of the event,
// if there is one, when the broker has the command: what follows it comes after it.
//
// Errors: that of the broker, or of ctx.
func (s *Server) Command(ctx context.Context, c Command) (id string, err error) {
	args, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	id = broker.NewID()
	return id, s.publish(ctx, broker.Event{Channel: s.options.pushChannel(), ID: id, Args: args})
}

func (s *Server) publish(ctx context.Context, e broker.Event) error {
	return await(ctx, func(done func(error)) { s.options.Broker.Publish(e, done) })
}

// await begins something and returns when it is done, or ctx has ended.
func await(ctx context.Context, begin func(done func(error))) error {
	result := make(chan error, 1)
	begin(func(err error) { result <- err })
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// obey does what a command says to the sockets that are here.
func (s *Server) obey(e broker.Event) {
	var c Command
	if json.Unmarshal(e.Args, &c) != nil {
		return // of a server that is newer
	}
	found := s.meant(c)
	if len(found) == 0 {
		return
	}
	switch c.Action {
	case Broadcast:
		members := make(map[*session]struct{}, len(found))
		for _, session := range found {
			if !c.Everyone || !session.stranger.Load() {
				members[session] = struct{}{}
			}
		}
		s.deliver(members, broker.Topic{Name: c.Channel}, broker.Event{Channel: c.Channel, ID: e.ID, Args: c.Args})
	case Disconnect:
		code := c.Code
		if code == 0 {
			code = closePush
		}
		for _, session := range found {
			session.end(endPush, code, c.Reason)
		}
	case Unsubscribe:
		for _, session := range found {
			session.expel(broker.Topic{Name: c.Channel, Pattern: c.Pattern})
		}
	}
}

// meant returns the sockets that a command is for.
func (s *Server) meant(c Command) []*session {
	switch {
	case c.Connection != "":
		return s.directory.byID(c.Connection)
	case c.User != "":
		return s.directory.byUser(c.User)
	case c.Everyone:
		return s.sessions()
	}
	return nil
}

// expel ends a subscription, if there is one. The client may subscribe again.
func (s *session) expel(topic broker.Topic) {
	if !s.server.hub.expel(topic, s) {
		return
	}
	s.mu.Lock()
	s.failed = append(s.failed, topic) // its place is given up with the next subscription
	s.mu.Unlock()
	told := answer{kind: Unsub, channel: topic.Name}
	if topic.Pattern {
		told.channel, told.pattern = "", topic.Name
	}
	s.tell(told)
}
