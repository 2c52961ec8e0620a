package discover

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sort"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// maxAddresses bounds the endpoints of one name. The rest of a longer answer is
	// ignored.
	maxAddresses = 1000
	// maxQuestions bounds the questions of one lookup that are under way at a
	// time: service records may have a thousand targets.
	maxQuestions = 8
	// maxKept bounds the answers that are kept while lookups fail.
	maxKept = 4 * maxAddresses
)

// question is a question for a name server.
type question struct {
	name string          // ends in a dot
	kind dnsmessage.Type // A, AAAA or SRV
}

// reply is the answer of name servers to a question: addresses, or services with the
// addresses that came with them. It is empty if the name does not exist or has no
// records of the question's kind.
type reply struct {
	addresses []netip.Addr
	services  []service
	extra     map[string][]netip.Addr // addresses of services' targets that came with them
	ttl       time.Duration           // also of an empty reply
}

// service is one target of a service record. Its weight is not used: the free slots of
// an endpoint decide how many calls it gets.
type service struct {
	priority uint16
	port     uint16
	target   string // ends in a dot; "." means that the service does not exist
}

// resolver answers questions. Both methods may be called at the same time.
type resolver interface {
	// names returns the full names to try for a name, in order, each with a dot at its
	// end.
	names(name string) []string
	// ask asks a question. The error means that no server could answer it, which proves
	// nothing about the name.
	ask(ctx context.Context, q question) (reply, error)
}

// target is an endpoint of a name. The targets of the lowest tier get the calls while
// one of them can be reached.
type target struct {
	address netip.AddrPort
	tier    uint16 // priority of the service record; 0 for others
}

// outcome is how a lookup ended. Its String is the value of the label result of
// cabrank_dns_lookups_total.
type outcome uint8

const (
	// answered: all questions were answered, and the name has addresses.
	answered outcome = iota
	// empty: the name does not exist, or has no address.
	empty
	// failed: some question was not answered. Its last answer stays.
	failed
)

func (o outcome) String() string {
	switch o {
	case answered:
		return "answered"
	case empty:
		return "empty"
	case failed:
		return "failed"
	}
	return "unknown"
}

// result is the result of one lookup.
type result struct {
	outcome outcome
	targets []target      // sorted, without repeats; after failed, the known ones
	ttl     time.Duration // negative if no question was answered
	left    int           // addresses beyond maxAddresses, which are not in targets
	err     error         // with failed
}

// lookup looks up one name again and again. It remembers the last answer to each
// question for a time when no answer comes: a server that fails only on AAAA, or on one
// target of twenty, must not cost endpoints.
//
// Concurrency: a lookup belongs to one goroutine.
type lookup struct {
	resolver resolver
	entry    entry
	kept     map[question]reply // made by newLookup
}

func newLookup(r resolver, e entry) *lookup {
	return &lookup{resolver: r, entry: e, kept: make(map[question]reply)}
}

// round is one lookup under way.
type round struct {
	resolver resolver
	old      map[question]reply

	mu   sync.Mutex // guards the fields below
	kept map[question]reply
	ttl  time.Duration // least so far; negative before the first
	err  error         // the first
}

// run asks all questions of the name.
func (l *lookup) run(ctx context.Context) result {
	r := &round{resolver: l.resolver, old: l.kept, kept: make(map[question]reply), ttl: -1}
	var targets []target
	for _, name := range l.resolver.names(l.entry.name) {
		// The first full name with an answer counts. One that no server can tell about
		// ends the search: the next one may belong to a stranger.
		if targets = r.find(ctx, l.entry, name); len(targets) > 0 || r.err != nil {
			break
		}
	}
	l.remember(r)
	sort.Slice(targets, func(i, j int) bool {
		a, b := targets[i], targets[j]
		return cmp.Or(cmp.Compare(a.tier, b.tier), a.address.Compare(b.address)) < 0
	})
	targets = slices.Compact(targets)
	left := max(len(targets)-maxAddresses, 0)
	found := result{targets: targets[:len(targets)-left], left: left, ttl: r.ttl, err: r.err}
	switch {
	case r.err != nil:
		found.outcome = failed
	case len(targets) == 0:
		found.outcome = empty
	}
	return found
}

// remember keeps the answers of a round, and after a failure also earlier ones.
func (l *lookup) remember(r *round) {
	if r.err != nil && len(l.kept) <= maxKept {
		maps.Copy(l.kept, r.kept)
		return
	}
	l.kept = r.kept
}

// find returns the endpoints of one full name.
func (r *round) find(ctx context.Context, e entry, name string) []target {
	if e.form == byService {
		return r.findService(ctx, name)
	}
	var targets []target
	for _, address := range r.addresses(ctx, name) {
		targets = append(targets, target{address: netip.AddrPortFrom(address, e.port)})
	}
	return targets
}

// findService returns the endpoints of a service record (RFC 2782).
func (r *round) findService(ctx context.Context, name string) []target {
	record := r.ask(ctx, question{name, dnsmessage.TypeSRV})
	hosts := make(map[string][]netip.Addr)
	for _, s := range record.services {
		if s.target != "." && len(hosts) < maxAddresses {
			hosts[s.target] = record.extra[s.target]
		}
	}
	r.fill(ctx, hosts)
	var targets []target
	for _, s := range record.services {
		for _, address := range hosts[s.target] {
			targets = append(targets, target{netip.AddrPortFrom(address, s.port), s.priority})
		}
	}
	return targets
}

// fill looks up the addresses of the hosts that have none yet, a few at a time.
func (r *round) fill(ctx context.Context, hosts map[string][]netip.Addr) {
	var (
		running sync.WaitGroup
		mu      sync.Mutex // guards hosts
	)
	free := make(chan struct{}, maxQuestions)
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		mu.Lock()
		known := len(hosts[host]) > 0
		mu.Unlock()
		if known {
			continue
		}
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			found := r.addresses(ctx, host)
			mu.Lock()
			defer mu.Unlock()
			hosts[host] = found
		})
	}
	running.Wait()
}

// addresses returns the addresses of a full name, of both families.
func (r *round) addresses(ctx context.Context, name string) []netip.Addr {
	var (
		asking sync.WaitGroup
		v4, v6 reply
	)
	asking.Go(func() { v4 = r.ask(ctx, question{name, dnsmessage.TypeA}) })
	asking.Go(func() { v6 = r.ask(ctx, question{name, dnsmessage.TypeAAAA}) })
	asking.Wait()
	return slices.Concat(v4.addresses, v6.addresses)
}

// ask asks one question. If no server can answer it the last answer stays.
func (r *round) ask(ctx context.Context, q question) reply {
	said, err := r.resolver.ask(ctx, q)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		said = r.old[q]
		if r.err == nil {
			r.err = fmt.Errorf("%s %s: %w", kindName(q.kind), q.name, err)
		}
	} else if r.ttl < 0 || said.ttl < r.ttl {
		r.ttl = said.ttl
	}
	r.kept[q] = said
	return said
}
