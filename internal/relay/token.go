package relay

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// Bounds of the tokens that each shard remembers.
const (
	// maxPassBytes bounds the remembered fields, plus passSize for each: two generations of
	// half as much.
	maxPassBytes = 4 << 20
	passSize     = 512
	// maxPassTime is how long a field is remembered: its key may be withdrawn later.
	maxPassTime = time.Minute
	// maxChecks is how many checks of tokens may run at a time; one source has a quarter of
	// them at most. Their calls wait without a slot.
	maxChecks   = 256
	maxChecksOf = maxChecks / 4
	// maxAuthorization is the longest field that is checked, octets.
	maxAuthorization = 8<<10 + 64
)

var (
	errFields  = errors.New("there is more than one authorization field")
	errTooLong = errors.New("the authorization field is longer than 8 KiB")
)

// Auth checks the authorization field of calls.
//
// Concurrency: it is called from anywhere, Epoch also under the lock of a shard.
type Auth interface {
	// Verify returns the pass of a field; calls without the field have the empty one. It may
	// take seconds. An error is one line for the caller, with nothing of the field.
	Verify(authorization string) (Pass, error)
	// Epoch changes when earlier results of Verify may not be valid any more.
	Epoch() uint64
}

// Pass is the result of a valid token. Immutable.
type Pass struct {
	User  string                 // the user, "": the token needs none
	Until time.Time              // after this it begins no calls; zero: no end
	May   func(path string) bool // reports whether it may call a method
}

