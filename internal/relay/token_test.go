package relay

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/testkit"
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

func (a *tokens) Verify(field string) (callers.Pass, error) {
	a.mu.Lock()
	a.asked = append(a.asked, field)
	a.mu.Unlock()
	if a.stop != nil {
		<-a.stop
	}
	user, ok := strings.CutPrefix(field, "Bearer ")
	if !ok {
		return callers.Pass{}, errors.New("no such token")
	}
	p := callers.Pass{User: user, May: func(path string) bool { return strings.HasPrefix(path, a.may) }}
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
	testkit.Want(t, len(a.asked) == n, "asked %d times, want %d: %.200q", len(a.asked), n, a.asked)
}

func withTokens(a *tokens) func(*Options) { return func(o *Options) { o.Auth = a } }

var _ callers.Auth = (*tokens)(nil)
