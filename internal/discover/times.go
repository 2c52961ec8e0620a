package discover

import "time"

// Times are the Options that may change while endpoints are watched.
type Times struct {
	// DrainTimeout is how long the calls at an endpoint that is named no more may
	// take to end before they are cut.
	DrainTimeout time.Duration
	// HealthInterval is the silence after which an endpoint is asked for its
	// health; HealthTimeout bounds the question.
	HealthInterval, HealthTimeout time.Duration
}

// Configure changes the times. They hold at once, also for endpoints that drain.
func (r *Roster) Configure(t Times) {
	if *r.times.Load() != t {
		r.times.Store(&t)
	}
}

// keepTime passes the present times on to the asker.
func (m *member) keepTime() {
	if now := m.roster.times.Load(); now != m.rhythm {
		m.rhythm = now
		m.asker.Configure(now.HealthInterval, now.HealthTimeout)
	}
}
