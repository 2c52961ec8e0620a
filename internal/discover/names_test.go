package discover

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/health/check"
	"github.com/cabrank/cabrank/internal/testkit"
)

// startNamed starts a roster whose names are those of a script.
func startNamed(t *testing.T, s *script, upstreams ...string) (*Roster, *board) {
	t.Helper()
	b := newBoard()
	o := testOptions(b, upstreams...)
	o.MinTTL, o.MaxTTL = 20*time.Millisecond, time.Hour
	r := newRoster(t, o)
	r.resolver = s
	for _, n := range r.entries {
		if n.source != nil {
			n.source.lookup.resolver = s
		}
	}
	r.Start()
	return r, b
}

func portOf(t *testing.T, e *endpoint) uint16 {
	t.Helper()
	return netip.MustParseAddrPort(e.Addr().String()).Port()
}

// What a name stands for comes and goes with its answers; an address that an
// upstream names by itself, too, stays.
func TestRosterFollowsAName(t *testing.T) {
	testkit.CheckLeaks(t)
	server := listen(t, "tcp", "127.0.0.1:0")
	port := strconv.Itoa(int(portOf(t, server)))
	one, two := "127.0.0.1:"+port, "127.0.0.2:"+port
	s := newScript()
	s.say("A w.", 10*time.Millisecond, "127.0.0.1")
	name := "dns:w:" + port
	r, b := startNamed(t, s, name, one)
	b.awaitUp(t, one)
	s.say("A w.", 10*time.Millisecond, "127.0.0.1", "127.0.0.2")
	testkit.Eventually(t, 20*time.Second, "the second address", func() bool { return len(r.Endpoints()) == 2 })
	if got := r.Endpoints(); !slices.Equal(got[0].From, []string{name, one}) || !slices.Equal(got[1].From, []string{name}) {
		t.Errorf("%+v", got)
	}
	s.say("A w.", 10*time.Millisecond, "127.0.0.9")
	b.await(t, two, "remove")
	testkit.Eventually(t, 20*time.Second, "the third address", func() bool { return r.Lookups()[0].Addresses == 1 })
	b.wantTold(t, one, "add", "up at tcp "+one)
	testkit.Must(t, r.Replace([]string{one}))
	b.await(t, "127.0.0.9:"+port, "remove")
	if got := r.Lookups(); len(got) != 0 {
		t.Errorf("lookups of no name: %+v", got)
	}
}

// RFC 2782: the targets of the lowest priority get the calls while any of them
// can be reached, then those of the next, and back.
func TestRosterObeysPriority(t *testing.T) {
	first, second := listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0")
	low, high := first.Addr().String(), second.Addr().String()
	s := newScript()
	s.set("SRV w.", reply{
		ttl:      time.Hour,
		services: []service{{10, portOf(t, first), "h."}, {20, portOf(t, second), "h."}},
		extra:    map[string][]netip.Addr{"h.": {netip.MustParseAddr("127.0.0.1")}},
	}, nil)
	r, b := startNamed(t, s, "srv:w")
	b.awaitUp(t, low)
	state := func(name string, want State) {
		t.Helper()
		testkit.Eventually(t, 20*time.Second, name+" is "+want.String(), func() bool {
			return slices.ContainsFunc(r.Endpoints(), func(e Status) bool { return e.Name == name && e.State == want })
		})
	}
	state(high, Standby)
	b.wantTold(t, high, "add")
	first.say(false)
	b.awaitUp(t, high)
	state(low, NotServing)
	first.say(true)
	b.awaitUp(t, low)
	b.await(t, high, "down")
	testkit.Must(t, r.SetDrained(low, true))
	b.awaitUp(t, high)
}

// An endpoint that fails has its names looked up at once.
func TestRosterLooksWhenOneFails(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0")
	address, s := server.Addr().String(), newScript()
	s.say("A w.", time.Hour, "127.0.0.1")
	s.say("AAAA w.", time.Hour)
	_, b := startNamed(t, s, "dns:w:"+strconv.Itoa(int(portOf(t, server))))
	b.awaitUp(t, address)
	testkit.Equal(t, s.rounds("A w."), 1, "lookups before")
	server.stop()
	b.await(t, address, "down")
	testkit.Eventually(t, 20*time.Second, "a second lookup", func() bool { return s.rounds("A w.") == 2 })
}

