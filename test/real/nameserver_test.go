//go:build real || soak

package real_test

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers questions for the addresses of one name over UDP, and knows
// no other name.
//
// Life: startNameServer; ended by the end of the test. Concurrency: any.
type nameServer struct {
	addr string
	name string
	conn net.PacketConn

	mu        sync.Mutex
	addresses []netip.Addr // guarded by mu
}

// startNameServer serves the IPv4 addresses of a name that ends with a dot.
func startNameServer(t *testing.T, name string, addresses ...netip.Addr) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{addr: conn.LocalAddr().String(), name: name, conn: conn, addresses: addresses}
	var serving sync.WaitGroup
	serving.Go(s.serve)
	t.Cleanup(func() {
		conn.Close()
		serving.Wait()
	})
	return s
}

// point has the name stand for other addresses.
func (s *nameServer) point(addresses ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses = addresses
}

func (s *nameServer) serve() {
	packet := make([]byte, 512)
	for {
		n, peer, err := s.conn.ReadFrom(packet)
		if err != nil {
			return // closed
		}
		var question dnsmessage.Message
		if question.Unpack(packet[:n]) != nil || len(question.Questions) != 1 {
			continue
		}
		if answer, err := s.answer(&question); err == nil {
			_, _ = s.conn.WriteTo(answer, peer) // who asked asks again
		}
	}
}

// answer keeps the answers for a second, the least that cabrank believes.
func (s *nameServer) answer(m *dnsmessage.Message) ([]byte, error) {
	asked := m.Questions[0]
	m.Response, m.Authoritative, m.RecursionAvailable = true, true, m.RecursionDesired
	m.Answers, m.Authorities, m.Additionals = nil, nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !strings.EqualFold(asked.Name.String(), s.name):
		m.RCode = dnsmessage.RCodeNameError
	case asked.Type == dnsmessage.TypeA:
		for _, address := range slices.Backward(s.addresses) {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: asked.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 1},
				Body:   &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	return m.Pack()
}
