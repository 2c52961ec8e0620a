// Package callers is who a caller is and what it may hold: names and identities, the tokens
// that prove them, the keys by which callers share slots, and the places of their
// connections.
//
// Start from ID, Keyring and Sources. The package is handed addresses, names and times. It
// does not know calls, streams or shards: what it has of a shard is guarded by that shard's
// lock.
package callers

import (
	"hash/maphash"
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

const (
	// ForwardedFor is the field with the caller's address for workers.
	ForwardedFor = "x-forwarded-for"
	// The prefixes of identities that come from a certificate, and from a token.
	byCertificate = "cert:"
	byToken       = "token:"
)

// TokenIdentity returns the identity of a token's user, "" for none. Workers get the user as
// x-cabrank-user.
func TokenIdentity(user string) string {
	if user == "" {
		return ""
	}
	return byToken + user
}

// ID is the identity of a caller, encoded for headers, fairness and metrics.
//
// Concurrency: immutable, but for Outcomes.
type ID struct {
	Caller
	Forwarded []byte          // "x-forwarded-for: address", encoded; empty without an address
	Fields    []byte          // fields that identify it to workers, encoded
	ListSize  int             // size of Fields in a header list (RFC 9113 6.5.2)
	Outcomes  *stats.Outcomes // of the calls of its door
	key       []byte          // the name of its key with ByPeer
	text      []byte          // that key in the words of the configuration
}

// addField adds a field for workers.
func (id *ID) addField(name string, value []byte) {
	id.Fields = h2.AppendFieldBytes(id.Fields, name, value)
	id.ListSize += len(name) + len(value) + 32
}

// String names the caller in the log.
func (id *ID) String() string {
	switch {
	case id.Identity == "":
		return id.Address
	case id.Address == "":
		return id.Identity
	default:
		return id.Identity + " at " + id.Address
	}
}

// maxShared bounds the IDs that a shard keeps for callers behind proxies. Above it the shard
// forgets all of them, and makes them anew.
const maxShared = 4096

// IDs makes the IDs of one shard's callers, and has the counts of their doors.
//
// Concurrency: guarded by the lock of its shard.
type IDs struct {
	seed   maphash.Seed // as Naming.Seed
	doors  map[string]*stats.Outcomes
	shared map[Caller]*ID // of callers that share connections
}

// NewIDs returns IDs of no callers.
func NewIDs(seed maphash.Seed) IDs {
	return IDs{seed: seed, doors: make(map[string]*stats.Outcomes), shared: make(map[Caller]*ID)}
}

// New returns the ID of a caller.
func (s *IDs) New(c Caller) ID {
	if c.Identity == "" && c.Certificate != "" {
		c.Identity = byCertificate + c.Certificate
	}
	id := ID{Caller: c, Outcomes: s.Door(c.Door)}
	if c.Certificate != "" {
		id.addField(door.ClientField, []byte(c.Certificate))
	}
	if c.Address != "" {
		id.Forwarded = h2.AppendField(nil, ForwardedFor, c.Address)
	}
	if user, ok := strings.CutPrefix(c.Identity, byToken); ok {
		id.addField(door.UserField, grpcwire.AppendMessage(nil, user))
	}
	switch {
	case c.Identity != "":
		id.text = []byte(c.Identity)
		id.key = append([]byte(identityKey), nameOf(id.text, nil, s.seed)...)
	case c.Address != "":
		id.text = []byte(c.Address)
		id.key = nameOf(id.text, nil, s.seed)
	default:
		id.text, id.key = []byte(UnixPeer), []byte(UnixPeer)
	}
	return id
}

// Of returns the ID of a caller that shares its connection with others.
func (s *IDs) Of(c Caller) *ID {
	id := s.shared[c]
	if id == nil {
		if len(s.shared) >= maxShared {
			clear(s.shared)
		}
		made := s.New(c)
		id = &made
		s.shared[c] = id
	}
	return id
}

// Door returns the counts of a door's calls.
func (s *IDs) Door(name string) *stats.Outcomes {
	n := s.doors[name]
	if n == nil {
		n = new(stats.Outcomes)
		s.doors[name] = n
	}
	return n
}

// AddTo adds the counts of all doors, by door and code.
func (s *IDs) AddTo(all map[string]map[string]uint64) {
	for name, calls := range s.doors {
		if all[name] == nil {
			all[name] = make(map[string]uint64)
		}
		calls.AddTo(all[name])
	}
}
