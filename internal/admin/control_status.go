package admin

import "time"

// Status is the answer to GET /v1/status: all that is known of a running
// cabrank at one moment.
//
// Names and meanings stay as they are within /v1; fields may be added. Units
// are in the names: seconds as a number, bytes as a whole number, times in UTC
// after RFC 3339. docs/control.md describes it field by field.
type Status struct {
	Version    string     `json:"version"`
	PID        int        `json:"pid"`
	Started    time.Time  `json:"started"`
	State      string     `json:"state"`      // starting, serving or stopping
	Generation int        `json:"generation"` // the newest: one more for each roll that was begun
	Listeners  []Listener `json:"listeners"`

	Wanted  int      `json:"wanted"`            // workers, without the spares of a roll
	Ready   int      `json:"ready"`             // workers that take calls
	Scaling *Scaling `json:"scaling,omitempty"` // absent unless the number of workers adapts

	Workers   []WorkerStatus   `json:"workers"`
	Upstreams []UpstreamStatus `json:"upstreams"`
	Names     []NameStatus     `json:"names,omitempty"` // upstreams that are looked up
	InFlight  int              `json:"in_flight"`       // calls that have a slot
	Queue     QueueStatus      `json:"queue"`
	Roll      *RollStatus      `json:"roll,omitempty"` // the replacement that runs, or the last one
	Config    ConfigStatus     `json:"config"`
}

// Listener is one address on which this cabrank listens.
type Listener struct {
	Kind    string `json:"kind"` // calls, probes, metrics, push or control
	Address string `json:"address"`
}

// Scaling is what adapts the number of workers, and why it is what it is.
type Scaling struct {
	Min    int    `json:"min"`
	Max    int    `json:"max"`
	Held   bool   `json:"held"` // by `cabrank scale N`, until `cabrank scale auto`
	Reason string `json:"reason,omitempty"`
}

// WorkerStatus is one place for a worker that is in use.
type WorkerStatus struct {
	Name       string    `json:"name"`
	Index      int       `json:"index"`
	State      string    `json:"state"` // as in cabrank_worker_state
	Since      time.Time `json:"since"` // in that state
	PID        int       `json:"pid"`   // 0 without a process
	Started    time.Time `json:"started,omitzero"`
	Address    string    `json:"address"`
	Generation int       `json:"generation"`

	Slots    int    `json:"slots"`
	InFlight int    `json:"in_flight"`
	Ghosts   int    `json:"ghosts"`
	Served   uint64 `json:"served"` // calls that ended at this place, whichever process had them

	Reason      string         `json:"reason,omitempty"`    // why it does not serve, though it has a process
	Restarts    map[string]int `json:"restarts"`            // by cause; those that never happened are absent
	Retired     map[string]int `json:"retired"`             // workers of this place that were ended on purpose, by reason
	CallsCut    map[string]int `json:"calls_cut,omitempty"` // calls that were ended with them, by the same reason
	LastExit    string         `json:"last_exit,omitempty"`
	MemoryBytes int64          `json:"memory_bytes,omitempty"` // resident; absent where it is not known
}

// UpstreamStatus is one endpoint that someone else runs.
type UpstreamStatus struct {
	Address  string    `json:"address"`
	State    string    `json:"state"` // as in cabrank_upstream_state
	Since    time.Time `json:"since,omitzero"`
	From     []string  `json:"from,omitempty"`   // the upstreams that name it, where that is not its address
	Reason   string    `json:"reason,omitempty"` // why it gets no calls, if that is its own fault
	Slots    int       `json:"slots"`
	InFlight int       `json:"in_flight"`
	Ghosts   int       `json:"ghosts"`
	Served   uint64    `json:"served"`
}

// NameStatus is an upstream that is a name.
type NameStatus struct {
	Name      string            `json:"name"`      // as it was written: "dns:NAME:PORT" or "srv:NAME"
	Addresses int               `json:"addresses"` // that it stands for now
	Lookups   map[string]uint64 `json:"lookups"`   // by result, as in cabrank_dns_lookups_total
}

// QueueStatus is what waits for a slot.
type QueueStatus struct {
	Waiting       int     `json:"waiting"`
	OldestSeconds float64 `json:"oldest_seconds"` // how long the oldest has waited
	Overload      bool    `json:"overload"`       // more calls come than can end before their deadlines
}

// RollStatus is a replacement of workers: a rolling restart, or of one worker.
type RollStatus struct {
	Reason    string    `json:"reason"` // roll, drain, or what a worker had too much of
	Running   bool      `json:"running"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Completed int       `json:"completed"` // workers replaced
	Total     int       `json:"total"`
	Step      string    `json:"step,omitempty"`      // what happens now, or did last: "draining worker-2 (3 calls)"
	CallsCut  int       `json:"calls_cut,omitempty"` // calls that were ended because they did not end in time
	Error     string    `json:"error,omitempty"`     // why it stopped; empty if it did not
}

// ConfigStatus is where the configuration came from.
type ConfigStatus struct {
	File   string        `json:"file,omitempty"` // empty: no file
	Reload *ReloadStatus `json:"reload,omitempty"`
}

// ReloadStatus is the last reload of the configuration.
type ReloadStatus struct {
	Time  time.Time `json:"time"`
	Error string    `json:"error,omitempty"` // why nothing was changed
	Reload
}

// Reload is what a reload found. The lists hold names of keys.
type Reload struct {
	Applied      []string `json:"applied"`       // changed, and in force
	NeedsRestart []string `json:"needs_restart"` // changed, for workers that start from now on
	NeedsUpgrade []string `json:"needs_upgrade"` // changed, for the next cabrank
	Warnings     []string `json:"warnings,omitempty"`
}
