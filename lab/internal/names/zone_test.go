package names_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/cabrank/cabrank/lab/internal/names"
)

// serve starts a server that knows a.test. with n addresses.
func serve(t *testing.T, n int) *names.Server {
	t.Helper()
	s, err := names.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var addresses []netip.Addr
	for i := range n {
		addresses = append(addresses, netip.AddrFrom4([4]byte{127, 0, byte(i / 250), byte(1 + i%250)}))
	}
	if err := s.Say("a.test.", 7*time.Second, addresses...); err != nil {
		t.Fatal(err)
	}
	return s
}

// ask asks as another library does.
func ask(t *testing.T, s *names.Server, network string, change func(*dns.Msg), name string, kind uint16) *dns.Msg {
	t.Helper()
	question := new(dns.Msg)
	question.SetQuestion(name, kind)
	if change != nil {
		change(question)
	}
	client := &dns.Client{Net: network}
	answer, _, err := client.ExchangeContext(t.Context(), question, s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Each address is the first one now and then.
func TestAnswersAreMixed(t *testing.T) {
	s := serve(t, 3)
	first := map[string]int{}
	for range 300 {
		answer := ask(t, s, "udp", nil, "A.Test.", dns.TypeA)
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
	s := serve(t, 1)
	answer := ask(t, s, "udp", nil, "a.test.", dns.TypeAAAA)
	if len(answer.Answer) != 0 || answer.Rcode != dns.RcodeSuccess || len(answer.Ns) != 1 || answer.Ns[0].(*dns.SOA).Minttl != 7 {
		t.Error(answer)
	}
	if answer := ask(t, s, "udp", nil, "b.test.", dns.TypeA); answer.Rcode != dns.RcodeNameError {
		t.Error(answer)
	}
	if err := s.Say("a.test.", time.Second); err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, s, "udp", nil, "a.test.", dns.TypeA); answer.Rcode != dns.RcodeNameError {
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
	s := serve(t, 70)
	allow := func(m *dns.Msg) { m.SetEdns0(1232, false) }
	for name, tc := range map[string]struct {
		network string
		change  func(*dns.Msg)
		want    int
	}{
		"512 bytes": {"udp", nil, 0}, "EDNS(0)": {"udp", allow, 70}, "TCP": {"tcp", nil, 70},
	} {
		answer := ask(t, s, tc.network, tc.change, "a.test.", dns.TypeA)
		if len(answer.Answer) != tc.want || answer.Truncated != (tc.want == 0) {
			t.Errorf("%s: %d addresses, truncated: %t", name, len(answer.Answer), answer.Truncated)
		}
	}
	if answer := ask(t, serve(t, names.MaxAddresses), "tcp", nil, "a.test.", dns.TypeA); len(answer.Answer) != names.MaxAddresses {
		t.Errorf("%d addresses", len(answer.Answer))
	}
}

func TestSayRefuses(t *testing.T) {
	s := serve(t, 0)
	six := netip.MustParseAddr("::1")
	for want, err := range map[string]error{
		`"a.test" is no name with a dot at its end`:                 s.Say("a.test", 0),
		"::1 is no IPv4 address":                                    s.Say("a.test.", 0, six),
		fmt.Sprintf("1001 addresses, at most %d are allowed", 1000): s.Say("a.test.", 0, make([]netip.Addr, 1001)...),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
