package service

import (
	"fmt"
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
func (s *service) Status() admin.Status {
	load, slots := s.relay.Load(), s.slotsByName()
	status := admin.Status{
		Version: s.build.Version, PID: os.Getpid(), Started: s.began.UTC(), State: s.phaseName(), Generation: 1,
		Listeners: s.addresses,
		Workers:   []admin.WorkerStatus{}, Upstreams: []admin.UpstreamStatus{},
		Queue:  admin.QueueStatus{Waiting: load.Waiting, OldestSeconds: load.Oldest.Seconds(), Overload: s.relay.Overloaded()},
		Config: admin.ConfigStatus{File: s.cfg.File, Reload: s.orders.reloaded.Load()},
	}
	for _, e := range slots {
		status.InFlight += e.InFlight
	}
	if s.workers != nil {
		s.addWorkers(&status, slots)
		s.addMemory(status.Workers)
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
	entry := admin.UpstreamStatus{Address: u.Name, State: u.State.String(), Since: u.Since.UTC(), Reason: u.Reason}
	// An upstream that is an address needs no word about where it comes from.
	if !slices.Equal(u.From, []string{u.Name}) {
		entry.From = u.From
	}
	return entry
}

func (s *service) phaseName() string {
	switch {
	case s.orders.serving.isOver():
		return "stopping"
	case !s.Started():
		return "starting"
	}
	return "serving"
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
func (s *service) addMemory(workers []admin.WorkerStatus) {
	var groups []int
	for _, w := range workers {
		if w.PID != 0 {
			groups = append(groups, w.PID)
		}
	}
	held := s.memory.of(groups, time.Now())
	for i := range workers {
		workers[i].MemoryBytes = held[workers[i].PID]
	}
}

func workerStatus(w worker.Status) admin.WorkerStatus {
	entry := admin.WorkerStatus{
		Name: w.Name, Index: w.Index, State: w.State.String(), Since: w.Since.UTC(), PID: w.PID, Started: w.Started.UTC(),
		Address: w.Address, Generation: w.Generation, Reason: w.Reason, LastExit: w.LastExit,
		Restarts: byName(w.Ends), Retired: byName(w.Retired), CallsCut: byName(w.Cut),
	}
	if w.Network == "unix" {
		entry.Address = "unix:" + w.Address
	}
	maps.DeleteFunc(entry.CallsCut, func(_ string, n int) bool { return n == 0 })
	return entry
}

// byName counts what has names by these.
func byName[K interface {
	comparable
	fmt.Stringer
}](counted map[K]int) map[string]int {
	named := make(map[string]int, len(counted))
	for what, n := range counted {
		named[what.String()] = n
	}
	return named
}

// rollStatus is the replacement that runs, or the last one, or nil.
func rollStatus(o worker.Overview) *admin.RollStatus {
	is, running := o.Last, o.Operation != ""
	if running {
		is = worker.Outcome{Operation: o.Operation, Done: o.Done, Total: o.Total, Cut: o.Cut, Began: o.Began}
	}
	if is.Operation == "" {
		return nil
	}
	status := &admin.RollStatus{
		Reason: is.Operation, Running: running, Started: is.Began.UTC(), Ended: is.Ended.UTC(),
		Completed: is.Done, Total: is.Total, CallsCut: is.Cut, Error: is.Error,
	}
	if running {
		status.Step = o.Step
	}
	return status
}
