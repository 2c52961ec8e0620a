package service

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/worker"
)

// Status implements admin.Observer.
func (c controls) Status() admin.Status {
	s := c.s
	load, slots := s.relay.Load(), s.slotsByName()
	status := admin.Status{
		Version: s.build.Version, PID: os.Getpid(), Started: s.began.UTC(), State: s.phaseName(), Generation: 1,
		Listeners: s.addresses(),
		Workers:   []admin.WorkerStatus{}, Upstreams: []admin.UpstreamStatus{},
		Queue:  admin.QueueStatus{Waiting: load.Waiting, OldestSeconds: load.Oldest.Seconds(), Overload: s.relay.Overloaded()},
		Config: admin.ConfigStatus{File: s.cfg.File, Reload: s.orders.reloaded.Load()},
	}
	for _, e := range slots {
		status.InFlight += e.InFlight
	}
	if s.workers != nil {
		s.addWorkers(&status, slots)
		c.addMemory(status.Workers)
	}
	for _, u := range s.upstreams.Endpoints() {
		entry := upstreamStatus(u)
		e := slots[u.Name]
		entry.Slots, entry.InFlight, entry.Ghosts = e.Limit, e.InFlight, e.Ghosts
		entry.Served = s.outside.Activity(u.Name).Served
		status.Upstreams = append(status.Upstreams, entry)
	}
	for _, n := range s.upstreams.Lookups() {
		status.Names = append(status.Names, admin.NameStatus{Name: n.Name, Addresses: n.Addresses, Lookups: n.Results})
	}
	return status
}

func upstreamStatus(u discover.Status) admin.UpstreamStatus {
	entry := admin.UpstreamStatus{Address: u.Name, State: u.State.String(), Since: utc(u.Since), Reason: u.Reason}
	// An upstream that is an address needs no word about where it comes from.
	if !slices.Equal(u.From, []string{u.Name}) {
		entry.From = u.From
	}
	return entry
}

func (s *service) phaseName() string {
	switch {
	case s.orders.stopping.Load():
		return "stopping"
	case !s.Started():
		return "starting"
	}
	return "serving"
}

// addresses returns where the service listens.
func (s *service) addresses() []admin.Listener {
	all := []admin.Listener{{Kind: "calls", Address: s.door.String()}}
	if s.probes != nil {
		all = append(all, admin.Listener{Kind: "probes", Address: s.probes.Addr().String()})
	}
	if s.metrics != nil {
		all = append(all, admin.Listener{Kind: "metrics", Address: s.metrics.Addr().String()})
	}
	if s.push != nil {
		all = append(all, admin.Listener{Kind: "push", Address: s.push.Addr().String()})
	}
	return append(all, admin.Listener{Kind: "control", Address: s.controlSocket.Path()})
}

func (s *service) slotsByName() map[string]rank.EndpointState {
	slots := make(map[string]rank.EndpointState)
	for _, e := range s.relay.Rank().Endpoints {
		slots[e.Name] = e
	}
	return slots
}

// addWorkers adds what the supervisor knows, and what the relay does about each
// worker.
func (s *service) addWorkers(status *admin.Status, slots map[string]rank.EndpointState) {
	overview := s.workers.Overview()
	status.Wanted, status.Generation, status.Roll = overview.Wanted, overview.Generation, rollStatus(overview)
	status.Scaling = s.autoscale.State()
	for _, w := range s.workers.Workers() {
		if w.State == worker.Vacant {
			continue
		}
		if w.State == worker.Ready {
			status.Ready++
		}
		entry := workerStatus(w)
		e := slots[w.Name]
		entry.Slots, entry.InFlight, entry.Ghosts = e.Limit, e.InFlight, e.Ghosts
		entry.Served = s.places.Activity(w.Name).Served
		status.Workers = append(status.Workers, entry)
	}
}

// addMemory adds what the workers hold, where the system tells.
func (c controls) addMemory(workers []admin.WorkerStatus) {
	var groups []int
	for _, w := range workers {
		if w.PID != 0 {
			groups = append(groups, w.PID)
		}
	}
	held := c.memory.of(groups, time.Now())
	for i := range workers {
		workers[i].MemoryBytes = held[workers[i].PID]
	}
}

func workerStatus(w worker.Status) admin.WorkerStatus {
	entry := admin.WorkerStatus{
		Name: w.Name, Index: w.Index, State: w.State.String(), Since: w.Since.UTC(), PID: w.PID, Started: utc(w.Started),
		Address: w.Address, Generation: w.Generation, Reason: w.Reason, LastExit: w.LastExit,
		Restarts: byName[int](w.Ends), Retired: byName[int](w.Retired), CallsCut: byName[int](w.Cut),
	}
	if w.Network == "unix" {
		entry.Address = "unix:" + w.Address
	}
	maps.DeleteFunc(entry.CallsCut, func(_ string, n int) bool { return n == 0 })
	return entry
}

// utc leaves the zero time as it is.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// rollStatus is the replacement that runs, or the last one, or nil.
func rollStatus(o worker.Overview) *admin.RollStatus {
	switch {
	case o.Operation != "":
		return &admin.RollStatus{
			Reason: o.Operation, Running: true, Started: o.Began.UTC(), Completed: o.Done, Total: o.Total, Step: o.Step, CallsCut: o.Cut,
		}
	case o.Last.Operation != "":
		return &admin.RollStatus{
			Reason: o.Last.Operation, Started: o.Last.Began.UTC(), Ended: o.Last.Ended.UTC(),
			Completed: o.Last.Done, Total: o.Last.Total, CallsCut: o.Last.Cut, Error: o.Last.Error,
		}
	}
	return nil
}
