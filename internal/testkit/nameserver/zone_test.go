package nameserver_test

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"

	"github.com/cabrank/cabrank/internal/testkit/nameserver"
)

// records are n addresses of a.test.
func records(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("a.test. 7 IN A 127.0.%d.%d", i/250, 1+i%250))
	}
	return lines
}

// serve starts a server that knows a.test. with n addresses.
func serve(t *testing.T, n int) *nameserver.Zone {
	t.Helper()
	z, err := nameserver.ServeZone(records(n)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Close)
	return z
}

func ask(t *testing.T, z *nameserver.Zone, network string, change func(*dns.Msg), name string, kind uint16) *dns.Msg {
	t.Helper()
	question := new(dns.Msg)
	question.SetQuestion(name, kind)
	if change != nil {
		change(question)
	}
	client := &dns.Client{Net: network}
	answer, _, err := client.ExchangeContext(t.Context(), question, z.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Each address is the first one now and then.
func TestAnswersAreMixed(t *testing.T) {
	z := serve(t, 3)
	first := map[string]int{}
	for range 300 {
		answer := ask(t, z, "udp", nil, "A.Test.", dns.TypeA)
		if len(answer.Answer) != 3 || answer.Answer[0].Header().Ttl != 7 || !answer.Authoritative {
			t.Fatal(answer)
		}
		first[answer.Answer[0].(*dns.A).A.String()]++
	}
	for address, n := range first {
		if n < 50 || len(first) != 3 {
			t.Errorf("%s was the first %d times of 300", address, n)
		}
	}
}

// What there is not is said, too: no such record of the name, no such name.
func TestNothing(t *testing.T) {
	z := serve(t, 1)
	answer := ask(t, z, "udp", nil, "a.test.", dns.TypeAAAA)
	if len(answer.Answer) != 0 || answer.Rcode != dns.RcodeSuccess || len(answer.Ns) != 1 || answer.Ns[0].(*dns.SOA).Minttl != 7 {
		t.Error(answer)
	}
	if answer := ask(t, z, "udp", nil, "b.test.", dns.TypeA); answer.Rcode != dns.RcodeNameError {
		t.Error(answer)
	}
	z.Say()
	if answer := ask(t, z, "udp", nil, "a.test.", dns.TypeA); answer.Rcode != dns.RcodeNameError {
		t.Error(answer)
	}
}

// Whoever draws the id 0 is answered, too: one question in 65,536 has it.
func TestEveryIdIsAnswered(t *testing.T) {
	answer := ask(t, serve(t, 1), "udp", func(m *dns.Msg) { m.Id = 0 }, "a.test.", dns.TypeA)
	if len(answer.Answer) != 1 {
		t.Error(answer)
	}
}

// A datagram has what the question allows; all of it comes over TCP.
func TestLongAnswers(t *testing.T) {
	z := serve(t, 70)
	allow := func(m *dns.Msg) { m.SetEdns0(1232, false) }
	for name, tc := range map[string]struct {
		network string
		change  func(*dns.Msg)
		whole   bool
	}{
		"512 bytes": {"udp", nil, false}, "EDNS(0)": {"udp", allow, true}, "TCP": {"tcp", nil, true},
	} {
		answer := ask(t, z, tc.network, tc.change, "a.test.", dns.TypeA)
		if (len(answer.Answer) == 70) != tc.whole || answer.Truncated == tc.whole {
			t.Errorf("%s: %d addresses, truncated: %t", name, len(answer.Answer), answer.Truncated)
		}
	}
	if answer := ask(t, serve(t, 1000), "tcp", nil, "a.test.", dns.TypeA); len(answer.Answer) != 1000 {
		t.Errorf("%d addresses", len(answer.Answer))
	}
}
