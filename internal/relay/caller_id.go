package relay

import (
	"strings"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/stats"
)

// Caller describes who makes calls. Code of this process fills it in; callers cannot send it
// over a socket.
type Caller struct {
	Address     string // without port, "": unknown; workers get it as x-forwarded-for
	Identity    string // its verified identity, "": none was asked for; its account with ByPeer
	Certificate string // the name in its certificate, "": none; workers get it as x-cabrank-client
	Door        string // by which it came in; a label of the metrics, from a small set
}

// byCertificate is the prefix of identities that come from a certificate.
const byCertificate = "cert:"

// forwardedName is the field with the caller's address for workers.
const forwardedName = "x-forwarded-for"

// byToken is the prefix of identities that come from a token.
const byToken = "token:"

// TokenIdentity returns the identity of a token's user. Workers get the user as
// x-cabrank-user.
func TokenIdentity(user string) string { return byToken + user }

// The doors of callers over sockets, by protocol.
const (
	socketDoor = "grpc"
	httpDoor   = "http" // not gRPC: passed on as it is
)

// callerID is the identity of a caller, encoded for headers, fairness and metrics.
//
// Concurrency: immutable, but for calls.
type callerID struct {
	Caller
	xff      []byte          // "x-forwarded-for: address", encoded; empty without an address
	fields   []byte          // fields that identify it to workers, encoded
	listSize int             // size of fields in a header list (RFC 9113 6.5.2)
	key      []byte          // the name of its key with ByPeer
	text     []byte          // that key in the words of the configuration
	outcomes *stats.Outcomes // of its door
}

// newCallerID returns the callerID of a caller. Called under the lock.
func (st *shardState) newCallerID(c Caller) callerID {
	if c.Identity == "" && c.Certificate != "" {
		c.Identity = byCertificate + c.Certificate
	}
	id := callerID{Caller: c, outcomes: st.door(c.Door)}
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

// addField adds a field for workers.
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

// maxCallerIDs bounds the callerIDs that a shard keeps for callers behind proxies. Above it
// the shard forgets all of them, and makes them anew.
const maxCallerIDs = 4096

// callerIDOf returns the callerID of a caller that shares its connection with others.
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
// connection; nil if the call was given up.
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
		return nil // given up before its HEADERS came
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
	if w.Count > 1 { // the engine noted only the last one
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
