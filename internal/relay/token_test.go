package relay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/testkit"
)

// tokens knows users by what they show: "Bearer ann" is ann, who may call what is in may.
type tokens struct {
	may   string        // prefix of paths
	ends  time.Duration // of each, 0: none does
	stop  chan struct{} // waits for it, if it is there
	epoch atomic.Uint64

	mu    sync.Mutex
	asked []string
}

func (a *tokens) Verify(field string) (Pass, error) {
	a.mu.Lock()
	a.asked = append(a.asked, field)
	a.mu.Unlock()
	if a.stop != nil {
		<-a.stop
	}
	user, ok := strings.CutPrefix(field, "Bearer ")
	if !ok {
		return Pass{}, errors.New("no such token")
	}
	p := Pass{User: user, May: func(path string) bool { return strings.HasPrefix(path, a.may) }}
	if a.ends > 0 {
		p.Until = time.Now().Add(a.ends)
	}
	return p, nil
}

func (a *tokens) Epoch() uint64 { return a.epoch.Load() }

func (a *tokens) wantAsked(t *testing.T, n int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.asked) != n {
		t.Errorf("asked %d times, want %d: %.200q", len(a.asked), n, a.asked)
	}
}

func withTokens(a *tokens) func(*Options) { return func(o *Options) { o.Auth = a } }

func bearer(user string) []string { return []string{"authorization", "Bearer " + user} }

// Without a token that counts nobody gets a slot, and what a token does not allow is
// refused: of calls and of what is passed on. Health/Check alone needs none.
func TestCallsNeedTokens(t *testing.T) {
	const why = "cabrank: no token that counts: "
	const barred = "cabrank: the token does not allow this method"
	for name, c := range map[string]struct {
		path   string
		fields []string
		code   grpcwire.Code
		says   string
	}{
		"none":                {hello, nil, grpcwire.Unauthenticated, why + "no such token"},
		"wrong":               {hello, []string{"authorization", "Basic ann"}, grpcwire.Unauthenticated, why + "no such token"},
		"in a cookie":         {hello, []string{"cookie", "token=ann"}, grpcwire.Unauthenticated, why + "no such token"},
		"in the query":        {hello + "?token=ann", nil, grpcwire.Unauthenticated, why + "no such token"},
		"two":                 {hello, append(bearer("ann"), bearer("bob")...), grpcwire.Unauthenticated, why + errFields.Error()},
		"a long one":          {hello, bearer(strings.Repeat("x", maxAuthorization)), grpcwire.Unauthenticated, why + errTooLong.Error()},
		"not allowed":         {"/shop.Admin/Drop", bearer("ann"), grpcwire.PermissionDenied, barred},
		"not allowed, query":  {"/shop.Admin/Drop?/test.", bearer("ann"), grpcwire.PermissionDenied, barred},
		"health, watched":     {"/grpc.health.v1.Health/Watch", nil, grpcwire.Unauthenticated, why + "no such token"},
		"health of others":    {"/grpc.health.v1.Health/Checks", nil, grpcwire.Unauthenticated, why + "no such token"},
		"reflection":          {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", nil, grpcwire.Unauthenticated, why + "no such token"},
		"reflection, allowed": {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", bearer("ann"), grpcwire.PermissionDenied, barred},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, withTokens(&tokens{may: "/test."}), func(o *Options) { o.HeaderList = 32 << 10 })
			_, _ = g.worker("w1", 1)
			caller := g.caller()
			for stream := uint32(1); stream <= 3; stream += 2 { // the second finds what the first has left
				caller.WriteHeaders(stream, end, request(c.path, c.fields...)...)
				wantStatus(caller, stream, fmt.Sprint(int(c.code)), c.says)
			}
			caller.WriteHeaders(5, end, plain("GET", c.path, c.fields...)...)
			want := []string{"content-type", "text/plain; charset=utf-8", "content-length", fmt.Sprint(len(c.says) + 1)}
			if c.code == grpcwire.Unauthenticated {
				want = append([]string{":status", "401"}, append(want, "www-authenticate", "Bearer")...)
			} else {
				want = append([]string{":status", "403"}, want...)
			}
			caller.WantFields(5, noEnd, want...)
			caller.WantDataBytes(5, []byte(c.says+"\n"), end)
		})
	}
	g := newRig(t, withTokens(&tokens{may: "/test."}))
	_, _ = g.worker("w1", 1)
	caller := g.caller()
	caller.WriteHeaders(1, noEnd, request("/grpc.health.v1.Health/Check")...)
	caller.WriteData(1, end, []byte{0, 0, 0, 0, 0})
	caller.WantHeaders(1, noEnd)
	caller.WantData(1, noEnd)
	caller.WantHeaders(1, end)
}

