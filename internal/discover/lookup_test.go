package discover

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// script is a resolver that says what a test has written: by question, either a
// reply or an error; what is not written does not exist.
type script struct {
	search []string // suffixes, each with a dot at its end; "." is the name itself

	mu      sync.Mutex
	replies map[string]reply // by "A host."
	errs    map[string]error
	asked   []string
	times   []time.Time
}

func newScript(search ...string) *script {
	return &script{search: search, replies: make(map[string]reply), errs: make(map[string]error)}
}

func (s *script) names(name string) []string {
	if strings.HasSuffix(name, ".") || len(s.search) == 0 {
		return []string{strings.TrimSuffix(name, ".") + "."}
	}
	var all []string
	for _, suffix := range s.search {
		all = append(all, name+"."+strings.TrimPrefix(suffix, "."))
	}
	return all
}

func (s *script) ask(_ context.Context, q question) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := kindName(q.kind) + " " + q.name
	s.asked = append(s.asked, key)
	s.times = append(s.times, time.Now())
	if err := s.errs[key]; err != nil {
		return reply{}, err
	}
	return s.replies[key], nil
}

// say writes what is answered to "A host." from now on, and for how long it
// holds.
func (s *script) say(key string, ttl time.Duration, addresses ...string) {
	r := reply{ttl: ttl}
	for _, text := range addresses {
		r.addresses = append(r.addresses, netip.MustParseAddr(text))
	}
	s.set(key, r, nil)
}

func (s *script) set(key string, r reply, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[key], s.errs[key] = r, err
}

func (s *script) fail(key string) { s.set(key, reply{}, errServer) }

func (s *script) rounds(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, asked := range s.asked {
		if asked == key {
			n++
		}
	}
	return n
}

var errServer = errors.New("server fails")

func byName(t *testing.T, text string) entry {
	t.Helper()
	e, err := parse(text)
	testkit.Must(t, err)
	return e
}

// shown writes targets as "address" or "address/tier".
func shown(targets []target) []string {
	var all []string
	for _, target := range targets {
		text := target.address.String()
		if target.tier > 0 {
			text += fmt.Sprint("/", target.tier)
		}
		all = append(all, text)
	}
	return all
}

func wantTargets(t *testing.T, what string, found []target, want ...string) {
	t.Helper()
	testkit.EqualList(t, shown(found), want, "%s: targets", what)
}

// Every address of a name is an endpoint, of both families, each once.
func TestLookupFindsAddresses(t *testing.T) {
	s := newScript()
	s.say("A w.", 30*time.Second, "10.0.0.2", "10.0.0.1", "10.0.0.2")
	s.say("AAAA w.", 20*time.Second, "fd00::1")
	found := newLookup(s, byName(t, "dns:w:50051")).run(t.Context())
	wantTargets(t, "both families", found.targets, "10.0.0.1:50051", "10.0.0.2:50051", "[fd00::1]:50051")
	testkit.Want(t, found.outcome == answered && found.ttl == 20*time.Second, "%+v", found)
}

// A failure of one question leaves what it was answered last.
func TestLookupKeepsWhatIsNotKnown(t *testing.T) {
	s := newScript()
	s.say("A w.", time.Minute, "10.0.0.1")
	s.say("AAAA w.", time.Minute, "fd00::1")
	l := newLookup(s, byName(t, "dns:w:1"))
	l.run(t.Context())
	s.fail("A w.")
	s.say("AAAA w.", time.Minute, "fd00::2")
	for range 3 { // as often as it fails
		found := l.run(t.Context())
		wantTargets(t, "A fails", found.targets, "10.0.0.1:1", "[fd00::2]:1")
		testkit.Want(t, found.outcome == failed && errors.Is(found.err, errServer) && strings.Contains(found.err.Error(), "A w."),
			"%+v", found)
	}
	s.say("A w.", time.Minute, "10.0.0.9")
	wantTargets(t, "A is back", l.run(t.Context()).targets, "10.0.0.9:1", "[fd00::2]:1")
}

