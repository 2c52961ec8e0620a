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

// proof is a pass that a shard remembers.
type proof struct {
	Pass
	epoch uint64
	until time.Duration
	as    string // its identity, "": none
}

// gate is what a shard knows of those who call by tokens.
//
// Concurrency: guarded by the lock of its shard.
type gate struct {
	st         *stand
	auth       Auth // nil: nobody is asked
	young, old map[string]*proof
	bytes      int // of young
	checks     map[string]*check
	ofSource   map[*source]int // of checks
}

// check is a look at one field outside of the lock, and the calls that wait for it.
type check struct {
	field  string
	source *source
	calls  []claimant
	denied *readyAnswer // what its calls are told; nil: it is under way, or they may go on
}

// claimant is a call with the path that it asks for.
type claimant struct {
	call *call
	path string
}

func newGate(st *stand, auth Auth) gate {
	return gate{
		st: st, auth: auth, young: make(map[string]*proof), old: make(map[string]*proof),
		checks: make(map[string]*check), ofSource: make(map[*source]int),
	}
}

// asks reports whether calls of a connection need a token: who is in this process may have
// been asked by its door.
func (g *gate) asks(cc *callerConn) bool { return g.auth != nil && cc.fromNetwork() }

// fromNetwork reports whether the calls of a connection come from others than this process.
func (cc *callerConn) fromNetwork() bool { return cc.of == nil || !cc.of.asked }

// holds reports whether a pass counts still.
func (g *gate) holds(p *proof) bool {
	return p != nil && p.epoch == g.auth.Epoch() && g.st.Now() < p.until
}

// find returns what is known of a field; nil: it has to be looked at.
func (g *gate) find(field []byte) *proof {
	p := g.young[string(field)]
	if p == nil {
		if p = g.old[string(field)]; g.holds(p) {
			g.keep(string(field), p)
		}
	}
	if !g.holds(p) {
		return nil
	}
	return p
}

// keep remembers a field. Those that were not asked for while half of the room was
// filled are forgotten.
func (g *gate) keep(field string, p *proof) {
	if g.bytes += len(field) + passSize; g.bytes > maxPassBytes/2 {
		g.old, g.young, g.bytes = g.young, make(map[string]*proof), len(field)+passSize
	}
	g.young[field] = p
}

// shown returns what the token of a request has shown before; nil: it has to be looked at.
func (cc *callerConn) shown(b *h2.Block) *proof {
	w, _ := b.Watched(cc.st.conf.fieldToken)
	if w.Count > 1 || len(w.Value) > maxAuthorization {
		return nil
	}
	return cc.st.gate.find(w.Value)
}

// prove has the call wait until its token was looked at.
func (c *call) prove(b *h2.Block, now time.Duration) {
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
	k := c.st.gate.checkOf(w.Value, c.caller.from())
	if k == nil {
		c.fail(endedChecks, now)
		return
	}
	k.calls = append(k.calls, claimant{c, string(nameOf(path.Value))})
	c.check, c.state = k, callGathering
	c.count()
	c.setClock(now)
}

// from returns where the calls of a connection come from.
func (cc *callerConn) from() *source {
	if cc.of != nil {
		return cc.of.source
	}
	return cc.source
}

// deny answers a call whose token counts for nothing.
func (c *call) deny(why error, now time.Duration) {
	c.check = &check{denied: deniedBecause(why)}
	c.fail(endedToken, now)
}

// checkOf returns the look at a field that is under way, or begins one; nil: there are too
// many.
func (g *gate) checkOf(field []byte, from *source) *check {
	k := g.checks[string(field)]
	if k != nil {
		return k
	}
	if len(g.checks) >= maxChecks || g.ofSource[from] >= maxChecksOf {
		return nil
	}
	k = &check{field: string(field), source: from}
	g.checks[k.field] = k
	g.ofSource[from]++
	go g.look(k) // ends when Verify does: nobody waits for it but the calls
	return k
}

// look looks at a field, and sends the calls on their way that have waited for it.
func (g *gate) look(k *check) {
	epoch := g.auth.Epoch()
	shown, err := g.auth.Verify(k.field)
	g.st.do(func() {
		delete(g.checks, k.field)
		if g.ofSource[k.source]--; g.ofSource[k.source] == 0 {
			delete(g.ofSource, k.source)
		}
		now := g.st.Now()
		if err != nil {
			k.denied = deniedBecause(err)
			for one, more := k.next(); more; one, more = k.next() {
				one.call.fail(endedToken, now)
			}
			return
		}
		p := &proof{Pass: shown, epoch: epoch, until: now + maxPassTime}
		if shown.User != "" {
			p.as = TokenIdentity(shown.User)
		}
		if !shown.Until.IsZero() {
			p.until = min(p.until, now+time.Until(shown.Until))
		}
		g.keep(k.field, p)
		for one, more := k.next(); more; one, more = k.next() {
			one.call.proven(p, one.path, now)
		}
	})
}

// next takes one of the calls out of those that wait: what becomes of it may have others
// leave, which are not waited for then.
func (k *check) next() (one claimant, more bool) {
	if len(k.calls) == 0 {
		return one, false
	}
	one, k.calls = k.calls[0], k.calls[1:]
	return one, true
}

// proven sends a call on whose token was looked at.
func (c *call) proven(p *proof, path string, now time.Duration) {
	c.check = nil
	c.waitsNoMore()
	c.state = callNew
	c.who = c.caller.with(p, c.who)
	c.form.belongsTo(c.caller, c.who, path)
	c.form.pass, c.form.barred = p, !p.allows(path)
	st, cc := c.st, c.caller
	c.admit(now) // it may be over then
	st.shed(cc, now)
}

// forsake takes the call from those that wait for a look at their token.
func (c *call) forsake() {
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

// with returns whose the calls are of a caller that has shown a pass.
func (cc *callerConn) with(p *proof, w *who) *who {
	if p == nil || p.as == "" {
		return w
	}
	c := w.Caller
	c.Identity = p.as
	return cc.st.known(c)
}

// belongsTo makes a form that nobody shares one of another caller, at the same address.
func (f *form) belongsTo(cc *callerConn, w *who, path string) {
	if f.who == w {
		return
	}
	head := f.head[:len(f.head)-len(f.who.shown)]
	f.list += w.lists - f.who.lists
	f.who = w
	if f.key != nil && cc.st.conf.naming.By == ByPeer {
		cc.st.keys.drop(f.key)
		cc.setKey(w.key, w.text)
		f.key = cc.key
		f.key.refs++
		f.lane = cc.st.relay.laneOf([]byte(path), f.key)
	}
	f.head = cc.st.Pool().Append(head, w.shown)
}