// Whose a call is says its token, of each call on its connection: workers, the access log
// and limits go by it. A token is looked at once.
func TestTokenOfEachCall(t *testing.T) {
	a := &tokens{may: "/"}
	users := make(chan string, 20)
	g := newRig(t, withTokens(a), func(o *Options) {
		o.Keys = Keys{By: ByPeer, Concurrent: 1}
		o.Access = func(a *Access) { users <- a.Caller.Identity }
	})
	_, accept := g.worker("w1", 4)
	caller := g.caller()
	worker := caller
	forged := []string{"x-cabrank-user", "admin"}
	second := g.caller()
	for i, user := range []string{"ann", "bob", "ann", "ann", "jürgen", "bob", "bob"} {
		stream := uint32(1 + 2*i)
		caller.WriteHeaders(stream, end, request(hello, append(bearer(user), forged...)...)...)
		if i == 0 {
			worker = accept()
		}
		told := string(grpcwire.AppendMessage(nil, user))
		worker.WantFields(stream, end, slices.Concat(request(hello, bearer(user)...), []string{"x-forwarded-for", "127.0.0.1", "x-cabrank-hops", "1", "x-cabrank-user", told})...)
		second.WriteHeaders(stream, end, request(hello, bearer(user)...)...)
		wantStatus(second, stream, "8", "cabrank: too many calls")
		reply(worker, stream)
		wantReply(caller, stream)
		for range 2 {
			if got := <-users; got != "token:"+user {
				t.Errorf("%s is %s", user, got)
			}
		}
	}
	a.wantAsked(t, 3)
}

// A token is looked at again when it has ended, when keys have changed and after a minute.
// Streams that have begun go on.
func TestTokenEnds(t *testing.T) {
	for name, c := range map[string]struct {
		ends  time.Duration
		pass  time.Duration // until it counts no more
		epoch uint64
	}{
		"ended":      {ends: 10 * time.Second, pass: 11 * time.Second},
		"other keys": {epoch: 1},
		"a minute":   {pass: maxPassTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &tokens{may: "/", ends: c.ends}
				g := newPipeRig(t, withTokens(a))
				_, worker := g.pipeWorker("w1", 8)
				caller := g.pipeCaller()
				for stream := uint32(1); stream <= 5; stream += 2 {
					caller.WriteHeaders(stream, noEnd, request(hello, bearer("ann")...)...)
					caller.WriteData(stream, noEnd, hi())
					worker.WantHeaders(stream, noEnd)
					worker.WantDataBytes(stream, hi(), noEnd)
				}
				a.wantAsked(t, 1)
				pass(c.pass)
				a.epoch.Add(c.epoch)
				a.stop = make(chan struct{})
				caller.WriteHeaders(7, end, request(hello, bearer("ann")...)...)
				synctest.Wait()
				a.wantAsked(t, 2)
				for stream := uint32(1); stream <= 5; stream += 2 {
					caller.WriteData(stream, end, hi())
					worker.WantDataBytes(stream, hi(), end)
					reply(worker, stream)
					wantReply(caller, stream)
				}
				close(a.stop)
				worker.WantHeaders(7, end)
				reply(worker, 7)
				wantReply(caller, 7)
			})
		})
	}
}

// Calls wait for a look at their token without a slot, those with the same one together.
// Whatever becomes of them meanwhile, nothing is left of it.
func TestCallsWaitForTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &tokens{may: "/", stop: make(chan struct{})}
		g := newPipeRig(t, withTokens(a))
		_, worker := g.pipeWorker("w1", 1)
		caller, leaves := g.pipeCaller(), g.pipeCaller()
		caller.AnyOrder()
		caller.WriteHeaders(1, noEnd, request(hello, bearer("ann")...)...)
		caller.WriteHeaders(3, noEnd, request(hello, bearer("ann")...)...)
		caller.WriteHeaders(5, end, request(hello, append(bearer("ann"), "grpc-timeout", "1S")...)...)
		leaves.WriteHeaders(1, noEnd, request(hello, bearer("ann")...)...)
		leaves.WriteHeaders(3, noEnd, request(hello, bearer("bob")...)...)
		caller.WriteData(1, end, hi())
		caller.WriteRST(3, http2.ErrCodeCancel)
		synctest.Wait()
		leaves.Close()
		synctest.Wait()
		a.wantAsked(t, 2)
		if g.Waiting() != 0 || g.running() != 2 {
			t.Errorf("%d are in the queue, %d run", g.Waiting(), g.running())
		}
		wantStatus(caller, 5, "4", "cabrank: deadline exceeded in queue")
		close(a.stop)
		worker.WantHeaders(1, noEnd)
		worker.WantDataBytes(1, hi(), end)
		reply(worker, 1)
		wantReply(caller, 1)
		caller.WriteHeaders(7, end, request(hello, bearer("ann")...)...)
		worker.WantHeaders(3, end)
		reply(worker, 3)
		wantReply(caller, 7)
		a.wantAsked(t, 2)
	})
}