// The first name of the search list that has an address counts. If nobody can
// tell about one, those after it are not tried: they may be strangers'.
func TestLookupSearches(t *testing.T) {
	s := newScript("ns.cluster.", "cluster.", ".")
	s.say("A w.cluster.", time.Minute, "10.0.0.1")
	s.say("A w.", time.Minute, "192.0.2.1")
	l := newLookup(s, byName(t, "dns:w:1"))
	wantTargets(t, "second of the list", l.run(t.Context()).targets, "10.0.0.1:1")
	s.fail("AAAA w.ns.cluster.")
	if found := l.run(t.Context()); found.outcome != failed || len(found.targets) > 0 {
		t.Errorf("the first of the list fails: %+v", found)
	}
	n := s.rounds("A w.")
	testkit.Want(t, n == 0, "the last of the list was asked %d times", n)
	s.say("AAAA w.ns.cluster.", time.Minute)
	s.fail("A w.cluster.")
	found := l.run(t.Context())
	wantTargets(t, "kept over a failure of another", found.targets, "10.0.0.1:1")
}

func TestLookupEmpty(t *testing.T) {
	s := newScript()
	s.say("A w.", 40*time.Second)
	s.say("AAAA w.", 50*time.Second)
	found := newLookup(s, byName(t, "dns:w:1")).run(t.Context())
	testkit.Want(t, found.outcome == empty && found.ttl == 40*time.Second, "%+v", found)
}

// A service record names targets with ports and priorities (RFC 2782). Addresses
// that came along are taken, the others asked for.
func TestLookupFindsServices(t *testing.T) {
	s := newScript()
	s.set("SRV _grpc._tcp.w.", reply{
		services: []service{{10, 1001, "a."}, {0, 1002, "b."}, {0, 1003, "a."}, {5, 1, "."}},
		extra:    map[string][]netip.Addr{"a.": {netip.MustParseAddr("10.0.0.1")}, "b.": nil},
		ttl:      time.Minute,
	}, nil)
	s.say("A b.", 10*time.Second, "10.0.0.2")
	l := newLookup(s, byName(t, "srv:_grpc._tcp.w"))
	found := l.run(t.Context())
	wantTargets(t, "services", found.targets, "10.0.0.1:1003", "10.0.0.2:1002", "10.0.0.1:1001/10")
	testkit.Want(t, found.outcome == answered && found.ttl == 0 && s.rounds("A a.") == 0, "%+v, asked %q", found, s.asked)
	s.fail("A b.")
	found = l.run(t.Context())
	wantTargets(t, "a target fails", found.targets, "10.0.0.1:1003", "10.0.0.2:1002", "10.0.0.1:1001/10")
	s.set("SRV _grpc._tcp.w.", reply{services: []service{{0, 0, "."}}, ttl: time.Minute}, nil)
	if found := l.run(t.Context()); found.outcome != empty {
		t.Errorf("decidedly no service: %+v", found)
	}
}

// An answer without end is cut, always at the same place.
func TestLookupIsBounded(t *testing.T) {
	s := newScript()
	var all []string
	for i := range maxAddresses + 7 {
		all = append(all, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
	}
	slices.Reverse(all)
	s.say("A w.", time.Minute, all...)
	found := newLookup(s, byName(t, "dns:w:1")).run(t.Context())
	testkit.Want(t, len(found.targets) == maxAddresses && found.left == 7 && found.targets[0].address.String() == "10.0.0.0:1",
		"%d targets from %v, %d left", len(found.targets), found.targets[0].address, found.left)
}

// A lookup that fails for ever, with ever new targets, remembers no more than a
// bounded number of answers.
func TestLookupRemembersBounded(t *testing.T) {
	s := newScript()
	l := newLookup(s, byName(t, "srv:w"))
	for i := range 20 {
		var services []service
		for k := range 500 {
			services = append(services, service{0, 1, fmt.Sprintf("h%d-%d.", i, k)})
		}
		s.set("SRV w.", reply{services: services}, nil)
		s.fail(fmt.Sprintf("A h%d-0.", i))
		l.run(t.Context())
	}
	n := len(l.kept)
	testkit.Want(t, n <= maxKept+2*maxAddresses, "%d answers kept", n)
}

func TestParse(t *testing.T) {
	for text, want := range map[string]entry{
		"10.0.0.1:1":           {"10.0.0.1:1", fixed, "", 0},
		"unix:/run/s":          {"unix:/run/s", fixed, "", 0},
		"dns:w.ns.svc:50051":   {"dns:w.ns.svc:50051", byAddress, "w.ns.svc", 50051},
		"srv:_grpc._tcp.w.ns.": {"srv:_grpc._tcp.w.ns.", byService, "_grpc._tcp.w.ns.", 0},
	} {
		if got, err := parse(text); got != want || err != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "srv:", "dns:", "dns:w", "dns::1", "dns:w:0", "dns:w:65536", "dns:w:x"} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q was taken as %+v", text, got)
		}
	}
}
