package discover

import (
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The mail address of a zone may have a dot within a label.
func TestReadMessageOfAZoneWithADot(t *testing.T) {
	soa, err := dns.NewRR(`example. 90 IN SOA ns. first\.last.example. 1 2 3 4 15`)
	testkit.Must(t, err)
	b, err := (&dns.Msg{Ns: []dns.RR{soa}}).Pack()
	testkit.Must(t, err)
	m, err := readMessage(b)
	if err != nil || negativeTTL(m) != 15*time.Second {
		t.Errorf("%+v, %v", m, err)
	}
}

// What is no name is not asked for.
func TestAppendQuestionRefuses(t *testing.T) {
	for _, name := range []string{"", "w", "a..b.", ".a."} {
		if b, err := appendQuestion(nil, 1, question{name, dnsmessage.TypeA}, true); err == nil {
			t.Errorf("%q: %x", name, b)
		}
	}
}

// Whatever comes is either no message, or one out of which an answer can be taken.
func FuzzReadMessage(f *testing.F) {
	for _, line := range []string{"w. 9 IN A 10.0.0.1", "w. 9 IN AAAA fd00::1", "w. 9 IN CNAME v.", "w. 9 IN SRV 1 2 3 v.", "w. 9 IN SOA a. b. 1 2 3 4 5", "w. 9 IN TXT a"} {
		record, err := dns.NewRR(line)
		testkit.Must(f, err)
		m := new(dns.Msg)
		m.SetQuestion("w.", record.Header().Rrtype)
		m.Answer, m.Extra = []dns.RR{record}, []dns.RR{record}
		b, err := m.Pack()
		testkit.Must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		m, err := readMessage(b)
		if err != nil {
			return
		}
		for _, asked := range m.questions {
			_, _ = readAnswer(m, question{asked.Name.String(), asked.Type})
		}
	})
}