// There is an end to the number of endpoints.
func TestRosterIsBounded(t *testing.T) {
	b := newBoard()
	r := newRoster(t, testOptions(b))
	r.ctx, r.cancel = context.WithCancel(t.Context())
	r.open = func(check.Options) (asker, error) { return &scriptedAsker{}, nil }
	n := &named{entry: entry{text: "dns:w:1", form: byAddress}, source: r.newSource(&named{})}
	r.entries = append(r.entries, n, &named{entry: entry{text: "dns:v:1", form: byAddress}, source: r.newSource(&named{})})
	for i := range maxEndpoints {
		n.targets = append(n.targets, target{address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(i % 250)}), 1)})
	}
	r.publish(n, n.targets)
	r.publish(r.entries[1], []target{{address: netip.MustParseAddrPort("10.9.9.9:1")}})
	testkit.Equal(t, len(r.Endpoints()), maxEndpoints, "endpoints")
}

// scriptedAsker is an asker whose answers come from a test.
type scriptedAsker struct {
	mu     sync.Mutex
	answer health.Answer
	asked  int
}

func (a *scriptedAsker) say(answer health.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

func (a *scriptedAsker) Due(last health.Answer, _ bool) bool {
	return time.Since(last.Asked) >= time.Second
}

func (a *scriptedAsker) Ask(context.Context) health.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	answer := a.answer
	answer.Asked = time.Now()
	return answer
}

func (a *scriptedAsker) Connection() connection { return standing{} }

func (a *scriptedAsker) Configure(time.Duration, time.Duration) {}

func (a *scriptedAsker) Close() {}

// standing is a connection that never ends.
type standing struct{}

func (standing) Connect() {}

func (standing) GetState() connectivity.State { return connectivity.Ready }

func (standing) WaitForStateChange(ctx context.Context, _ connectivity.State) bool {
	<-ctx.Done()
	return false
}

// R6: an endpoint that falls silent keeps its calls and gets no new ones until it
// says anything, on whatever connection; idle and silent three times it is out.
func TestRosterSuspects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "10.0.0.1:1"
		b, script := newBoard(), &scriptedAsker{answer: health.Answer{Said: health.Serving}}
		r := newRoster(t, testOptions(b, name))
		r.open = func(check.Options) (asker, error) { return script, nil }
		r.Start()
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		pass(time.Second)
		script.say(health.Answer{Working: true, Overdue: true})
		pass(1300 * time.Millisecond)
		b.wantTold(t, name, "add", "up at tcp "+name, "suspect")
		b.setWork(name, Work{Heard: time.Now()})
		pass(300 * time.Millisecond)
		b.wantTold(t, name, "add", "up at tcp "+name, "suspect", "trusted")
		script.say(health.Answer{Reason: "no answer"})
		pass(10 * time.Second)
		b.wantTold(t, name, "add", "up at tcp "+name, "suspect", "trusted", "suspect", "down")
		if got := r.Endpoints()[0]; got.State != NotServing || got.Reason != "no answer" {
			t.Errorf("%+v", got)
		}
		script.say(health.Answer{Said: health.Serving})
		pass(2 * time.Second)
		all := []string{"add", "up at tcp " + name, "suspect", "trusted", "suspect", "down", "up at tcp " + name}
		b.wantTold(t, name, all...)
		b.setWork(name, Work{TurnsAway: true}) // which the relay sees to
		pass(300 * time.Millisecond)
		b.wantTold(t, name, all...)
		if got := r.Endpoints()[0]; got.State != Suspect || got.Reason != health.TurnsAway {
			t.Errorf("%+v", got)
		}
		b.setWork(name, Work{})
		pass(300 * time.Millisecond)
		if got := r.Endpoints()[0]; got.State != Ready || got.Reason != "" {
			t.Errorf("%+v", got)
		}
		r.Stop()
	})
}
