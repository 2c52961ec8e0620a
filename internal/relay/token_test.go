package relay

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tokens takes "Bearer ann" for the user ann, who may call paths with the prefix may.
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

func (a *tokens) wantAsked(t testing.TB, n int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.asked) != n {
		t.Errorf("asked %d times, want %d: %.200q", len(a.asked), n, a.asked)
	}
}

func withTokens(a *tokens) func(*Options) { return func(o *Options) { o.Auth = a } }

// Remembered tokens are bounded in bytes, and those in use stay.
func TestKnownTokensAreBounded(t *testing.T) {
	g := newRig(t, withTokens(&tokens{}))
	st := g.shards[0]
	st.do(func() {
		p := &cachedPass{until: st.Now() + time.Hour}
		st.tokens.remember("used", p)
		for i := range 100_000 {
			st.tokens.remember(fmt.Sprint(i), p)
			if st.tokens.find([]byte("used")) == nil {
				t.Fatalf("it is forgotten after %d", i)
			}
		}
		if n := len(st.tokens.recent) + len(st.tokens.old); n*passSize > maxPassBytes {
			t.Errorf("%d are remembered", n)
		}
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
