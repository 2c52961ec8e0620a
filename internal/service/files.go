package service

import (
	"log/slog"
	"math"

	"github.com/cabrank/cabrank/internal/config"
)

const (
	// filesOfProcess are open whatever happens: listeners, logs, pages, probes.
	filesOfProcess = 64
	// filesOfEndpoint are those of one worker: pipes for its output, health
	// checks, the connection by which an upstream is watched.
	filesOfEndpoint = 4
	// connsOfEndpoint is how many connections each shard may want to have to an
	// endpoint, with old ones that finish their calls.
	connsOfEndpoint = 2
	// endpointsOfName is how many endpoints a name is taken to stand for. It is a
	// guess: names may come to stand for a thousand.
	endpointsOfName = 32
	// leastConnections are taken however few files may be open, as long as there are
	// more than spareFiles.
	leastConnections = 16
	// spareFiles are never given to callers, where all of them are fewer than reckoned
	// above: one worker that is started and asked for its health needs 10, the pages
	// and the control a few.
	spareFiles = 20
	// fewConnections are so few that it is told although nobody asked for more.
	fewConnections = 1000
)

// lastOfCallers returns the descriptor from which on callers get none, 0 if their
// limit is not known.
func lastOfCallers(files uint64) int {
	if files == 0 || files > math.MaxInt32 {
		return 0
	}
	return max(int(files)-spareFiles, 1)
}

// openable returns how many callers' connections there may be: as many as are
// configured, but no more than can be open together with all that serves them.
// files is 0 if their limit is not known.
func openable(cfg *config.Config, files uint64, log *slog.Logger) int {
	wanted := cfg.Limits.Connections
	own := filesOfProcess + mostEndpoints(cfg)*(filesOfEndpoint+connsOfEndpoint*cfg.Shards)
	if files == 0 || files > uint64(wanted+own) {
		return wanted
	}
	fits := max(int(files)-own, leastConnections)
	if fits >= wanted {
		return wanted
	}
	switch _, given := cfg.Written("limits.connections"); {
	case given:
		log.Warn("fewer connections than configured: the limit on open files is lower",
			"configured", wanted, "taken", fits, "open_files", files)
	case fits < fewConnections:
		log.Warn("few connections can be taken: the limit on open files is low", "taken", fits, "open_files", files)
	}
	return fits
}

// mostEndpoints returns how many endpoints there may be at a time.
func mostEndpoints(cfg *config.Config) int {
	endpoints := 0
	if len(cfg.Command) > 0 {
		endpoints = cfg.Workers.Count.Most() + cfg.Workers.MaxSurge
	}
	for _, upstream := range cfg.Upstreams {
		endpoints++
		if config.IsName(upstream) {
			endpoints += endpointsOfName - 1
		}
	}
	return endpoints
}
