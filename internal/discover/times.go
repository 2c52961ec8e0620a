package discover

import "time"

// Times are those of the Options that may change while endpoints are watched.
type Times struct {
	DrainTimeout                  time.Duration
	HealthInterval, HealthTimeout time.Duration
}

// Configure changes the times. They hold at once, also for endpoints that drain.
func (r *Roster) Configure(t Times) {
	if *r.times.Load() != t {
		r.times.Store(&t)
	}
}

// keepTime has the endpoint asked in the rhythm of now.
func (m *member) keepTime() {
	if m.asker != nil && m.rhythm != m.roster.times.Load() {
		m.closeAsker() // a question under way ends, and its answer is nobody's
		m.openAsker()
	}
}
