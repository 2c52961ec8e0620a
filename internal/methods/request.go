package methods

import (
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
)

// request is the beginning of a call.
func (c *caller) request(who *broker.Caller, path string, left time.Duration, body []byte) relay.LocalRequest {
	r := relay.LocalRequest{Head: head(who, path, left), Body: body, End: true}
	if who != c.known { // it has shown who it is since its first call
		now := told(who)
		r.Caller = &now
	}
	return r
}

// head returns the fields of a call. That which names the socket cannot come from
// elsewhere: the relay takes it out of what callers send. It tells of the user itself.
func head(who *broker.Caller, path string, left time.Duration) relay.Fields {
	f := make(relay.Fields, 0, 256+len(path))
	f = f.Add(":method", "POST").Add(":scheme", "http").Add(":path", path).Add(":authority", Door)
	f = f.Add("te", "trailers").Add("content-type", "application/grpc").Add("user-agent", "cabrank-socket")
	f = f.Add("grpc-timeout", string(grpcwire.AppendTimeout(nil, max(left, 1))))
	if who.ID != "" {
		f = f.Add(door.SocketField, who.ID)
	}
	return f
}
