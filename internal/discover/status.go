package discover

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Status is the state of one endpoint at one moment.
type Status struct {
	Name   string    // the address as it was written, or "ip:port"
	From   []string  // the upstreams that name it, as they were written; none while it is draining
	State  State     //
	Since  time.Time // when State was entered
	Reason string    // why it gets no calls, if the endpoint is the cause
}

// Endpoints returns the status of every endpoint, by name.
func (r *Roster) Endpoints() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Status, 0, len(r.members))
	for _, name := range slices.Sorted(maps.Keys(r.members)) {
		m := r.members[name]
		all = append(all, Status{Name: name, From: slices.Clone(m.from), State: m.state, Since: m.since, Reason: m.reason})
	}
	return all
}

// Lookups returns the counts of lookups of every name, in the order of the upstreams.
func (r *Roster) Lookups() []Lookups {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Lookups
	for _, n := range r.entries {
		if n.source != nil {
			all = append(all, n.source.lookups())
		}
	}
	return all
}

// EverReached reports whether any endpoint has ever been able to take calls. For the
// startup probe; it takes no lock.
func (r *Roster) EverReached() bool { return r.reached.Load() }

// SetDrained takes an endpoint out for as long as an upstream names it, or puts it back if
// drained is false: it gets no new calls, and its running calls go on. The error is about an
// unknown name.
func (r *Roster) SetDrained(name string, drained bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, known := r.members[name]
	if !known || m.wish == leave {
		return fmt.Errorf("there is no upstream %q", name)
	}
	if m.drained != drained {
		m.drained = drained
		m.notify()
	}
	return nil
}