// allows reports whether the pass allows a path, both as it was sent and as a worker may read
// it: decoded, without empty parts and dots.
func (p *Pass) allows(name string) bool {
	decoded, err := url.PathUnescape(name)
	if err != nil || !p.May(name) {
		return false
	}
	read := path.Clean("/" + strings.ReplaceAll(decoded, `\`, "/"))
	if strings.HasSuffix(decoded, "/") && read != "/" {
		read += "/"
	}
	return read == name || p.May(read)
}

// cachedPass is a pass that a shard remembers.
type cachedPass struct {
	Pass
	epoch uint64
	until time.Duration
	as    string // the caller's identity, "": none
}

// tokenCache is what a shard knows of those who call by tokens.
//
// Concurrency: guarded by the lock of its shard.
type tokenCache struct {
	st          *shardState
	auth        Auth // nil: no call needs a token
	recent, old map[string]*cachedPass
	bytes       int // of recent
	checks      map[string]*tokenCheck
	ofSource    map[*source]int // of checks
}

// tokenCheck is a check of one field outside of the lock, and the calls that wait for it.
type tokenCheck struct {
	field  string
	source *source
	calls  []waitingCall
	denied *readyAnswer // the answer to its calls; nil: the check runs, or the token is valid
}

// waitingCall is a call that waits for a check, with its path.
type waitingCall struct {
	call *call
	path string
}

func newTokenCache(st *shardState, auth Auth) tokenCache {
	return tokenCache{
		st: st, auth: auth, recent: make(map[string]*cachedPass), old: make(map[string]*cachedPass),
		checks: make(map[string]*tokenCheck), ofSource: make(map[*source]int),
	}
}

// needsToken reports whether calls of a connection need a token: those of a door in this
// process may be authenticated already.
func (t *tokenCache) needsToken(cc *callerConn) bool { return t.auth != nil && cc.fromNetwork() }

// fromNetwork reports whether the calls of a connection need the checks of outside callers.
func (cc *callerConn) fromNetwork() bool {
	return cc.localCaller == nil || !cc.localCaller.authenticated
}

// valid reports whether a pass is still valid.
func (t *tokenCache) valid(p *cachedPass) bool {
	return p != nil && p.epoch == t.auth.Epoch() && t.st.Now() < p.until
}

// find returns the valid pass of a field; nil: it must be checked.
func (t *tokenCache) find(field []byte) *cachedPass {
	p := t.recent[string(field)]
	if p == nil {
		if p = t.old[string(field)]; t.valid(p) {
			t.remember(string(field), p)
		}
	}
	if !t.valid(p) {
		return nil
	}
	return p
}

// remember keeps the pass of a field. When half of the room is full, it forgets the fields
// that were not used since the last time.
func (t *tokenCache) remember(field string, p *cachedPass) {
	if t.bytes += len(field) + passSize; t.bytes > maxPassBytes/2 {
		t.old, t.recent, t.bytes = t.recent, make(map[string]*cachedPass), len(field)+passSize
	}
	t.recent[field] = p
}

// cachedPass returns the remembered pass of a request's token; nil: it must be checked.
func (cc *callerConn) cachedPass(b *h2.Block) *cachedPass {
	w, _ := b.Watched(cc.st.conf.fieldToken)
	if w.Count > 1 || len(w.Value) > maxAuthorization {
		return nil
	}
	return cc.st.tokens.find(w.Value)
}

// checkToken makes the call wait for the check of its token.
func (c *call) checkToken(b *h2.Block, now time.Duration) {
	w, _ := b.Watched(c.st.conf.fieldToken)
	path, _ := b.Watched(fieldPath)
	switch {
	case w.Count > 1:
		c.deny(errFields, now)
		return
	case len(w.Value) > maxAuthorization:
		c.deny(errTooLong, now)
		return
	case c.caller.crowdedOut(now):
		c.fail(endedBuffer, now)
		return
	}
	k := c.st.tokens.checkOf(w.Value, c.caller.callSource())
	if k == nil {
		c.fail(endedChecks, now)
		return
	}
	k.calls = append(k.calls, waitingCall{c, string(nameOf(path.Value))})
	c.check, c.state = k, callGathering
	c.count()
	c.setClock(now)
}

// callSource returns the source of the calls of a connection.
func (cc *callerConn) callSource() *source {
	if cc.localCaller != nil {
		return cc.localCaller.source
	}
	return cc.source
}

// deny answers a call with a bad token.
func (c *call) deny(why error, now time.Duration) {
	c.check = &tokenCheck{denied: deniedBecause(why)}
	c.fail(endedToken, now)
}

// checkOf returns the running check of a field, or begins one; nil: too many run.
func (t *tokenCache) checkOf(field []byte, from *source) *tokenCheck {
	k := t.checks[string(field)]
	if k != nil {
		return k
	}
	if len(t.checks) >= maxChecks || t.ofSource[from] >= maxChecksOf {
		return nil
	}
	k = &tokenCheck{field: string(field), source: from}
	t.checks[k.field] = k
	t.ofSource[from]++
	go t.verify(k) // ends when Verify does; only its calls wait for it
	return k
}

// verify checks a field, and answers or admits the calls that wait for it.
func (t *tokenCache) verify(k *tokenCheck) {
	epoch := t.auth.Epoch()
	shown, err := t.auth.Verify(k.field)
	t.st.do(func() {
		delete(t.checks, k.field)
		if t.ofSource[k.source]--; t.ofSource[k.source] == 0 {
			delete(t.ofSource, k.source)
		}
		now := t.st.Now()
		if err != nil {
			k.denied = deniedBecause(err)
			for one, more := k.next(); more; one, more = k.next() {
				one.call.fail(endedToken, now)
			}
			return
		}
		p := &cachedPass{Pass: shown, epoch: epoch, until: now + maxPassTime}
		if shown.User != "" {
			p.as = TokenIdentity(shown.User)
		}
		if !shown.Until.IsZero() {
			p.until = min(p.until, now+time.Until(shown.Until))
		}
		t.remember(k.field, p)
		for one, more := k.next(); more; one, more = k.next() {
			one.call.tokenPassed(p, one.path, now)
		}
	})
}

// next takes one call out of those that wait. Others may leave while it is handled.
func (k *tokenCheck) next() (one waitingCall, more bool) {
	if len(k.calls) == 0 {
		return one, false
	}
	one, k.calls = k.calls[0], k.calls[1:]
	return one, true
}

// tokenPassed admits a call after the check of its token.
func (c *call) tokenPassed(p *cachedPass, path string, now time.Duration) {
	c.check = nil
	c.leaveWaiting()
	c.state = callNew
	c.callerID = c.caller.withPass(p, c.callerID)
	c.head.setCaller(c.caller, c.callerID, path)
	c.head.pass, c.head.notAllowed = p, !p.allows(path)
	st, cc := c.st, c.caller
	c.admit(now) // it may be over then
	st.shed(cc, now)
}

// leaveCheck takes the call out of those that wait for its check.
func (c *call) leaveCheck() {
	if c.check == nil {
		return
	}
	for i, one := range c.check.calls {
		if one.call == c {
			c.check.calls = append(c.check.calls[:i], c.check.calls[i+1:]...)
			c.check = nil
			return
		}
	}
}

// withPass returns the callerID of a caller with a pass.
func (cc *callerConn) withPass(p *cachedPass, id *callerID) *callerID {
	if p == nil || p.as == "" {
		return id
	}
	c := id.Caller
	c.Identity = p.as
	return cc.st.callerIDOf(c)
}

// setCaller changes the caller of a head that no other call shares; the address stays.
func (h *requestHead) setCaller(cc *callerConn, id *callerID, path string) {
	if h.callerID == id {
		return
	}
	head := h.block[:len(h.block)-len(h.callerID.fields)]
	h.listSize += id.listSize - h.callerID.listSize
	h.callerID = id
	if h.key != nil && cc.st.conf.naming.By == ByPeer {
		cc.st.keys.drop(h.key)
		cc.setKey(id.key, id.text)
		h.key = cc.key
		h.key.refs++
		h.lane = cc.st.relay.laneOf([]byte(path), h.key)
	}
	h.block = cc.st.Pool().Append(head, id.fields)
}
