package relay

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

const (
	// maxAbsent is how many methods that no worker has are remembered, and maxAbsentPath the
	// length of their longest path, in bytes. Callers choose them: a new one replaces the
	// oldest.
	maxAbsent     = 64
	maxAbsentPath = 512
	// maxService is the longest name of a service, in bytes.
	maxService = 255
)

// services has the services of the endpoints.
//
// Endpoints describe themselves by lists, which may lack a service: people often write them
// by hand. A method counts as absent only if no list has its service and a worker has
// answered that it lacks the method.
//
// Concurrency: every method may be called from anywhere.
type services struct {
	described atomic.Pointer[description] // never nil; replaced, not changed

	mu     sync.Mutex        // guards what follows; a leaf, taken after Relay.mu
	absent [maxAbsent]string // paths
	next   int               // place in absent of the next one
}

// description is the sum of the lists of ready endpoints.
type description struct {
	whole   bool            // every ready endpoint has described itself, and there is one at least
	serving map[string]bool // by service: whether an endpoint serves it now
}

// replace sets another description, and forgets the absent methods: a new endpoint may have
// them.
func (s *services) replace(d *description) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absent, s.next = [maxAbsent]string{}, 0
	s.described.Store(d)
}

// answeredUnimplemented notes that a worker does not have the method of a path.
func (s *services) answeredUnimplemented(path []byte) {
	known := s.described.Load()
	if _, listed := known.serving[string(serviceOf(path))]; listed || !known.whole || len(path) > maxAbsentPath {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.described.Load() == known && !s.remembers(path) {
		s.absent[s.next] = string(path)
		s.next = (s.next + 1) % maxAbsent
	}
}

// lacks reports whether no worker has the method of a path.
func (s *services) lacks(path []byte) bool {
	if !s.described.Load().whole || len(path) == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remembers(path)
}

func (s *services) remembers(path []byte) bool {
	for i := range s.absent {
		if s.absent[i] == string(path) {
			return true
		}
	}
	return false
}

// serviceOf returns "pkg.Service" of "/pkg.Service/Method".
func serviceOf(path []byte) []byte {
	service, _, _ := bytes.Cut(bytes.TrimPrefix(path, []byte("/")), []byte("/"))
	return service
}

// Describe sets the services of an endpoint, and whether it serves each of them; nil: unknown.
// It holds until the next Up or Down. The map must not change afterwards.
func (r *Relay) Describe(e *Endpoint, described map[string]bool) {
	r.mu.Lock()
	e.described = described
	r.mu.Unlock()
	r.gatherServices()
}

// gatherServices adds up the lists of all ready endpoints.
func (r *Relay) gatherServices() {
	r.mu.Lock()
	r.services.replace(r.allServices())
	r.mu.Unlock()
	r.tellWatches()
}

// allServices is called with the lock.
func (r *Relay) allServices() *description {
	all, ready, silent := &description{serving: map[string]bool{}}, 0, 0
	for _, e := range r.endpoints {
		if !e.ready.Load() {
			continue
		}
		ready++
		if e.described == nil {
			silent++
		}
		for name, serving := range e.described {
			all.serving[name] = all.serving[name] || serving
		}
	}
	all.whole = ready > 0 && silent == 0
	return all
}

// healthOf returns the health of a service (R7). While some endpoint has no list, an unknown
// name has the health of the relay as a whole.
func (r *Relay) healthOf(service string) grpcwire.HealthStatus {
	if service == healthOfProcess {
		return grpcwire.HealthServing
	}
	known := r.services.described.Load()
	serving, listed := known.serving[service]
	switch {
	case service == "", service == healthOfWorkers, !listed && !known.whole, serving:
	case !listed:
		return grpcwire.HealthServiceUnknown
	default:
		return grpcwire.HealthNotServing
	}
	if r.Serving() {
		return grpcwire.HealthServing
	}
	return grpcwire.HealthNotServing
}

// listHealth returns the answer to Health/List: the relay as a whole, Cabrank itself, and all
// described services.
func (r *Relay) listHealth() []byte {
	all := map[string]grpcwire.HealthStatus{}
	for _, name := range []string{"", healthOfProcess, healthOfWorkers} {
		all[name] = r.healthOf(name)
	}
	for name := range r.services.described.Load().serving {
		all[name] = r.healthOf(name)
	}
	return grpcwire.AppendHealthListResponse(nil, all)
}
