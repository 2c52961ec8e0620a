package relay

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/h2"
)

// Bounds of what is known of tokens, of each shard.
const (
	// maxPassBytes bounds the fields that are remembered, with passSize for what each was
	// found to be: two generations of half as much.
	maxPassBytes = 4 << 20
	passSize     = 512
	// maxPassTime is how long one is remembered: after that its key may have been withdrawn.
	maxPassTime = time.Minute
	// maxChecks is how many looks at fields are under way; a source has a quarter of them at
	// most. Their calls wait without a slot.
	maxChecks   = 256
	maxChecksOf = maxChecks / 4
	// maxAuthorization is the longest field that is looked at.
	maxAuthorization = 8<<10 + 64
)

var (
	errFields  = errors.New("there is more than one authorization field")
	errTooLong = errors.New("the authorization field is longer than 8 KiB")
)

// Auth says who may call, by the field authorization of a call.
//
// Concurrency: it is called from anywhere, Epoch also under the lock of a shard.
type Auth interface {
	// Verify returns what a field has shown; the empty one is that of calls without it. It
	// may take seconds. An error is one line for the caller, with nothing of the field.
	Verify(authorization string) (Pass, error)
	// Epoch is another number when what Verify has returned may hold no more.
	Epoch() uint64
}

// Pass is what a caller has shown. Nobody changes it.
type Pass struct {
	User  string                 // who it is, "": it need not say
	Until time.Time              // when it begins no more calls; zero: never
	May   func(path string) bool // which methods it may call
}

// allows reports whether a path may be called: as it was sent, and as a worker may read it,
// who decodes it and leaves out empty parts and dots.
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
	as    string // its identity, "": none
}

// tokenCache is what a shard knows of those who call by tokens.
//
// Concurrency: guarded by the lock of its shard.
type tokenCache struct {
	st          *shardState
	auth        Auth // nil: nobody is asked
	recent, old map[string]*cachedPass
	bytes       int // of young
	checks      map[string]*tokenCheck
	ofSource    map[*source]int // of checks
}

// tokenCheck is a look at one field outside of the lock, and the calls that wait for it.
type tokenCheck struct {
	field  string
	source *source
	calls  []waitingCall
	denied *readyAnswer // what its calls are told; nil: it is under way, or they may go on
}

// waitingCall is a call with the path that it asks for.
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

// needsToken reports whether calls of a connection need a token: who is in this process may have
// been asked by its door.
func (t *tokenCache) needsToken(cc *callerConn) bool { return t.auth != nil && cc.fromNetwork() }

// fromNetwork reports whether the calls of a connection come from others than this process.
func (cc *callerConn) fromNetwork() bool {
	return cc.localCaller == nil || !cc.localCaller.authenticated
}

// valid reports whether a pass counts still.
func (t *tokenCache) valid(p *cachedPass) bool {
	return p != nil && p.epoch == t.auth.Epoch() && t.st.Now() < p.until
}

// find returns what is known of a field; nil: it has to be looked at.
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

// remember remembers a field. Those that were not asked for while half of the room was
// filled are forgotten.
func (t *tokenCache) remember(field string, p *cachedPass) {
	if t.bytes += len(field) + passSize; t.bytes > maxPassBytes/2 {
		t.old, t.recent, t.bytes = t.recent, make(map[string]*cachedPass), len(field)+passSize
	}
	t.recent[field] = p
}

// cachedPass returns what the token of a request has shown before; nil: it has to be looked at.
func (cc *callerConn) cachedPass(b *h2.Block) *cachedPass {
	w, _ := b.Watched(cc.st.conf.fieldToken)
	if w.Count > 1 || len(w.Value) > maxAuthorization {
		return nil
	}
	return cc.st.tokens.find(w.Value)
}

// checkToken has the call wait until its token was looked at.
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

// callSource returns where the calls of a connection come from.
func (cc *callerConn) callSource() *source {
	if cc.localCaller != nil {
		return cc.localCaller.source
	}
	return cc.source
}

// deny answers a call whose token counts for nothing.
func (c *call) deny(why error, now time.Duration) {
	c.check = &tokenCheck{denied: deniedBecause(why)}
	c.fail(endedToken, now)
}

// checkOf returns the look at a field that is under way, or begins one; nil: there are too
// many.
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
	go t.verify(k) // ends when Verify does: nobody waits for it but the calls
	return k
}

// verify looks at a field, and sends the calls on their way that have waited for it.
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

// next takes one of the calls out of those that wait: what becomes of it may have others
// leave, which are not waited for then.
func (k *tokenCheck) next() (one waitingCall, more bool) {
	if len(k.calls) == 0 {
		return one, false
	}
	one, k.calls = k.calls[0], k.calls[1:]
	return one, true
}

// tokenPassed sends a call on whose token was looked at.
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

// leaveCheck takes the call from those that wait for a look at their token.
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

// withPass returns whose the calls are of a caller that has shown a pass.
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
