package relay

import (
	"strings"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/grpcwire"
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

// forwardedName is the field that tells workers where a caller is.
const forwardedName = "x-forwarded-for"

// byToken is before the identity of callers who are known by a token.
const byToken = "token:"

// TokenIdentity is the identity of a user whom a token has shown. Workers are told who it
// is by x-cabrank-user.
func TokenIdentity(user string) string { return byToken + user }

// The doors of callers whose connection is a socket, by what they speak.
const (
	socketDoor = "grpc"
	httpDoor   = "http" // neither gRPC nor a form of it: passed on as it is
)

// who is whose a call is, in the forms in which it is needed for each.
//
// Concurrency: immutable, but for calls.
type who struct {
	Caller
	xff   []byte    // "x-forwarded-for: address", encoded; empty without an address
	shown []byte    // fields that tell workers who it is, encoded
	lists int       // and what they add to a header list (RFC 9113 6.5.2)
	key   []byte    // by ByPeer: the name of its key
	text  []byte    // and what the configuration calls it
	calls *outcomes // of its door, in statsTable.doors
}

// whoIs prepares what is needed for the calls of a caller. Called under the lock.
func (st *stand) whoIs(c Caller) who {
	if c.Identity == "" && c.Certificate != "" {
		c.Identity = byCertificate + c.Certificate
	}
	w := who{Caller: c, calls: st.stats.door(c.Door)}
	if c.Certificate != "" {
		w.show(door.ClientField, []byte(c.Certificate))
	}
	if c.Address != "" {
		w.xff = h2.AppendField(nil, forwardedName, c.Address)
	}
	if user, ok := strings.CutPrefix(c.Identity, byToken); ok {
		w.show(door.UserField, grpcwire.AppendMessage(nil, user))
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

// show tells workers something of the caller.
func (w *who) show(name string, value []byte) {
	w.shown = h2.AppendFieldBytes(w.shown, name, value)
	w.lists += len(name) + len(value) + 32
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

// maxKnown bounds the callers behind proxies that a shard has prepared for. All are
// forgotten when there are more: those that come again are prepared for again.
const maxKnown = 4096

// known returns what is needed for the calls of a caller that is one of many on its
// connection.
func (st *stand) known(c Caller) *who {
	w := st.people[c]
	if w == nil {
		if len(st.people) >= maxKnown {
			clear(st.people)
		}
		made := st.whoIs(c)
		w = &made
		st.people[c] = w
	}
	return w
}

// whose returns whose the call is that begins with a block on a stream of the
// connection; nil if nobody waits for it any more.
func (cc *callerConn) whose(stream uint32, b *h2.Block) *who {
	switch {
	case cc.local != nil:
		return cc.whoseLocal(stream, b)
	case cc.st.gate.asks(cc):
		if f := cc.form; f != nil && b.Same != 0 && f.same == b.Same && cc.st.gate.holds(f.pass) {
			cc.pass = f.pass
			return f.who
		}
		cc.pass = cc.shown(b)
		if !cc.proxied {
			return cc.with(cc.pass, &cc.own)
		}
		return cc.with(cc.pass, cc.behind(b))
	case cc.proxied:
		if f := cc.form; f != nil && b.Same != 0 && f.same == b.Same {
			return f.who
		}
		return cc.behind(b)
	}
	return &cc.own
}

// whoseLocal is whose for a connection in this process.
func (cc *callerConn) whoseLocal(stream uint32, b *h2.Block) *who {
	s := cc.local.Stream(stream)
	if s == nil {
		return nil // given up before its HEADERS came here
	}
	w := s.Owner.(*LocalCall).who
	if cc.st.gate.asks(cc) {
		cc.pass = cc.shown(b)
		w = cc.with(cc.pass, w)
	}
	return w
}

// behind returns whose the call of a proxy is: the proxy's own, if it does not say.
func (cc *callerConn) behind(b *h2.Block) *who {
	caller, _, ok := cc.st.forwarded(b)
	if !ok {
		return &cc.own
	}
	return cc.st.known(Caller{Address: caller, Door: cc.own.Door}) // a certificate is the proxy's
}

// forwarded returns the caller that a proxy has named in a request, and the list of who
// stands before it.
func (st *stand) forwarded(b *h2.Block) (caller, before string, ok bool) {
	w, _ := b.Watched(fieldForwardedFor)
	list := string(w.Value)
	if w.Count > 1 { // only the last one was noted
		list = ""
		for name, value := range Fields(b.Enc).All() {
			if name == forwardedName {
				list += "," + value
			}
		}
		list = list[1:]
	}
	return st.conf.proxies.Caller(list)
}