// A source has a part of the looks at a time; its further calls are refused, and what was
// found already counts.
func TestLooksAtTokensAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &tokens{may: "/"}
		g := newPipeRig(t, withTokens(a))
		_, worker := g.pipeWorker("w1", 200)
		caller, other := g.pipeCaller(), g.pipeCaller()
		other.WriteHeaders(1, end, request(hello, bearer("ann")...)...)
		worker.WantHeaders(1, end)
		stop := make(chan struct{})
		a.stop = stop
		caller.AnyOrder()
		for i := range maxChecksOf + 1 {
			caller.WriteHeaders(uint32(1+2*i), end, request(hello, bearer(fmt.Sprint(i))...)...)
		}
		wantStatus(caller, 2*maxChecksOf+1, "8", "cabrank: too many tokens to look at")
		other.WriteHeaders(3, end, request(hello, bearer("ann")...)...)
		worker.WantHeaders(3, end)
		close(stop)
		synctest.Wait()
		g.stands[0].do(func() {
			if gate := &g.stands[0].gate; len(gate.checks)+len(gate.ofSource) != 0 {
				t.Errorf("left: %d, of %d sources", len(gate.checks), len(gate.ofSource))
			}
		})
		worker.Skip(testkit.Headers)
		a.wantAsked(t, maxChecksOf+1)
	})
}

// What is remembered is bounded in bytes, and what is in use stays.
func TestKnownTokensAreBounded(t *testing.T) {
	g := newRig(t, withTokens(&tokens{}))
	st := g.stands[0]
	st.do(func() {
		p := &proof{until: st.Now() + time.Hour}
		st.gate.keep("used", p)
		for i := range 100_000 {
			st.gate.keep(fmt.Sprint(i), p)
			if st.gate.find([]byte("used")) == nil {
				t.Fatalf("it is forgotten after %d", i)
			}
		}
		if n := len(st.gate.young) + len(st.gate.old); n*passSize > maxPassBytes {
			t.Errorf("%d are remembered", n)
		}
	})
}

// A call that is sent again is not asked again.
func TestRetriesNeedNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &tokens{may: "/"}
		g := newPipeRig(t, withTokens(a), func(o *Options) {
			o.RetryBudget = RetryBudget{PerSecond: 10}
			o.Methods = []MethodRule{{Pattern: hello, Idempotent: true, Retries: 2, RetryOn: []grpcwire.Code{grpcwire.Unavailable}}}
		})
		_, worker := g.pipeWorker("w1", 1)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello, bearer("ann")...)...)
		worker.WantHeaders(1, end)
		worker.WriteHeaders(1, end, append(responseHead(), "grpc-status", "14")...)
		a.epoch.Add(1)
		again := worker.WantHeaders(3, end)
		if testkit.Value(again, "x-cabrank-user") != "ann" {
			t.Errorf("the second attempt: %v", again)
		}
		reply(worker, 3)
		wantReply(caller, 1)
		a.wantAsked(t, 1)
	})
}

// Callers in this process have been asked by their door, who says who they are.
func TestLocalNeedsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &tokens{}
		g := newPipeRig(t, withTokens(a))
		_, worker := g.pipeWorker("w1", 1)
		var c LocalCall
		open(t, g.local(Caller{Identity: TokenIdentity("Änn")}), &c, LocalRequest{Head: headOf(request(hello)...), End: true})
		worker.WantFields(1, end, slices.Concat(request(hello), []string{"x-cabrank-hops", "1", "x-cabrank-user", "%C3%84nn"})...)
		c.Close()
		a.wantAsked(t, 0)
	})
}

var _ Auth = (*tokens)(nil)

// A path has to be allowed as it was sent, and as a worker may read it.
func TestPathsThatTokensAllow(t *testing.T) {
	public := &Pass{May: func(path string) bool { return strings.HasPrefix(path, "/public/") }}
	for name, want := range map[string]bool{
		"/public/a": true, "/public/": true, "/public/a/": true, "/public//a": true, "/public/a%20b": true, "/public/./a": true,
		"/admin": false, "/public/../admin": false, "/public/%2e%2E/admin": false, "/public/..%2fadmin": false, `/public/..\admin`: false,
		"/public/%5c..%5c..%5cadmin": false, "/public/..": false, "//public/a": false, "/public/%zz": false,
	} {
		if got := public.allows(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
