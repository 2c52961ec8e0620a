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

// callerID is the identity of a caller, encoded for headers, fairness and metrics.
//
// Concurrency: immutable, but for calls.
type callerID struct {
	Caller
	xff      []byte    // "x-forwarded-for: address", encoded; empty without an address
	fields   []byte    // fields that tell workers who it is, encoded
	listSize int       // and what they add to a header list (RFC 9113 6.5.2)
	key      []byte    // by ByPeer: the name of its key
	text     []byte    // and what the configuration calls it
	outcomes *outcomes // of its door, in statsTable.doors
}

// newCallerID prepares what is needed for the calls of a caller. Called under the lock.
func (st *shardState) newCallerID(c Caller) callerID {
	if c.Identity == "" && c.Certificate != "" {
		c.Identity = byCertificate + c.Certificate
	}
	id := callerID{Caller: c, outcomes: st.stats.door(c.Door)}
	if c.Certificate != "" {
		id.addField(door.ClientField, []byte(c.Certificate))
	}
	if c.Address != "" {
		id.xff = h2.AppendField(nil, forwardedName, c.Address)
	}
	if user, ok := strings.CutPrefix(c.Identity, byToken); ok {
		id.addField(door.UserField, grpcwire.AppendMessage(nil, user))
	}
	n := &st.relay.settings().naming
	switch {
	case c.Identity != "":
		id.text = []byte(c.Identity)
		id.key = append([]byte(identityKey), n.name(id.text, nil)...)
	case c.Address != "":
		id.text = []byte(c.Address)
		id.key = n.name(id.text, nil)
	default:
		id.text, id.key = []byte(unixPeer), []byte(unixPeer)
	}
	return id
}

// addField tells workers something of the caller.
func (id *callerID) addField(name string, value []byte) {
	id.fields = h2.AppendFieldBytes(id.fields, name, value)
	id.listSize += len(name) + len(value) + 32
}

// String names the caller in the log.
func (id *callerID) String() string {
	switch {
	case id.Identity == "":
		return id.Address
	case id.Address == "":
		return id.Identity
	default:
		return id.Identity + " at " + id.Address
	}
}

// maxCallerIDs bounds the callers behind proxies that a shard has prepared for. All are
// forgotten when there are more: those that come again are prepared for again.
const maxCallerIDs = 4096

// callerIDOf returns what is needed for the calls of a caller that is one of many on its
// connection.
func (st *shardState) callerIDOf(c Caller) *callerID {
	id := st.callerIDs[c]
	if id == nil {
		if len(st.callerIDs) >= maxCallerIDs {
			clear(st.callerIDs)
		}
		made := st.newCallerID(c)
		id = &made
		st.callerIDs[c] = id
	}
	return id
}

// identify returns the caller of the call that begins with a block on a stream of the
// connection; nil if nobody waits for it any more.
func (cc *callerConn) identify(stream uint32, b *h2.Block) *callerID {
	switch {
	case cc.local != nil:
		return cc.identifyLocal(stream, b)
	case cc.st.tokens.needsToken(cc):
		if h := cc.head; h != nil && b.Same != 0 && h.same == b.Same && cc.st.tokens.valid(h.pass) {
			cc.pass = h.pass
			return h.callerID
		}
		cc.pass = cc.cachedPass(b)
		if !cc.proxied {
			return cc.withPass(cc.pass, &cc.callerID)
		}
		return cc.withPass(cc.pass, cc.identifyForwarded(b))
	case cc.proxied:
		if h := cc.head; h != nil && b.Same != 0 && h.same == b.Same {
			return h.callerID
		}
		return cc.identifyForwarded(b)
	}
	return &cc.callerID
}

// identifyLocal is identify for a connection in this process.
func (cc *callerConn) identifyLocal(stream uint32, b *h2.Block) *callerID {
	s := cc.local.Stream(stream)
	if s == nil {
		return nil // given up before its HEADERS came here
	}
	id := s.Owner.(*LocalCall).callerID
	if cc.st.tokens.needsToken(cc) {
		cc.pass = cc.cachedPass(b)
		id = cc.withPass(cc.pass, id)
	}
	return id
}

// identifyForwarded returns the caller that a proxy names, or the proxy if it names none.
func (cc *callerConn) identifyForwarded(b *h2.Block) *callerID {
	caller, _, ok := cc.st.forwarded(b)
	if !ok {
		return &cc.callerID
	}
	return cc.st.callerIDOf(Caller{Address: caller, Door: cc.callerID.Door}) // a certificate is the proxy's
}

// forwarded returns the caller that a proxy has named in a request, and the list of who
// stands before it.
func (st *shardState) forwarded(b *h2.Block) (caller, before string, ok bool) {
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
