package relay

import (
	"errors"
	"time"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/head"
)

const (
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

// tokenCache is what a shard knows of those who call by tokens.
//
// Concurrency: guarded by the lock of its shard.
type tokenCache struct {
	st       *shardState
	auth     callers.Auth // nil: no call needs a token
	passes   callers.Passes
	checks   map[string]*tokenCheck
	ofSource map[*callers.Source]int // of checks
}

// tokenCheck is a check of one field outside of the lock, and the calls that wait for it.
type tokenCheck struct {
	field  string
	source *callers.Source
	calls  []waitingCall
	denied *readyAnswer // the answer to its calls; nil: the check runs, or the token is valid
}

// waitingCall is a call that waits for a check, with its path.
type waitingCall struct {
	call *call
	path string
}

// valid reports whether a pass still counts.
func (t *tokenCache) valid(p *callers.KnownPass) bool { return p.Valid(t.auth.Epoch(), t.st.Now()) }

// cachedPass returns the remembered pass of a request's token; nil: it must be checked.
func (cc *callerConn) cachedPass(b *h2.Block) *callers.KnownPass {
	w, _ := b.Watched(cc.st.conf.fieldToken)
	if w.Count > 1 || len(w.Value) > maxAuthorization {
		return nil
	}
	t := &cc.st.tokens
	return t.passes.Find(w.Value, t.auth.Epoch(), t.st.Now())
}

// checkToken makes the call wait for the check of its token.
func (c *call) checkToken(b *h2.Block, now time.Duration) {
	w, _ := b.Watched(c.st.conf.fieldToken)
	path, _ := b.Watched(head.FieldPath)
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
	k.calls = append(k.calls, waitingCall{c, string(head.NameOf(path.Value))})
	c.become(callGathering)
	c.check = k
	c.count()
	c.setClock(now)
}

// callSource returns the source of the calls of a connection.
func (cc *callerConn) callSource() *callers.Source {
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
func (t *tokenCache) checkOf(field []byte, from *callers.Source) *tokenCheck {
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
		p := callers.NewKnownPass(shown, epoch, now, time.Now())
		t.passes.Remember(k.field, p)
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
func (c *call) tokenPassed(p *callers.KnownPass, path string, now time.Duration) {
	c.check = nil
	c.leaveWaiting()
	c.become(callNew)
	c.callerID = c.caller.withPass(p, c.callerID)
	c.setCaller(path)
	c.head.SetPass(p, path)
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
func (cc *callerConn) withPass(p *callers.KnownPass, id *callers.ID) *callers.ID {
	if p == nil || p.Identity == "" {
		return id
	}
	c := id.Caller
	c.Identity = p.Identity
	return cc.st.ids.Of(c)
}

// setCaller tells the call's head, which no other call shares, that its caller is known now.
func (c *call) setCaller(path string) {
	h, cc := c.head, c.caller
	if h.Caller == c.callerID {
		return
	}
	key := h.Key
	if key != nil && cc.st.conf.fieldKey < 0 {
		cc.st.keys.Drop(key, cc.st.Now())
		cc.key = cc.st.keys.OfCaller(cc.key, c.callerID, cc.st.Now())
		key = cc.key.Share()
	}
	cc.st.heads.SetCaller(h, c.callerID, key, path)
}
