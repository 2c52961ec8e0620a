package discover

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/health/check"
)

// maxEndpoints bounds the endpoints of a roster. The log tells when addresses beyond it
// are left out.
const maxEndpoints = 1000

// Registry is told which endpoints can take calls. Calls for one name come from one
// goroutine, calls for different names overlap. All must return at once and must not
// call the Roster.
type Registry interface {
	// Up says that the endpoint takes calls at this address (network "tcp",
	// "unix", or one of Dial) from now on.
	Up(name, network, address string)
	// Down says that it gets no new calls from now on. It comes after every Up.
	Down(name string)
	// Suspect says that an endpoint that is up is silent and gets no new calls for
	// the time being, or that it has answered again (R6). Up and Down end the
	// suspicion as well.
	Suspect(name string, suspect bool)
}

// Membership is told which endpoints exist, in the same way as Registry.
type Membership interface {
	// Add says that an endpoint with this name exists. It comes first.
	Add(name string)
	// Cut ends the calls that still run there; it comes after Down. An endpoint
	// that was cut may be Up again.
	Cut(name string)
	// Remove says that the endpoint is gone: no call runs there, or it was cut.
	// It comes last; a later Add makes another endpoint.
	Remove(name string)
}

// Activity tells what the data plane sees of an endpoint. It is called from
// several goroutines and must return at once.
type Activity interface {
	Activity(name string) Work
}

// Work is the data plane's evidence about an endpoint at one moment, for its judge.
type Work = health.Work

// Options say what to watch and how long to wait for it. Every duration must be
// more than 0, except DrainTimeout.
type Options struct {
	Times

	// Upstreams are what is written in the configuration: "host:port",
	// "unix:/path", "dns:NAME:PORT", "srv:NAME", "tls:host:port", "tls:dns:NAME:PORT".
	Upstreams []string
	// Servers are the name servers, "ip" or "ip:port". None means those of
	// ResolvConf.
	Servers []string
	// ResolvConf is the path of resolv.conf(5). Empty means /etc/resolv.conf.
	ResolvConf string
	// MinTTL and MaxTTL bound the time for which an answer holds, whatever it says
	// itself. MinTTL is also the least time between two lookups of a name, MaxTTL
	// how long a name without addresses keeps its last ones.
	MinTTL, MaxTTL time.Duration

	Registry   Registry
	Membership Membership
	Activity   Activity
	Logger     *slog.Logger

	// Dial connects to endpoints that speak TLS, by the function Dial.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Roster is all endpoints that cabrank does not run itself.
//
// Life: New, Start once, Stop. Concurrency: all methods may be called from any
// goroutine; the package comment names the goroutines inside.
type Roster struct {
	options  Options
	resolver resolver
	open     func(check.Options) (asker, error)
	running  sync.WaitGroup // sources and members
	reached  atomic.Bool    // any endpoint was up
	times    atomic.Pointer[Times]

	mu      sync.Mutex      // guards the fields below, and those that member names; a leaf
	ctx     context.Context //nolint:containedctx // it ends with Stop, and with it everything that began after Start
	cancel  context.CancelFunc
	entries []*named
	members map[string]*member
	full    bool // the log has told that the upstreams have too many endpoints
}

// named is one upstream with its targets.
type named struct {
	entry   entry
	source  *source // nil if fixed
	cancel  context.CancelFunc
	targets []target
}

// New parses the upstreams; the error is about one that cannot be parsed. It touches
// nothing outside.
func New(o Options) (*Roster, error) {
	if o.ResolvConf == "" {
		o.ResolvConf = "/etc/resolv.conf"
	}
	r := &Roster{
		options: o, resolver: newNameservers(o.ResolvConf, o.Servers), open: openAsker,
		members: make(map[string]*member),
	}
	r.times.Store(&o.Times)
	entries, err := parseAll(o.Upstreams)
	if err != nil {
		return nil, err
	}
	r.entries = r.keep(entries)
	return r, nil
}

func parseAll(upstreams []string) ([]entry, error) {
	var all []entry
	for _, text := range upstreams {
		e, err := parse(text)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all, nil
}

// Start begins to look up names and to watch endpoints.
func (r *Roster) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx != nil {
		return
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	for _, n := range r.entries {
		r.begin(n)
	}
	r.arrange()
}

// Stop ends all lookups and watching; endpoints stay as they are.
func (r *Roster) Stop() {
	r.mu.Lock()
	started := r.ctx != nil
	if started {
		r.cancel()
	}
	r.mu.Unlock()
	if started {
		r.running.Wait()
	}
}

// Replace replaces the upstreams of Options. Upstreams that stay go on undisturbed. The
// error is about one that cannot be parsed; nothing has changed then.
func (r *Roster) Replace(upstreams []string) error {
	entries, err := parseAll(upstreams)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx != nil && r.ctx.Err() != nil {
		return errors.New("discover: Replace after Stop")
	}
	before := r.entries
	r.entries = r.keep(entries)
	for _, n := range before {
		if n.cancel != nil && !slices.Contains(r.entries, n) {
			n.cancel()
		}
	}
	if r.ctx == nil {
		return nil
	}
	for _, n := range r.entries {
		r.begin(n)
	}
	r.arrange()
	return nil
}

// keep returns the upstreams for entries: new ones, and those that exist already.
func (r *Roster) keep(entries []entry) []*named {
	all := make([]*named, len(entries))
	for i, e := range entries {
		if at := slices.IndexFunc(r.entries, func(n *named) bool { return n.entry == e }); at >= 0 {
			all[i] = r.entries[at]
			continue
		}
		n := &named{entry: e}
		if e.form != fixed {
			n.source = r.newSource(n)
		}
		all[i] = n
	}
	return all
}

func (r *Roster) newSource(n *named) *source {
	return &source{
		entry: n.entry, lookup: newLookup(r.resolver, n.entry),
		min: r.options.MinTTL, max: r.options.MaxTTL, random: rand.Float64,
		log: r.options.Logger, poked: make(chan struct{}, 1),
		publish: func(targets []target) { r.publish(n, targets) },
	}
}

// begin starts the lookups of a name, unless they have begun.
func (r *Roster) begin(n *named) {
	if n.source == nil || n.cancel != nil {
		return
	}
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(r.ctx)
	r.running.Go(func() { n.source.run(ctx) })
}

// publish sets the targets of a name.
func (r *Roster) publish(n *named, targets []target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n.targets = targets
	if slices.Contains(r.entries, n) {
		r.arrange()
	}
}
