package discover

import (
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// maxAliases bounds a chain of CNAME records.
const maxAliases = 16

// reader gathers the records of an answer that belong to the question.
type reader struct {
	owner string // where the chain of aliases ends
	reply reply
}

// newReader follows the aliases of a question.
func newReader(records []dns.RR, q question) *reader {
	r := &reader{owner: dns.CanonicalName(q.name)}
	r.reply.ttl = -1
	for range maxAliases {
		before := r.owner
		for _, record := range records {
			if alias, is := record.(*dns.CNAME); is && dns.CanonicalName(alias.Hdr.Name) == r.owner {
				r.owner = dns.CanonicalName(alias.Target)
				r.hold(alias.Hdr.Ttl)
				break
			}
		}
		if r.owner == before {
			break
		}
	}
	return r
}

// hold takes in for how long a record holds. A time with the sign bit counts as
// none (RFC 2181, 8).
func (r *reader) hold(seconds uint32) {
	ttl := time.Duration(seconds) * time.Second
	if seconds > 1<<31-1 {
		ttl = 0
	}
	if r.reply.ttl < 0 || ttl < r.reply.ttl {
		r.reply.ttl = ttl
	}
}

// read takes the records of one kind that belong to the owner.
func (r *reader) read(records []dns.RR, kind uint16) {
	for _, record := range records {
		head := record.Header()
		if head.Rrtype != kind || dns.CanonicalName(head.Name) != r.owner {
			continue
		}
		if s, is := record.(*dns.SRV); is {
			r.reply.services = append(r.reply.services, service{s.Priority, s.Port, dns.CanonicalName(s.Target)})
			r.hold(head.Ttl)
		} else if address, is := addressOf(record); is {
			r.reply.addresses = append(r.reply.addresses, address)
			r.hold(head.Ttl)
		}
	}
}

// readExtra takes the addresses of services' targets, which servers may send
// along (RFC 2782).
func (r *reader) readExtra(records []dns.RR) {
	if len(r.reply.services) == 0 {
		return
	}
	r.reply.extra = make(map[string][]netip.Addr)
	for _, s := range r.reply.services {
		r.reply.extra[s.target] = nil
	}
	for _, record := range records {
		host := dns.CanonicalName(record.Header().Name)
		if _, wanted := r.reply.extra[host]; !wanted {
			continue
		}
		if address, is := addressOf(record); is {
			r.reply.extra[host] = append(r.reply.extra[host], address)
			r.hold(record.Header().Ttl)
		}
	}
}

// addressOf returns the address of an A or AAAA record, if calls can be sent
// there. The unspecified address is what filters answer for names that they
// block, and a connection to it would reach this machine.
func addressOf(record dns.RR) (netip.Addr, bool) {
	var ip net.IP
	switch record := record.(type) {
	case *dns.A:
		ip = record.A
	case *dns.AAAA:
		ip = record.AAAA
	}
	address, ok := netip.AddrFromSlice(ip)
	address = address.Unmap()
	noZone := address.Is6() && address.IsLinkLocalUnicast() // it would need one
	return address, ok && !noZone && !address.IsUnspecified() && !address.IsMulticast()
}

// negativeTTL is for how long it holds that there is nothing (RFC 2308, 5).
func negativeTTL(m *dns.Msg) time.Duration {
	for _, record := range m.Ns {
		if soa, is := record.(*dns.SOA); is {
			return time.Duration(min(soa.Hdr.Ttl, soa.Minttl)) * time.Second
		}
	}
	return 0
}
