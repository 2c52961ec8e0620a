package discover

import (
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// maxAliases bounds a chain of CNAME records.
const maxAliases = 16

// reader gathers the records of an answer that belong to the question.
type reader struct {
	owner string // where the chain of aliases ends
	reply reply
}

// newReader follows the aliases of a question.
func newReader(records []record, asked dnsmessage.Question) *reader {
	r := &reader{owner: lower(asked.Name)}
	r.reply.ttl = -1
	for range maxAliases {
		before := r.owner
		for _, record := range records {
			if record.kind == dnsmessage.TypeCNAME && record.owner == r.owner {
				r.owner = record.target
				r.limitTTL(record.ttl)
				break
			}
		}
		if r.owner == before {
			break
		}
	}
	return r
}

// limitTTL lowers the reply's TTL to that of a record. A TTL with the sign bit set counts as
// zero (RFC 2181, 8).
func (r *reader) limitTTL(seconds uint32) {
	ttl := time.Duration(seconds) * time.Second
	if seconds > 1<<31-1 {
		ttl = 0
	}
	if r.reply.ttl < 0 || ttl < r.reply.ttl {
		r.reply.ttl = ttl
	}
}

// read takes the records of one kind that belong to the owner.
func (r *reader) read(records []record, kind dnsmessage.Type) {
	for _, record := range records {
		switch {
		case record.kind != kind || record.owner != r.owner:
		case kind == dnsmessage.TypeSRV:
			r.reply.services = append(r.reply.services, service{record.priority, record.port, record.target})
			r.limitTTL(record.ttl)
		case callable(record.address):
			r.reply.addresses = append(r.reply.addresses, record.address)
			r.limitTTL(record.ttl)
		}
	}
}

// readExtra takes the addresses of the services' targets, which servers may send
// with the answer (RFC 2782).
func (r *reader) readExtra(records []record) {
	if len(r.reply.services) == 0 {
		return
	}
	r.reply.extra = make(map[string][]netip.Addr)
	for _, s := range r.reply.services {
		r.reply.extra[s.target] = nil
	}
	for _, record := range records {
		if _, wanted := r.reply.extra[record.owner]; wanted && callable(record.address) {
			r.reply.extra[record.owner] = append(r.reply.extra[record.owner], record.address)
			r.limitTTL(record.ttl)
		}
	}
}

// callable reports whether calls can be sent to an address. Filters answer with the
// unspecified address for names that they block, and a connection to it would reach
// this machine.
func callable(address netip.Addr) bool {
	noZone := address.Is6() && address.IsLinkLocalUnicast() // it would need a zone
	return address.IsValid() && !noZone && !address.IsUnspecified() && !address.IsMulticast()
}

// negativeTTL is the TTL of an answer without records (RFC 2308, 5).
func negativeTTL(m *message) time.Duration {
	for _, record := range m.authority {
		if record.kind == dnsmessage.TypeSOA {
			return time.Duration(min(record.ttl, record.least)) * time.Second
		}
	}
	return 0
}
