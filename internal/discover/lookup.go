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
	// maxAddresses bounds the endpoints of one name. The rest of a longer answer
	// is not used.
	maxAddresses = 1000
	// maxQuestions bounds the questions of one lookup that are under way at a
	// time: service records may have a thousand targets.
	maxQuestions = 8
	// maxKept bounds the answers that are kept while lookups fail.
	maxKept = 4 * maxAddresses
)

// question is one that a name server can be asked.
type question struct {
	name string          // ends in a dot
	kind dnsmessage.Type // A, AAAA or SRV
}

// reply is what name servers say to a question: of its three kinds of content
// only that of the question's kind, and nothing if there is no such name or
// nothing of that kind.
type reply struct {
	addresses []netip.Addr
	services  []service
	extra     map[string][]netip.Addr // addresses of services' targets that came with them
	ttl       time.Duration           // how long it holds, also that there is nothing
}

// service is one target of a service record. Its weight is not used: how many
// calls an endpoint gets is for its free slots to say.
type service struct {
	priority uint16
	port     uint16
	target   string // ends in a dot; "." says that there is no such service
}

// resolver answers questions. Both methods may be called at the same time.
type resolver interface {
	// names returns what a name may stand for, in the order in which to try, each
	// with a dot at its end.
	names(name string) []string
	// ask puts a question. The error says that nobody could answer it, which
	// proves nothing.
	ask(ctx context.Context, q question) (reply, error)
}

// target is an endpoint that a name stands for. Those of the lowest tier get the
// calls while any of them can be reached.
type target struct {
	address netip.AddrPort
	tier    uint16 // priority of the service record; 0 for others
}

// outcome is what came of a lookup. Its String is the value of the label result
// of cabrank_dns_lookups_total.
type outcome uint8

const (
	// answered: there are addresses, and all questions were answered.
	answered outcome = iota
	// empty: there is no such name, or it has no address.
	empty
	// failed: some question was not answered. What is not known is as it was.
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

// result is what one lookup told.
type result struct {
	outcome outcome
	targets []target      // sorted, without repeats; with failed those that are known
	ttl     time.Duration // how long it holds; negative if no question was answered
	left    int           // addresses beyond maxAddresses, which are not in targets
	err     error         // with failed
}

// lookup finds out what one name stands for, again and again. It remembers the
// last answer to each question, for the time when there is none: a server that
// fails on AAAA alone, or on one target of twenty, must not cost endpoints.
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

	mu   sync.Mutex // guards what follows
	kept map[question]reply
	ttl  time.Duration // least so far; negative before the first
	err  error         // the first
}

// run asks all there is to ask.
func (l *lookup) run(ctx context.Context) result {
	r := &round{resolver: l.resolver, old: l.kept, kept: make(map[question]reply), ttl: -1}
	var targets []target
	for _, name := range l.resolver.names(l.entry.name) {
		// The first name that has an answer counts. One that nobody can tell
		// about ends the search: the next may be a stranger's.
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

// remember keeps what a round was told, and of earlier ones what it could not ask.
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

// fill finds the addresses of the hosts that came without, a few at a time.
func (r *round) fill(ctx context.Context, hosts map[string][]netip.Addr) {
	var (
		running sync.WaitGroup
		mu      sync.Mutex // guards hosts
	)
	places := make(chan struct{}, maxQuestions)
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		mu.Lock()
		known := len(hosts[host]) > 0
		mu.Unlock()
		if known {
			continue
		}
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
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

// ask puts one question. If nobody can answer it the last answer stands.
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
