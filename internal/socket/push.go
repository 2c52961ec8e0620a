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
	// reservedPrefix begins the channels by which servers of one broker talk to each other.
	// No client publishes there, or hears of what is.
	reservedPrefix = "juggler.1:"
	// pushChannel is the channel for commands; the number of a database other than 0
	// precedes it.
	pushChannel = "push"
)

// pushChannel is the command channel of the servers of one database.
func (o *Options) pushChannel() string {
	if o.Database == 0 {
		return reservedPrefix + pushChannel
	}
	return reservedPrefix + strconv.Itoa(o.Database) + ":" + pushChannel
}

// Action is what a command does to its sockets.
type Action string

// The actions.
const (
	Broadcast   Action = "broadcast"   // sends them an event, whatever they have subscribed to; with Everyone only to sockets that have shown a token, if one is needed
	Disconnect  Action = "disconnect"  // ends them
	Unsubscribe Action = "unsubscribe" // ends their subscription to a channel or pattern
)

// Command is a command of the application to sockets on any server of the broker.
//
// Shape: one of User, Connection and Everyone selects the sockets.
type Command struct {
	Action Action `json:"action"`

	User       string `json:"user,omitempty"`
	Connection string `json:"connection,omitempty"` // broker.Caller.ID
	Everyone   bool   `json:"everyone,omitempty"`

	Channel string          `json:"channel,omitempty"` // of Broadcast and Unsubscribe
	Pattern bool            `json:"pattern,omitempty"` // of Unsubscribe: Channel is a glob
	Args    json.RawMessage `json:"args,omitempty"`    // of Broadcast

	Code   int    `json:"code,omitempty"`   // of Disconnect: the code of the close frame; 0: 4403
	Reason string `json:"reason,omitempty"` // of Disconnect, at most 123 bytes
}

// ErrOwnChannel refuses to publish in a channel of the servers themselves.
var ErrOwnChannel = errors.New("channels that begin with " + reservedPrefix + " are the server's own")

// isReserved reports whether a channel is one of the servers themselves.
func isReserved(channel string) bool { return strings.HasPrefix(channel, reservedPrefix) }

// TakeCommands makes the server execute commands from now on, its own and those of other
// servers at its broker. It is called once, before the first socket.
func (s *Server) TakeCommands(ctx context.Context) error {
	s.directory = newDirectory()
	s.hub.command, s.hub.commandChannel = s.execute, s.options.pushChannel()
	return await(ctx, func(done func(error)) { s.options.Broker.Subscribe(broker.Topic{Name: s.hub.commandChannel}, done) })
}

// Publish publishes an event, and returns its id when the broker has it: later events come
// after it. Args is a JSON value, or nil.
//
// Errors: ErrOwnChannel, that of the broker, or of ctx.
func (s *Server) Publish(ctx context.Context, channel string, args json.RawMessage) (id string, err error) {
	if isReserved(channel) {
		return "", ErrOwnChannel
	}
	id = broker.NewID()
	return id, s.publish(ctx, broker.Event{Channel: channel, ID: id, Args: args})
}

// Command sends a command to all servers that have called TakeCommands. It returns the id of
// the event of a Broadcast, when the broker has the command: later events come after it.
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

// execute does what a command says to the sockets that are here.
func (s *Server) execute(e broker.Event) {
	var c Command
	if json.Unmarshal(e.Args, &c) != nil {
		return // from a newer server
	}
	found := s.targets(c)
	if len(found) == 0 {
		return
	}
	switch c.Action {
	case Broadcast:
		members := make(map[*session]struct{}, len(found))
		for _, session := range found {
			if !c.Everyone || !session.mustShowToken.Load() {
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

// targets returns the sockets that a command is for.
func (s *Server) targets(c Command) []*session {
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

// expel ends a subscription, if the client has it. The client may subscribe again.
func (s *session) expel(topic broker.Topic) {
	if !s.server.hub.expel(topic, s) {
		return
	}
	s.mu.Lock()
	s.failed = append(s.failed, topic) // the next subscription removes it from topics
	s.mu.Unlock()
	told := answer{kind: Unsub, channel: topic.Name}
	if topic.Pattern {
		told.channel, told.pattern = "", topic.Name
	}
	s.tell(told)
}
