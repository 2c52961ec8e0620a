package discover

import (
	"maps"
	"slices"
	"time"
)

// claim is the wish of the upstreams for one endpoint.
type claim struct {
	wish wish
	from []string
}

// arrange adds, changes and removes members so that they match the upstreams. Roster.mu
// is held.
func (r *Roster) arrange() {
	if r.ctx.Err() != nil {
		return
	}
	claims := r.claims()
	for name, m := range r.members {
		if _, named := claims[name]; !named {
			m.claim(claim{wish: leave})
		}
	}
	left := 0
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		m, known := r.members[name]
		switch {
		case known:
			m.claim(claims[name])
		case len(r.members) >= maxEndpoints:
			left++
		default:
			r.enlist(name, claims[name])
		}
	}
	if left > 0 && !r.full {
		r.options.Logger.Warn("too many upstreams, the rest is not used", "used", maxEndpoints, "left", left)
	}
	r.full = left > 0
}

// claims gathers the claims, by the name of the endpoint. An endpoint that one upstream
// wants to serve and another one to stand by serves.
func (r *Roster) claims() map[string]claim {
	claims := make(map[string]claim)
	add := func(name string, w wish, n *named) {
		c, known := claims[name]
		if !known || w < c.wish {
			c.wish = w
		}
		c.from = append(c.from, n.entry.text)
		claims[name] = c
	}
	for _, n := range r.entries {
		if n.source == nil {
			add(n.entry.text, serve, n)
			continue
		}
		tier := r.tier(n)
		for _, t := range n.targets {
			w := serve
			if t.tier != tier {
				w = standBy
			}
			add(n.entry.endpoint(t), w, n)
		}
	}
	return claims
}

// tier returns the tier of the targets that gets the calls: the lowest one with an
// endpoint that may take calls, as far as is known; without such an endpoint, the
// lowest (RFC 2782, priority). targets are sorted by tier.
func (r *Roster) tier(n *named) uint16 {
	for _, t := range n.targets {
		if m, known := r.members[n.entry.endpoint(t)]; !known || m.hopeful {
			return t.tier
		}
	}
	if len(n.targets) == 0 {
		return 0
	}
	return n.targets[0].tier
}

// tiered reports whether the health of one member can change the tier that gets calls.
func (r *Roster) tiered() bool {
	return slices.ContainsFunc(r.entries, func(n *named) bool {
		last := len(n.targets) - 1
		return last > 0 && n.targets[0].tier != n.targets[last].tier
	})
}

// enlist makes a member and starts it.
func (r *Roster) enlist(name string, c claim) {
	m := newMember(r, name)
	m.wish, m.from = c.wish, c.from
	r.members[name] = m
	r.running.Go(func() { m.run(r.ctx) }) // ended by Stop, or when it has left
}

// claim gives a member a new claim. Roster.mu is held.
func (m *member) claim(c claim) {
	m.from = c.from
	if m.wish != c.wish {
		m.wish = c.wish
		m.notify()
	}
}

// notify makes the member look at its wish.
func (m *member) notify() {
	select {
	case m.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// orders returns the wish for a member, and whether the operator has taken it out.
func (r *Roster) orders(m *member) (wish, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return m.wish, m.drained
}

// note publishes the state of a member. The members are arranged again if that changes
// which tier gets calls.
func (r *Roster) note(m *member, state State, why string, hopeful bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.state != state {
		m.state, m.since = state, time.Now()
	}
	m.reason = why
	if m.hopeful != hopeful {
		m.hopeful = hopeful
		if r.tiered() {
			r.arrange()
		}
	}
}

// lookUpAgain looks up again the names of an endpoint that has failed.
func (r *Roster) lookUpAgain(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.entries {
		if n.source != nil && slices.Contains(m.from, n.entry.text) {
			n.source.poke()
		}
	}
}

// retire removes a member, unless it is wanted again. It reports whether the member is
// removed.
func (r *Roster) retire(m *member) bool {
	if wanted, _ := r.orders(m); wanted != leave {
		return false
	}
	r.options.Membership.Remove(m.name)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, m.name)
	if m.wish != leave && r.ctx.Err() == nil { // it was named again meanwhile
		r.enlist(m.name, claim{m.wish, m.from})
	}
	return true
}
