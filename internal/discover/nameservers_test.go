package discover

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/nameserver"
)

// resolverOf asks these servers, by the resolv.conf given.
func resolverOf(t *testing.T, conf string, servers ...string) *nameservers {
	t.Helper()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	testkit.Must(t, os.WriteFile(path, []byte(conf), 0o600))
	return newNameservers(path, servers)
}

func texts(addresses []netip.Addr) []string {
	var all []string
	for _, address := range addresses {
		all = append(all, address.String())
	}
	return all
}

func askFor(t *testing.T, n *nameservers, kind dnsmessage.Type, name string) (reply, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return n.ask(ctx, question{name, kind})
}

// Addresses are found behind aliases, and of both families, but for those that are nobody's
// or of another name.
func TestAskFindsAddresses(t *testing.T) {
	for kind, tc := range map[dnsmessage.Type]struct {
		records, want []string
		ttl           time.Duration
	}{
		dnsmessage.TypeA: {
			[]string{
				"W.Example. 60 IN CNAME real.example.", "real.example. 20 IN CNAME pods.example.",
				"pods.example. 30 IN A 10.0.0.1", "pods.example. 30 IN A 10.0.0.2",
				"pods.example. 5 IN A 0.0.0.0", "pods.example. 5 IN A 224.0.0.1", "other.example. 5 IN A 10.0.0.9",
			},
			[]string{"10.0.0.1", "10.0.0.2"}, 20 * time.Second,
		},
		dnsmessage.TypeAAAA: {
			[]string{"w.example. 9 IN AAAA fd00::1", "w.example. 9 IN AAAA ::", "w.example. 9 IN AAAA fe80::1", "w.example. 9 IN AAAA ::ffff:10.0.0.1"},
			[]string{"fd00::1", "10.0.0.1"}, 9 * time.Second,
		},
	} {
		server := nameserver.Start(t, func(answer *dns.Msg, _ string) { nameserver.Add(answer, tc.records...) })
		got, err := askFor(t, resolverOf(t, "", server.Addr), kind, "w.example.")
		testkit.Want(t, err == nil && slices.Equal(texts(got.addresses), tc.want) && got.ttl == tc.ttl, "%+v, %v", got, err)
	}
}

