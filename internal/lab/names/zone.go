package names

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

// Zone is a server that answers from records, which may change.
//
// Life: ServeZone; ended by Close. Concurrency: any.
type Zone struct {
	*Server

	mu      sync.Mutex // guards what follows
	records []dns.RR
	mixed   bool // answers list records in an order of their own
}

// ServeZone serves records in the form of a zone file.
func ServeZone(lines ...string) (*Zone, error) {
	z := &Zone{}
	if err := z.Say(lines...); err != nil {
		return nil, err
	}
	var err error
	z.Server, err = Serve(func(answer *dns.Msg, _ string) { z.Answer(answer) })
	return z, err
}

// Say replaces all records.
func (z *Zone) Say(lines ...string) error {
	records, err := Read(lines)
	if err != nil {
		return err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.records = records
	return nil
}

// Mix has each answer list its records in another order, drawn by chance, as the name
// servers of clusters do: whoever takes the first address does not always get the same.
func (z *Zone) Mix() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.mixed = true
}

// Answer completes an empty answer to its question from the records.
func (z *Zone) Answer(answer *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	asked := answer.Question[0]
	var other dns.RR // of the same name
	for _, record := range z.records {
		switch {
		case !strings.EqualFold(record.Header().Name, asked.Name):
		case record.Header().Rrtype == asked.Qtype:
			answer.Answer = append(answer.Answer, dns.Copy(record))
		default:
			other = record
		}
	}
	answer.Authoritative = true
	if z.mixed {
		rand.Shuffle(len(answer.Answer), func(i, j int) {
			answer.Answer[i], answer.Answer[j] = answer.Answer[j], answer.Answer[i]
		})
	}
	switch {
	case len(answer.Answer) > 0:
	case other != nil:
		answer.Ns = append(answer.Ns, nothing(other))
	default:
		answer.Rcode = dns.RcodeNameError
	}
}

// nothing says that a name has no records of a type, for as long as those hold that
// it has (RFC 2308, section 2.2).
func nothing(has dns.RR) dns.RR {
	ttl := has.Header().Ttl
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: has.Header().Name, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ttl},
		Ns:  "ns.test.", Mbox: "nobody.test.", Minttl: ttl,
	}
}

// Read reads records in the form of a zone file.
func Read(lines []string) (records []dns.RR, err error) {
	for _, line := range lines {
		record, err := dns.NewRR(line)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}
