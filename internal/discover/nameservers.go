package discover

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// nameservers is the resolver outside tests: it asks the servers of the configuration
// or of resolv.conf.
type nameservers struct {
	conf  resolvConf
	first atomic.Uint32 // the server that answered last is asked first
}

func newNameservers(path string, servers []string) *nameservers {
	return &nameservers{conf: resolvConf{path: path, servers: servers}}
}

// names implements resolver, by the search list and ndots of resolv.conf. Names that the
// list makes too long are left out.
func (n *nameservers) names(name string) []string {
	s := n.conf.read()
	return slices.DeleteFunc(s.names(name), func(full string) bool {
		_, err := appendQuestion(nil, 0, question{full, dnsmessage.TypeA}, false)
		return err != nil
	})
}

// ask implements resolver. After a server that does not answer, or cannot tell, it asks
// the next one.
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

// exchange asks one server, by UDP, and again by TCP if the answer is too long for UDP
// (RFC 7766).
func exchange(ctx context.Context, server string, q question, patience time.Duration) (reply, error) {
	edns := true
	answer, err := send(ctx, "udp", server, q, edns, patience)
	if err == nil && answer.RCode == dnsmessage.RCodeFormatError {
		// A server from before EDNS(0): the same question without (RFC 6891, 7).
		edns = false
		answer, err = send(ctx, "udp", server, q, edns, patience)
	}
	// A datagram that ends within a record is not a message, but tells that it is cut.
	if answer != nil && answer.Truncated {
		answer, err = send(ctx, "tcp", server, q, edns, patience)
	}
	if err != nil {
		return reply{}, err
	}
	return readAnswer(answer, q)
}

// send makes one exchange over a new socket: a new port for each question makes answers
// hard to forge (RFC 5452, 9.2).
func send(ctx context.Context, network, server string, q question, edns bool, patience time.Duration) (*message, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) }) // ends the wait
	defer stop()
	var id [2]byte
	_, _ = rand.Read(id[:]) // never fails
	asked := binary.BigEndian.Uint16(id[:])
	if network == "tcp" {
		return overTCP(conn, asked, q, edns)
	}
	return overUDP(conn, asked, q, edns)
}

func overUDP(conn net.Conn, id uint16, q question, edns bool) (*message, error) {
	b, err := appendQuestion(nil, id, q, edns)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(b); err != nil {
		return nil, err
	}
	b = make([]byte, udpSize)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return nil, err
		}
		// A message with another id is not an answer to this question.
		if m, err := readMessage(b[:n]); m == nil || m.ID == id && m.Response {
			return m, err
		}
	}
}

// overTCP writes and reads messages with their length before them (RFC 1035, 4.2.2).
func overTCP(conn net.Conn, id uint16, q question, edns bool) (*message, error) {
	b, err := appendQuestion(make([]byte, 2), id, q, edns)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(b, uint16(len(b)-2))
	if _, err := conn.Write(b); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, b[:2]); err != nil {
		return nil, err
	}
	b = make([]byte, binary.BigEndian.Uint16(b))
	if _, err := io.ReadFull(conn, b); err != nil {
		return nil, err
	}
	m, err := readMessage(b)
	if err == nil && (m.ID != id || !m.Response) {
		return nil, errOther
	}
	return m, err
}

var (
	errOther    = errors.New("the answer is to another question")
	errReferral = errors.New("the server only refers to others")
)

// readAnswer takes the records for the question out of an answer. The error means that
// the server could not tell.
func readAnswer(m *message, q question) (reply, error) {
	switch {
	case m.RCode != dnsmessage.RCodeSuccess && m.RCode != dnsmessage.RCodeNameError:
		return reply{}, fmt.Errorf("the server says %s", rcodeName(m.RCode))
	case len(m.questions) != 1 || !q.is(m.questions[0]):
		return reply{}, errOther
	case m.RCode == dnsmessage.RCodeSuccess && len(m.answers) == 0 && !m.Authoritative && !m.RecursionAvailable:
		return reply{}, errReferral // a lame delegation tells nothing about the name
	}
	r := newReader(m.answers, m.questions[0])
	r.read(m.answers, q.kind)
	if len(r.reply.addresses) == 0 && len(r.reply.services) == 0 {
		return reply{ttl: negativeTTL(m)}, nil
	}
	r.readExtra(m.extra)
	return r.reply, nil
}

// is reports whether it is the same question; the case of the name does not matter.
func (q question) is(other dnsmessage.Question) bool {
	name, err := dnsmessage.NewName(q.name)
	return err == nil && q.kind == other.Type && lower(name) == lower(other.Name)
}
