package discover

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// udpSize is the longest answer in one datagram. A datagram that is too long for the
// path comes in fragments, which get lost (RFC 9715); longer answers come over TCP,
// where 64 KiB bound them.
const udpSize = 1232

// appendQuestion appends a message that asks a question, with EDNS(0) or without.
//
// Errors: the name is not valid: too long, with an empty label or without a dot at its
// end.
func appendQuestion(b []byte, id uint16, q question, edns bool) ([]byte, error) {
	name, err := dnsmessage.NewName(q.name)
	if err != nil {
		return b, err
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: q.kind, Class: dnsmessage.ClassINET}},
	}
	if edns {
		var head dnsmessage.ResourceHeader
		if err := head.SetEDNS0(udpSize, dnsmessage.RCodeSuccess, false); err != nil {
			return b, err
		}
		m.Additionals = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.OPTResource{}}}
	}
	return m.AppendPack(b)
}

// message is a message of a name server.
type message struct {
	dnsmessage.Header

	questions                 []dnsmessage.Question
	answers, authority, extra []record
}

// record is a record of one of the kinds that are read; others are skipped.
type record struct {
	owner    string // in lower case, with a dot at its end
	kind     dnsmessage.Type
	ttl      uint32     // seconds
	address  netip.Addr // of A and AAAA
	target   string     // of CNAME and SRV, as owner
	priority uint16     // of SRV
	port     uint16     // of SRV
	least    uint32     // of SOA: MINIMUM, seconds
}

// readMessage reads a message.
//
// Errors: b is not a message, or ends too early; after a whole header the result then
// has the part before the error.
func readMessage(b []byte) (*message, error) {
	var p dnsmessage.Parser
	head, err := p.Start(b)
	if err != nil {
		return nil, err
	}
	m := &message{Header: head}
	if m.questions, err = p.AllQuestions(); err != nil {
		return m, err
	}
	if m.answers, err = readRecords(&p, p.AnswerHeader, p.SkipAnswer); err != nil {
		return m, err
	}
	if m.authority, err = readRecords(&p, p.AuthorityHeader, p.SkipAuthority); err != nil {
		return m, err
	}
	m.extra, err = readRecords(&p, p.AdditionalHeader, p.SkipAdditional)
	return m, err
}

// readRecords reads one section.
func readRecords(p *dnsmessage.Parser, next func() (dnsmessage.ResourceHeader, error), skip func() error) ([]record, error) {
	var records []record
	for {
		head, err := next()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		r := record{owner: lower(head.Name), kind: head.Type, ttl: head.TTL}
		known, err := r.read(p)
		if err == nil && !known {
			err = skip()
		}
		if err != nil {
			return records, err
		}
		if known {
			records = append(records, r)
		}
	}
}

// read reads the content of a record. known is false for kinds that are not read.
func (r *record) read(p *dnsmessage.Parser) (known bool, err error) {
	switch r.kind {
	case dnsmessage.TypeA:
		var a dnsmessage.AResource
		a, err = p.AResource()
		r.address = netip.AddrFrom4(a.A)
	case dnsmessage.TypeAAAA:
		var a dnsmessage.AAAAResource
		a, err = p.AAAAResource()
		r.address = netip.AddrFrom16(a.AAAA).Unmap()
	case dnsmessage.TypeCNAME:
		var c dnsmessage.CNAMEResource
		c, err = p.CNAMEResource()
		r.target = lower(c.CNAME)
	case dnsmessage.TypeSRV:
		var s dnsmessage.SRVResource
		s, err = p.SRVResource()
		r.target, r.priority, r.port = lower(s.Target), s.Priority, s.Port
	case dnsmessage.TypeSOA:
		// Only its end is needed. The mail address before may have a dot within a label,
		// which the library does not accept as a name.
		var u dnsmessage.UnknownResource
		u, err = p.UnknownResource()
		if at := len(u.Data) - 4; at >= 0 {
			r.least = binary.BigEndian.Uint32(u.Data[at:])
		}
	default:
		return false, nil
	}
	return true, err
}

// lower returns a name in lower case: the case of a name does not matter (RFC 4343).
func lower(n dnsmessage.Name) string {
	name := n.Data[:n.Length]
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			name[i] = c + 'a' - 'A'
		}
	}
	return string(name)
}

// rcodeName returns the name of a server's response code, as dig shows it.
func rcodeName(code dnsmessage.RCode) string {
	known := [...]string{"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"}
	if int(code) < len(known) {
		return known[code]
	}
	return code.String()
}

// kindName returns the kind of a question, as dig shows it.
func kindName(kind dnsmessage.Type) string { return strings.TrimPrefix(kind.String(), "Type") }
