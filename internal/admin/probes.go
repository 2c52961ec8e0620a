package admin

import (
	"log/slog"
	"net"
	"net/http"
)

// Health answers the probes. The methods may be called at any time, also at the
// same time, and should return at once: an answer that does not come in a
// second or so counts as a failed probe for most orchestrators.
type Health interface {
	// Started says whether a worker has ever been ready.
	Started() bool
	// Ready says whether calls should be sent here: enough workers are ready
	// and the process is not about to stop.
	Ready() bool
	// Alive says whether the supervisor itself still does its work. Busy,
	// crashed or hung workers do not make it false: a restart of the whole
	// would not help them.
	Alive() bool
}

// ServeProbes answers /startup, /readiness and /liveness on a listener, which
// belongs to the Server from then on.
//
// Shape: status 200 or 503 for any method, no body, as gruf-relay did; 404 for
// any other path.
func ServeProbes(on net.Listener, health Health, log *slog.Logger) *Server {
	return serve(on, probes{health}, maxConnections, log)
}

type probes struct{ health Health }

func (p probes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var good bool
	switch r.URL.Path {
	case "/startup":
		good = p.health.Started()
	case "/readiness":
		good = p.health.Ready()
	case "/liveness":
		good = p.health.Alive()
	default:
		http.NotFound(w, r)
		return
	}
	if good {
		w.WriteHeader(http.StatusOK)
	} else {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
