package nameserver

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

// Zone is a server that answers from records, which may change.
//
// Life: StartZone, ended by the end of the test; or ServeZone, ended by Close.
// Concurrency: any.
type Zone struct {
	*Server
	mixed bool // the order of answers is drawn

	mu      sync.Mutex // guards what follows
	records []dns.RR
	sick    bool
}

// ServeZone serves records in the form of a zone file. They come in an order drawn by
// chance, as from the name servers of clusters: whoever takes the first one does not
// always get the same.
func ServeZone(lines ...string) (z *Zone, err error) {
	z = &Zone{mixed: true}
	z.Say(lines...)
	z.Server, err = serve(z.answer)
	return z, err
}

// StartZone serves records in the form of a zone file, in the order of the lines.
func StartZone(t TB, lines ...string) *Zone {
	t.Helper()
	z := &Zone{}
	z.Say(lines...)
	z.Server = Start(t, z.answer)
	return z
}

// Say replaces all records, and panics on lines that are none.
func (z *Zone) Say(lines ...string) {
	records := read(lines)
	z.mu.Lock()
	defer z.mu.Unlock()
	z.records = records
}

// Fall has every question answered SERVFAIL, or no more.
func (z *Zone) Fall(sick bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.sick = sick
}

// answer completes an empty answer to its question from the records.
func (z *Zone) answer(answer *dns.Msg, _ string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	answer.Authoritative = true
	if z.sick {
		answer.Rcode = dns.RcodeServerFailure
		return
	}
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
	if all := answer.Answer; z.mixed {
		rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
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
