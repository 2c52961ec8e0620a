package relay

import (
	"github.com/cabrank/cabrank/internal/h2"
)

// Caller is who makes calls, as far as the code knows that brings them in. Nobody
// can say it over a socket.
type Caller struct {
	Address     string // where it is, without port, "": not known; told to workers by x-forwarded-for
	Identity    string // who it has shown to be, "": nobody has asked; an account of its own by ByPeer
	Certificate string // the name in its certificate, "": it has shown none; told to workers by x-cabrank-client
	Door        string // by which it came in; a label of the metrics, so that there are few
}

// byCertificate is before the identity of callers who are known by their certificate alone.
const byCertificate = "cert:"

// socketDoor is the door of callers whose connection is a socket.
const socketDoor = "grpc"

// who is whose a call is, in the forms in which it is needed for each.
//
// Concurrency: immutable, but for calls.
type who struct {
	Caller
	xff   []byte  // "x-forwarded-for: address", encoded; empty without an address
	shown []byte  // "x-cabrank-client: name", encoded; empty without a certificate
	key   []byte  // by ByPeer: the name of its key
	text  []byte  // and what the configuration calls it
	calls *uint64 // of its door, in statsTable.doors
}

// whoIs prepares what is needed for the calls of a caller. Called under the lock.
func (st *stand) whoIs(c Caller) who {
	if c.Identity == "" && c.Certificate != "" {
		c.Identity = byCertificate + c.Certificate
	}
	w := who{Caller: c, calls: st.stats.door(c.Door)}
	if c.Certificate != "" {
		w.shown = h2.AppendField(nil, clientName, c.Certificate)
	}
	if c.Address != "" {
		w.xff = h2.AppendField(nil, "x-forwarded-for", c.Address)
	}
	n := &st.relay.settings().naming
	switch {
	case c.Identity != "":
		w.text = []byte(c.Identity)
		w.key = append([]byte(identityKey), n.name(w.text, nil)...)
	case c.Address != "":
		w.text = []byte(c.Address)
		w.key = n.name(w.text, nil)
	default:
		w.text, w.key = []byte(unixPeer), []byte(unixPeer)
	}
	return w
}

// String names the caller in the log.
func (w *who) String() string {
	switch {
	case w.Identity == "":
		return w.Address
	case w.Address == "":
		return w.Identity
	default:
		return w.Identity + " at " + w.Address
	}
}

// whose returns whose the call is that begins on a stream of the connection; nil if
// nobody waits for it any more.
func (cc *callerConn) whose(stream uint32) *who {
	if cc.local == nil {
		return &cc.own
	}
	s := cc.local.Stream(stream)
	if s == nil {
		return nil // given up before its HEADERS came here
	}
	return s.Owner.(*LocalCall).who
}
