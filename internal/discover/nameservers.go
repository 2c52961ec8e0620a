package discover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// udpSize is the longest answer that is asked for in one datagram. What is
// longer than any path carries comes in fragments, which get lost (RFC 9715);
// longer answers come over TCP, where 64 KiB bound them.
const udpSize = 1232

// nameservers are the resolver of the real world: they ask the servers of the
// configuration or of resolv.conf.
type nameservers struct {
	conf  resolvConf
	first atomic.Uint32 // the server that answered last is asked first
}

func newNameservers(path string, servers []string) *nameservers {
	return &nameservers{conf: resolvConf{path: path, servers: servers}}
}

// names implements resolver, by the search list and ndots of resolv.conf. What
// the list makes too long for a name is left out.
func (n *nameservers) names(name string) []string {
	return slices.DeleteFunc(n.conf.read().search.NameList(name), func(full string) bool {
		_, is := dns.IsDomainName(full)
		return !is
	})
}

// ask implements resolver. A server that does not answer, or says that it cannot
// tell, is passed over for the next.
func (n *nameservers) ask(ctx context.Context, q question) (reply, error) {
	s := n.conf.read()
	first := int(n.first.Load())
	var last error
	for range s.rounds {
		for i := range s.servers {
			at := (first + i) % len(s.servers)
			said, err := exchange(ctx, s.servers[at], q, s.patience)
			if err == nil {
				n.first.Store(uint32(at))
				return said, nil
			}
			if ctx.Err() != nil {
				return reply{}, context.Cause(ctx)
			}
			last = fmt.Errorf("%s: %w", s.servers[at], err)
		}
	}
	return reply{}, last
}

// exchange asks one server, by UDP and, if the answer is too long for that, by
// TCP (RFC 7766).
func exchange(ctx context.Context, server string, q question, patience time.Duration) (reply, error) {
	m := new(dns.Msg)
	m.SetQuestion(q.name, q.kind)
	m.SetEdns0(udpSize, false)
	answer, err := send(ctx, "udp", server, m, patience)
	if err == nil && answer.Rcode == dns.RcodeFormatError {
		// A server from before EDNS(0): the same question without (RFC 6891, 7).
		m.Extra = nil
		answer, err = send(ctx, "udp", server, m, patience)
	}
	// A datagram that ends within a record is no message, but says that much.
	if answer != nil && answer.Truncated {
		answer, err = send(ctx, "tcp", server, m, patience)
	}
	if err != nil {
		return reply{}, err
	}
	return readAnswer(answer, q)
}

// send makes one exchange over a socket of its own: a new port for each question
// is what makes answers hard to forge (RFC 5452, 9.2).
func send(ctx context.Context, network, server string, m *dns.Msg, patience time.Duration) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := dns.Client{Net: network, Timeout: patience}
	conn, err := client.DialContext(ctx, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) }) // ends the wait
	defer stop()
	answer, _, err := client.ExchangeWithConnContext(ctx, m, conn)
	return answer, err
}

var (
	errOther    = errors.New("the answer is to another question")
	errReferral = errors.New("the server only refers to others")
)

// readAnswer takes out of an answer what was asked for. The error is a server
// that could not tell.
func readAnswer(m *dns.Msg, q question) (reply, error) {
	switch {
	case m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError:
		return reply{}, fmt.Errorf("the server says %s", dns.RcodeToString[m.Rcode])
	case len(m.Question) != 1 || m.Question[0].Qtype != q.kind || dns.CanonicalName(m.Question[0].Name) != dns.CanonicalName(q.name):
		return reply{}, errOther
	case m.Rcode == dns.RcodeSuccess && len(m.Answer) == 0 && !m.Authoritative && !m.RecursionAvailable:
		return reply{}, errReferral // a lame delegation, no word on the name
	}
	r := newReader(m.Answer, q)
	r.read(m.Answer, q.kind)
	if len(r.reply.addresses) == 0 && len(r.reply.services) == 0 {
		return reply{ttl: negativeTTL(m)}, nil
	}
	r.readExtra(m.Extra)
	return r.reply, nil
}