// RFC 2782: targets with priorities and ports, and the addresses that came along.
func TestAskFindsServices(t *testing.T) {
	server := nameserver.Start(t, func(answer *dns.Msg, _ string) {
		nameserver.Add(answer, "_grpc._tcp.w. 60 IN SRV 1 50 7001 A.w.", "_grpc._tcp.w. 60 IN SRV 0 50 7002 b.w.")
		extra, _ := dns.NewRR("a.W. 7 IN A 10.0.0.1")
		stray, _ := dns.NewRR("c.w. 3 IN A 10.0.0.3")
		answer.Extra = append(answer.Extra, extra, stray)
	})
	got, err := askFor(t, resolverOf(t, "", server.Addr), dnsmessage.TypeSRV, "_grpc._tcp.w.")
	want := []service{{1, 7001, "a.w."}, {0, 7002, "b.w."}}
	if err != nil || !slices.Equal(got.services, want) || got.ttl != 7*time.Second ||
		len(got.extra["a.w."]) != 1 || len(got.extra["b.w."]) != 0 || len(got.extra) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// RFC 2308: that there is nothing holds for a time, too.
func TestAskFindsNothing(t *testing.T) {
	for _, rcode := range []int{dns.RcodeNameError, dns.RcodeSuccess} {
		server := nameserver.Start(t, func(answer *dns.Msg, _ string) {
			answer.Rcode = rcode
			soa, _ := dns.NewRR("example. 90 IN SOA ns. me. 1 2 3 4 15")
			answer.Ns = append(answer.Ns, soa)
		})
		got, err := askFor(t, resolverOf(t, "", server.Addr), dnsmessage.TypeA, "w.example.")
		testkit.Want(t, err == nil && len(got.addresses) == 0 && got.ttl == 15*time.Second,
			"%s: %+v, %v", dns.RcodeToString[rcode], got, err)
	}
}

// A server that cannot tell is passed over, and the one that could is asked first
// the next time.
func TestAskPassesOver(t *testing.T) {
	refused, stream := nameserver.Listen(t)
	stream.Close()
	refused.Close() // ICMP says so
	sick := nameserver.Start(t, func(answer *dns.Msg, _ string) { answer.Rcode = dns.RcodeServerFailure })
	lame := nameserver.Start(t, func(answer *dns.Msg, _ string) { answer.RecursionAvailable = false })
	other := nameserver.Start(t, func(answer *dns.Msg, _ string) { answer.Question[0].Name = "x." })
	mute := nameserver.Start(t, func(answer *dns.Msg, _ string) { answer.Response = false })
	good := nameserver.Start(t, func(answer *dns.Msg, _ string) { nameserver.Add(answer, "w. 9 IN A 10.0.0.1") })
	n := resolverOf(t, "options timeout:1 attempts:1\n", stream.Addr().String(), sick.Addr, lame.Addr, other.Addr, mute.Addr, good.Addr)
	for range 2 {
		got, err := askFor(t, n, dnsmessage.TypeA, "w.")
		testkit.Want(t, err == nil && len(got.addresses) == 1, "%+v, %v", got, err)
	}
	if asked := sick.Questions(); len(asked) != 1 {
		t.Errorf("the sick one was asked %q", asked)
	}
	_, err := askFor(t, resolverOf(t, "options attempts:3", sick.Addr, lame.Addr), dnsmessage.TypeA, "w.")
	testkit.Want(t, err != nil && strings.Contains(err.Error(), lame.Addr), "nobody can tell: %v", err)
	if asked := lame.Questions(); len(asked) != 4 {
		t.Errorf("in three rounds more the lame one was asked %q", asked)
	}
}

// An answer that is too long for a datagram comes over TCP, up to a thousand
// addresses and beyond.
func TestAskFallsBackToTCP(t *testing.T) {
	const many = 1200
	server := nameserver.Start(t, func(answer *dns.Msg, network string) {
		for i := range many {
			nameserver.Add(answer, fmt.Sprintf("w. 9 IN A 10.1.%d.%d", i/250, i%250))
		}
		if network == "udp" {
			answer.Truncate(dns.MinMsgSize)
		}
	})
	got, err := askFor(t, resolverOf(t, "", server.Addr), dnsmessage.TypeA, "w.")
	testkit.Want(t, err == nil && len(got.addresses) == many, "%d addresses, %v", len(got.addresses), err)
	testkit.EqualList(t, server.Questions(), []string{"udp A w.", "tcp A w."}, "asked")
}

// RFC 6891, 7: a server that does not know EDNS(0) is asked without.
func TestAskWithoutEDNS(t *testing.T) {
	var mu sync.Mutex
	rounds := 0
	server := nameserver.Start(t, func(answer *dns.Msg, _ string) {
		mu.Lock()
		defer mu.Unlock()
		if rounds++; rounds == 1 {
			answer.Rcode = dns.RcodeFormatError
			return
		}
		nameserver.Add(answer, "w. 9 IN A 10.0.0.1")
	})
	got, err := askFor(t, resolverOf(t, "", server.Addr), dnsmessage.TypeA, "w.")
	testkit.Want(t, err == nil && len(got.addresses) == 1, "%+v, %v", got, err)
}

// A question ends with its context.
func TestAskEnds(t *testing.T) {
	mute := nameserver.Start(t, func(answer *dns.Msg, _ string) { answer.Response = false })
	ctx, cancel := context.WithCancel(t.Context())
	n := resolverOf(t, "options timeout:30", mute.Addr)
	ended := make(chan error, 1)
	go func() {
		_, err := n.ask(ctx, question{"w.", dnsmessage.TypeA})
		ended <- err
	}()
	testkit.Eventually(t, 30*time.Second, "the question", func() bool { return len(mute.Questions()) > 0 })
	cancel()
	err := testkit.Take(t, ended, 20*time.Second, "it goes on")
	testkit.Want(t, err != nil, "an answer")
}

// resolv.conf(5): servers, search list and ndots count, with bounds; what changes
// in the file counts from then on.
func TestResolvConf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	conf := resolvConf{path: path}
	if got := conf.read(); !slices.Equal(got.servers, []string{"127.0.0.1:53"}) || got.rounds != 2 || got.patience != 5*time.Second {
		t.Errorf("without a file: %+v", got)
	}
	write := func(text string, at time.Time) {
		t.Helper()
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		testkit.Must(t, os.Chtimes(path, at, at))
	}
	now := time.Now()
	write("nameserver 10.0.0.10\nnameserver fd00::10\nsearch ns.svc.cluster.local svc.cluster.local\noptions ndots:2 timeout:99 attempts:99\n", now)
	got := conf.read()
	if !slices.Equal(got.servers, []string{"10.0.0.10:53", "[fd00::10]:53"}) || got.rounds != maxRounds || got.patience != maxPatience {
		t.Errorf("%+v", got)
	}
	names := &nameservers{conf: resolvConf{path: path}}
	for name, want := range map[string][]string{
		"w":       {"w.ns.svc.cluster.local.", "w.svc.cluster.local.", "w."},
		"w.other": {"w.other.ns.svc.cluster.local.", "w.other.svc.cluster.local.", "w.other."},
		"a.b.c":   {"a.b.c.", "a.b.c.ns.svc.cluster.local.", "a.b.c.svc.cluster.local."},
		"w.":      {"w."},
	} {
		testkit.EqualList(t, names.names(name), want, "%s", name)
	}
	long := strings.Repeat(strings.Repeat("x", 49)+".", 4) + strings.Repeat("y", 40)
	testkit.EqualList(t, names.names(long), []string{long + "."}, "too long with what is on the list")
	write("# a comment\n; another\nnameserver\nnameserver 10.0.0.11\nsearch a\ndomain b.\noptions ndots ndots:99 attempts:0 timeout:x rotate\n", now.Add(time.Second))
	if got := conf.read(); got.ndots != maxDots || got.rounds != 1 || got.patience != time.Second {
		t.Errorf("odd options: %+v", got)
	}
	testkit.EqualList(t, names.names("w"), []string{"w.b.", "w."}, "below a domain")
	if got := conf.read(); !slices.Equal(got.servers, []string{"10.0.0.11:53"}) {
		t.Errorf("after a change: %+v", got)
	}
	testkit.Must(t, os.Remove(path))
	if got := conf.read(); !slices.Equal(got.servers, []string{"10.0.0.11:53"}) {
		t.Errorf("after its end: %+v", got)
	}
	own := resolvConf{path: path, servers: []string{"10.0.0.12", "10.0.0.13:5353"}}
	if got := own.read(); !slices.Equal(got.servers, []string{"10.0.0.12:53", "10.0.0.13:5353"}) {
		t.Errorf("servers of the configuration: %+v", got)
	}
}

// The mail address of a zone may have a dot within a label.
func TestReadMessageOfAZoneWithADot(t *testing.T) {
	soa, err := dns.NewRR(`example. 90 IN SOA ns. first\.last.example. 1 2 3 4 15`)
	testkit.Must(t, err)
	b, err := (&dns.Msg{Ns: []dns.RR{soa}}).Pack()
	testkit.Must(t, err)
	m, err := readMessage(b)
	testkit.Want(t, err == nil && negativeTTL(m) == 15*time.Second, "%+v, %v", m, err)
}

// What is no name is not asked for.
func TestAppendQuestionRefuses(t *testing.T) {
	for _, name := range []string{"", "w", "a..b.", ".a."} {
		b, err := appendQuestion(nil, 1, question{name, dnsmessage.TypeA}, true)
		testkit.Want(t, err != nil, "%q: %x", name, b)
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
