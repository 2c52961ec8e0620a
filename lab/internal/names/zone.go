package names

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// MaxAddresses bounds the addresses of the name: an answer has 64 KiB.
const MaxAddresses = 1000

// zone is one name and its addresses, which may change.
type zone struct {
	mu        sync.Mutex // guards what follows
	name      dnsmessage.Name
	ttl       time.Duration
	addresses []netip.Addr // IPv4
}

// Say replaces what the server knows: a name with a dot at its end, its IPv4 addresses,
// and how long that holds, in whole seconds.
//
// Errors: one line: what is no name or no such address; more than MaxAddresses.
func (z *zone) Say(name string, ttl time.Duration, addresses ...netip.Addr) error {
	n, err := dnsmessage.NewName(name)
	if err != nil || !strings.HasSuffix(name, ".") {
		return fmt.Errorf("%q is no name with a dot at its end", name)
	}
	if len(addresses) > MaxAddresses {
		return fmt.Errorf("%d addresses, at most %d are allowed", len(addresses), MaxAddresses)
	}
	for _, a := range addresses {
		if !a.Is4() {
			return fmt.Errorf("%s is no IPv4 address", a)
		}
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.name, z.ttl, z.addresses = n, ttl, addresses
	return nil
}

// answer returns the answer to a message, or nothing to what is no question. Of what
// is longer than most bytes, or what the question allows, only the head is sent, with
// the word that there is more; most is 0 if there is no bound.
func (z *zone) answer(message []byte, most int) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(message)
	if err != nil || head.Response {
		return nil
	}
	asked, err := p.Question()
	if err != nil {
		return nil
	}
	answer := dnsmessage.Message{Header: dnsmessage.Header{
		ID: head.ID, Response: true, Authoritative: true, RecursionDesired: head.RecursionDesired, RecursionAvailable: true,
	}, Questions: []dnsmessage.Question{asked}}
	z.complete(&answer)
	b, err := answer.Pack()
	if err != nil {
		return nil
	}
	if most > 0 && len(b) > max(most, datagram(&p)) {
		answer.Answers, answer.Truncated = nil, true
		b, _ = answer.Pack() // as before, with less
	}
	return b
}

// complete adds to an empty answer what is known. The addresses come in an order drawn
// by chance, as from the name servers of clusters: whoever takes the first one does not
// always get the same.
func (z *zone) complete(answer *dnsmessage.Message) {
	z.mu.Lock()
	defer z.mu.Unlock()
	asked := answer.Questions[0]
	head := dnsmessage.ResourceHeader{Name: z.name, Class: dnsmessage.ClassINET, TTL: uint32(z.ttl / time.Second)}
	switch {
	case len(z.addresses) == 0 || !strings.EqualFold(asked.Name.String(), z.name.String()):
		answer.RCode = dnsmessage.RCodeNameError
	case asked.Type == dnsmessage.TypeA:
		for _, i := range rand.Perm(len(z.addresses)) {
			answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: z.addresses[i].As4()}})
		}
	default: // it has no such record, for as long as its others hold (RFC 2308, section 2.2)
		nothing := &dnsmessage.SOAResource{
			NS: dnsmessage.MustNewName("ns.test."), MBox: dnsmessage.MustNewName("nobody.test."), MinTTL: head.TTL,
		}
		answer.Authorities = append(answer.Authorities, dnsmessage.Resource{Header: head, Body: nothing})
	}
}

// datagram is what a question says that an answer in one datagram may have (EDNS(0),
// RFC 6891), or 0.
func datagram(p *dnsmessage.Parser) int {
	if p.SkipAllQuestions() != nil || p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return 0
	}
	for {
		head, err := p.AdditionalHeader()
		if err != nil {
			return 0
		}
		if head.Type == dnsmessage.TypeOPT {
			return int(head.Class)
		}
		if p.SkipAdditional() != nil {
			return 0
		}
	}
}
