package push

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/socket"
)

const (
	// mostBytes bounds a request.
	mostBytes = 1 << 20
	// mostName bounds the name of a channel, a user or a connection, in bytes.
	mostName = 1024
	// mostReason is what a close frame has room for, in bytes. Source: RFC 6455, 5.5.
	mostReason = 123
	// brokerTime is how long the broker may take for a request.
	brokerTime = 5 * time.Second
)

// Sockets are those of this server and of others at its broker.
type Sockets interface {
	// Publish publishes an event and returns its id when the broker has it.
	Publish(ctx context.Context, channel string, args json.RawMessage) (id string, err error)
	// Command has sockets obey, and returns the id of its event when the broker has it.
	Command(ctx context.Context, c socket.Command) (id string, err error)
}

// request is one request, whichever way it came. Its JSON is that of HTTP.
type request struct {
	User       string          `json:"user"`
	Connection string          `json:"connection"`
	Everyone   bool            `json:"everyone"`
	Channel    *string         `json:"channel"`
	Pattern    bool            `json:"pattern"`
	Args       json.RawMessage `json:"args"`
	Code       int             `json:"code"`
	Reason     string          `json:"reason"`
}

// badRequestError is an error of who asks.
type badRequestError string

func (e badRequestError) Error() string { return string(e) }

// publish publishes an event.
func publish(ctx context.Context, to Sockets, r *request) (id string, err error) {
	if err := r.check("channel", "args"); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, brokerTime)
	defer cancel()
	return to.Publish(ctx, *r.Channel, r.Args)
}

// command has sockets obey.
func command(ctx context.Context, to Sockets, action socket.Action, r *request) (id string, err error) {
	if err := r.checkFor(action); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, brokerTime)
	defer cancel()
	c := socket.Command{
		Action: action, User: r.User, Connection: r.Connection, Everyone: r.Everyone,
		Pattern: r.Pattern, Args: r.Args, Code: r.Code, Reason: r.Reason,
	}
	if r.Channel != nil {
		c.Channel = *r.Channel
	}
	id, err = to.Command(ctx, c)
	if action != socket.Broadcast {
		id = "" // it is no event
	}
	return id, err
}

func (r *request) checkFor(action socket.Action) error {
	switch action {
	case socket.Broadcast:
		return r.check("to", "everyone", "channel", "args")
	case socket.Disconnect:
		return r.check("to", "code", "reason")
	case socket.Unsubscribe:
		return r.check("to", "channel", "pattern")
	}
	return badRequestError("unknown action")
}

// check holds a request against what its kind has; "to" is a user or a connection,
// and with "everyone" also that.
func (r *request) check(fields ...string) error {
	has := map[string]bool{}
	for _, field := range fields {
		has[field] = true
	}
	given := 0
	for _, is := range []bool{r.User != "", r.Connection != "", r.Everyone} {
		if is {
			given++
		}
	}
	switch {
	case !has["to"] && given > 0:
		return badRequestError("user, connection and everyone have no place here")
	case r.Everyone && !has["everyone"]:
		return badRequestError("everyone has no place here: name a user or a connection")
	case has["to"] && given != 1:
		return badRequestError("want one of user and connection" + map[bool]string{true: `, or "everyone": true`}[has["everyone"]])
	case has["channel"] != (r.Channel != nil):
		return badRequestError(map[bool]string{true: "channel is missing", false: "channel has no place here"}[has["channel"]])
	case r.Args != nil && !has["args"]:
		return badRequestError("args have no place here")
	case r.Pattern && !has["pattern"]:
		return badRequestError("pattern has no place here")
	case (r.Code != 0 || r.Reason != "") && !has["code"]:
		return badRequestError("code and reason have no place here")
	}
	return r.checkValues()
}

func (r *request) checkValues() error {
	for _, name := range []string{r.User, r.Connection, r.channel()} {
		if len(name) > mostName || !utf8.ValidString(name) {
			return badRequestError("a name is longer than 1,024 bytes, or is not UTF-8")
		}
	}
	switch {
	case r.Args != nil && (!json.Valid(r.Args) || !utf8.Valid(r.Args)):
		return badRequestError("args are no JSON")
	case r.Code != 0 && r.Code != 1000 && r.Code != 1008 && (r.Code < 3000 || r.Code > 4999):
		return badRequestError("code: want 1000, 1008, or 3000 to 4999")
	case len(r.Reason) > mostReason || !utf8.ValidString(r.Reason):
		return badRequestError("reason is longer than 123 bytes, or is not UTF-8")
	}
	return nil
}

func (r *request) channel() string {
	if r.Channel == nil {
		return ""
	}
	return *r.Channel
}

// told is an error in words for who asked: of the broker no more than that.
func told(err error) (text string, bad bool) {
	var mistake badRequestError
	switch {
	case errors.As(err, &mistake), errors.Is(err, socket.ErrOwnChannel):
		return strings.TrimSpace(err.Error()), true
	case errors.Is(err, context.DeadlineExceeded):
		return "the broker does not answer: it is not known whether it has this", false
	}
	return "the broker cannot be reached", false
}
