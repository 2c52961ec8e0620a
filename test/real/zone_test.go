//go:build real && linux

package real_test

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// zone is a name server that says what the test has it say, over UDP as far as
// that goes and over TCP.
//
// Life: startZone; ended by the end of the test. Concurrency: any.
type zone struct {
	addr string

	mu      sync.Mutex // guards what follows
	records []dns.RR
	sick    bool
	asked   map[string]int // questions by network, "udp" or "tcp"
}

func startZone(t *testing.T) *zone {
	t.Helper()
	z := &zone{asked: map[string]int{}}
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	packets, stream := listenZone(t)
	z.addr = stream.Addr().String()
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: z}, {Listener: stream, Handler: z}} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		serving.Go(func() { _ = server.ActivateAndServe() })
		<-started
		t.Cleanup(func() { _ = server.Shutdown() })
	}
	return z
}

// listenZone finds a port that is free on UDP and TCP.
func listenZone(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		stream, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if packets, err := net.ListenPacket("udp", stream.Addr().String()); err == nil {
			return packets, stream
		}
		stream.Close()
	}
	t.Fatal("no port is free on UDP and TCP")
	return nil, nil
}

// say replaces all records, in the form of a zone file.
func (z *zone) say(t *testing.T, lines ...string) {
	t.Helper()
	var records []dns.RR
	for _, line := range lines {
		record, err := dns.NewRR(line)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.records = records
}

// fall has every question answered SERVFAIL, or no more.
func (z *zone) fall(sick bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.sick = sick
}

// questions returns how many came over a network.
func (z *zone) questions(network string) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.asked[network]
}

// ServeDNS implements dns.Handler.
func (z *zone) ServeDNS(w dns.ResponseWriter, m *dns.Msg) {
	answer, network := new(dns.Msg).SetReply(m), w.LocalAddr().Network()
	answer.Authoritative = true
	z.mu.Lock()
	z.asked[network]++
	known := false
	for _, record := range z.records {
		if strings.EqualFold(record.Header().Name, m.Question[0].Name) {
			known = true
			if record.Header().Rrtype == m.Question[0].Qtype {
				answer.Answer = append(answer.Answer, record)
			}
		}
	}
	answer.Answer = slices.Clone(answer.Answer)
	switch {
	case z.sick:
		answer.Answer, answer.Rcode = nil, dns.RcodeServerFailure
	case !known:
		answer.Rcode = dns.RcodeNameError
	}
	z.mu.Unlock()
	if network == "udp" {
		size := dns.MinMsgSize
		if edns := m.IsEdns0(); edns != nil {
			size = int(edns.UDPSize())
		}
		answer.Truncate(size)
	}
	_ = w.WriteMsg(answer) // whoever asked may have left
}
