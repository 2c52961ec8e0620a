package admin

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/cabrank/cabrank/internal/discover"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/worker"
)

const (
	// maxScrapes is how many pages may be made at a time; further requests get 503.
	maxScrapes = 4
	// pagesShare of the memory for workers' pages may be held of what more than one shows.
	pagesShare = 4
)

// Build names the binary.
type Build struct {
	Version string
	Commit  string
}

// Sources is where the metrics page takes its numbers from, anew for each
// request. A nil function stands for numbers that do not exist.
//
// The functions may be called at the same time and return data that the page
// may keep reading: copies, not the live maps. Counters never fall.
type Sources struct {
	Build   Build
	Traffic Traffic                     // nil: there is none
	Slots   func() []rank.EndpointState // those that turn calls away are suspect, too
	Workers func() []worker.Status

	Spans        func() map[string]uint64        // of traces, by what became of them; nil: there are none
	LinesDropped func() map[string]uint64        // because nobody read them, by whose they are
	Expiring     func() map[string]time.Duration // for how long certificates are good, by file

	Scale func() ScaleSample

	Upstreams func() []discover.Status
	Lookups   func() []discover.Lookups

	Sockets func() SocketSample // of a process that has any

	// Merged is what the workers' own pages have, nil if nobody reads them; Scrapes
	// tells how that goes.
	Merged  prometheus.Gatherer
	Scrapes func() ScrapeSample
}

// Traffic is what tells of calls: relay.Relay.
type Traffic interface {
	Stats() relay.Stats
	Waiting() int
	Rank() rank.Snapshot
	Overloaded() bool
	Decisions() map[string]uint64
}

// ServeMetrics answers path on a listener with the metrics page, and 404 on any
// other path. The listener belongs to the Server from then on; after an error,
// which sources that contradict each other bring, it is closed.
func ServeMetrics(on net.Listener, path string, sources Sources, log *slog.Logger) (*Server, error) {
	page, err := metricsPage(sources, log)
	if err != nil {
		_ = on.Close()
		return nil, err
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Compared as it is: a mux would read braces in path as wildcards.
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		page.ServeHTTP(w, r)
	})
	return serve(on, handler, maxConnections, log), nil
}

// metricsPage makes the handler with a registry of its own.
func metricsPage(sources Sources, log *slog.Logger) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, collector := range []prometheus.Collector{
		newCollector(sources),
		newUpstreamCollector(sources),
		newScaleCollector(sources),
		newSocketCollector(sources),
		newScrapeCollector(sources),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(lockWaits())),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("metrics page: %w", err)
		}
	}
	plain := pageOf(joined{own: registry, merged: sources.Merged}, log)
	open := pageOf(joined{own: registry, merged: sources.Merged, open: true}, log)
	most := &pages{scrapes: sources.Scrapes}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, ok := most.enter()
		if !ok {
			http.Error(w, "too many pages at a time", http.StatusServiceUnavailable)
			return
		}
		defer leave()
		if expfmt.NegotiateIncludingOpenMetrics(r.Header).FormatType() == expfmt.TypeOpenMetrics {
			open.ServeHTTP(w, r)
			return
		}
		plain.ServeHTTP(w, r)
	}), nil
}

// pageOf serves what a gatherer has, in text, OpenMetrics or protobuf.
func pageOf(from prometheus.Gatherer, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// One odd sample must not cost the operator all the others.
		ErrorHandling:     promhttp.ContinueOnError,
		Timeout:           pageTimeout,
		EnableOpenMetrics: true,
	})
}

// lockWaits has the time that goroutines wait for locks shown: more than a few
// percent of it per core would be a reason for fewer shards.
func lockWaits() collectors.GoRuntimeMetricsRule {
	return collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/sync/mutex/wait/total:seconds$")}
}

// collector turns the sources into metrics at the time of a scrape.
type collector struct {
	sources Sources

	calls, seconds, wait, work     *prometheus.Desc
	refusals                       *prometheus.Desc
	ended, connections, buffered   *prometheus.Desc
	mostConnections, mostBuffered  *prometheus.Desc
	dropped, spans                 *prometheus.Desc
	retries, retriesDenied, hedges *prometheus.Desc
	doors                          *prometheus.Desc
	queueLength, inFlight, slots   *prometheus.Desc
	usable, ghosts, suspect, pace  *prometheus.Desc
	laneWaiting, laneRunning       *prometheus.Desc
	longCalls, callers, decisions  *prometheus.Desc
	overload                       *prometheus.Desc
	workerState, restarts, retired *prometheus.Desc
	expires                        *prometheus.Desc
	buildInfo                      *prometheus.Desc
}

func newCollector(sources Sources) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("cabrank_"+name, help, labels, nil)
	}
	return &collector{
		sources:         sources,
		calls:           desc("calls_total", "Finished calls by method and gRPC code (HTTP status for other requests).", "method", "code"),
		seconds:         desc("call_seconds", "Time from a call's headers to its end, in seconds.", "method"),
		wait:            desc("queue_wait_seconds", "Time that calls waited for a slot, in seconds.", "method"),
		work:            desc("worker_seconds", "Time that calls had a slot, from its grant to the worker's end, in seconds.", "method"),
		refusals:        desc("refusals_total", "Calls that cabrank itself refused or ended, by reason.", "reason"),
		retries:         desc("retries_total", "Further attempts by the rules of methods, by what had failed.", "reason"),
		retriesDenied:   desc("retries_denied_total", "Further attempts that were due and not made, by what spoke against them.", "reason"),
		doors:           desc("door_calls_total", "Finished calls by the door through which they came in, and gRPC code (HTTP status for door \"http\").", "door", "code"),
		hedges:          desc("hedges_total", "Second attempts beside first ones that were late, by result; sent ones are also won or lost, or under way.", "result"),
		ended:           desc("connections_ended_total", "Connections that cabrank ended, by side and reason.", "side", "reason"),
		connections:     desc("connections", "Connections of callers now."),
		buffered:        desc("buffered_bytes", "Bytes in buffers of calls and connections now, as buffer_total bounds them."),
		mostConnections: desc("connections_limit", "Connections of callers that there may be now."),
		mostBuffered:    desc("buffered_limit_bytes", "Bytes that may be in buffers now."),
		spans:           desc("spans_total", "Spans of traces: exported, or dropped and why; limited counts calls that got none.", "result"),
		dropped:         desc("lines_dropped_total", "Lines that were dropped because nobody read them or a full disk did not take them.", "of"),
		queueLength:     desc("queue_length", "Calls that wait for a slot now."),
		inFlight:        desc("in_flight", "Slots of a worker that a call has now.", "worker"),
		slots:           desc("slots", "Slots of a worker in all.", "worker"),
		usable:          desc("slots_usable", "Slots of a worker that calls may have now.", "worker"),
		ghosts:          desc("ghosts", "Slots of a worker that are held for calls whose callers have gone.", "worker"),
		suspect:         desc("suspect", "1 if a worker is silent and gets no new calls, else 0.", "worker"),
		pace:            desc("worker_pace", "How long a worker's calls take, compared with what is usual for their methods.", "worker"),
		laneWaiting:     desc("lane_waiting", "Calls of a lane that wait for a slot now.", "lane"),
		laneRunning:     desc("lane_running", "Calls of a lane that have a slot now.", "lane"),
		longCalls:       desc("long_calls", "Calls that have a slot and count as long ones now."),
		callers:         desc("callers", "Callers that are told apart now."),
		overload:        desc("overload", "1 while more calls come than can end before their deadlines, else 0."),
		decisions:       desc("decisions_total", "What the rank decided about calls, by name.", "decision"),
		workerState:     desc("worker_state", "1 for the state that a worker is in, 0 for the others.", "worker", "state"),
		restarts:        desc("worker_restarts_total", "Restarts of a worker by cause.", "worker", "cause"),
		retired:         desc("worker_retired_total", "Workers of a place that were ended on purpose, by reason.", "worker", "reason"),
		expires:         desc("tls_certificate_expires_seconds", "For how long a certificate of the port is good from now on; negative if it has expired.", "cert"),
		buildInfo:       desc("build_info", "Always 1; the labels name the binary.", "version", "commit", "go_version"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		c.calls, c.seconds, c.wait, c.work, c.refusals, c.retries, c.retriesDenied, c.hedges, c.doors, c.ended, c.connections, c.buffered,
		c.mostConnections, c.mostBuffered, c.dropped, c.spans,
		c.queueLength, c.inFlight, c.slots, c.usable, c.ghosts, c.suspect, c.pace,
		c.laneWaiting, c.laneRunning, c.longCalls, c.callers, c.overload, c.decisions,
		c.workerState, c.restarts, c.retired, c.expires, c.buildInfo,
	} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	out := emitter{metrics}
	out.gauge(c.buildInfo, 1, c.sources.Build.Version, c.sources.Build.Commit, runtime.Version())
	if traffic := c.sources.Traffic; traffic != nil {
		c.collectCalls(out, traffic.Stats())
		c.collectRank(out, traffic)
	}
	if c.sources.LinesDropped != nil {
		for of, lines := range c.sources.LinesDropped() {
			out.counter(c.dropped, lines, of)
		}
	}
	if c.sources.Spans != nil {
		for result, n := range c.sources.Spans() {
			out.counter(c.spans, n, result)
		}
	}
	if c.sources.Expiring != nil {
		for file, left := range c.sources.Expiring() {
			out.gauge(c.expires, left.Seconds(), file)
		}
	}
	if c.sources.Slots != nil {
		for _, endpoint := range c.sources.Slots() {
			c.collectSlots(out, endpoint)
		}
	}
	if c.sources.Workers != nil {
		for _, w := range c.sources.Workers() {
			c.collectWorker(out, w)
		}
	}
}

func (c *collector) collectCalls(out emitter, stats relay.Stats) {
	out.gauge(c.connections, float64(stats.Connections))
	out.gauge(c.buffered, float64(stats.Buffered))
	out.gauge(c.mostConnections, float64(stats.MostConnections))
	out.gauge(c.mostBuffered, float64(stats.MostBuffered))
	for _, method := range stats.Methods {
		for code, calls := range method.Codes {
			out.counter(c.calls, calls, method.Method, code)
		}
		out.histogram(c.seconds, method.Seconds, method.Method)
		out.histogram(c.wait, method.Wait, method.Method)
		out.histogram(c.work, method.Work, method.Method)
	}
	for reason, calls := range stats.Refusals {
		out.counter(c.refusals, calls, reason)
	}
	for reason, attempts := range stats.Retries {
		out.counter(c.retries, attempts, reason)
	}
	for reason, attempts := range stats.RetriesDenied {
		out.counter(c.retriesDenied, attempts, reason)
	}
	for name, codes := range stats.Doors {
		for code, calls := range codes {
			out.counter(c.doors, calls, name, code)
		}
	}
	for result, hedges := range stats.Hedges {
		out.counter(c.hedges, hedges, result)
	}
	for side, reasons := range stats.Disconnects {
		for reason, connections := range reasons {
			out.counter(c.ended, connections, side, reason)
		}
	}
}

func (c *collector) collectSlots(out emitter, e rank.EndpointState) {
	out.gauge(c.inFlight, float64(e.InFlight), e.Name)
	out.gauge(c.slots, float64(e.Slots), e.Name)
	out.gauge(c.usable, float64(e.Limit), e.Name)
	out.gauge(c.ghosts, float64(e.Ghosts), e.Name)
	out.whether(c.suspect, e.Suspect, e.Name)
	out.gauge(c.pace, e.Pace, e.Name)
}

func (c *collector) collectRank(out emitter, traffic Traffic) {
	out.gauge(c.queueLength, float64(traffic.Waiting()))
	state := traffic.Rank()
	for _, lane := range state.Lanes {
		out.gauge(c.laneWaiting, float64(lane.Waiting), lane.Name)
		out.gauge(c.laneRunning, float64(lane.Running), lane.Name)
	}
	out.gauge(c.longCalls, float64(state.LongCalls))
	out.gauge(c.callers, float64(state.Accounts))
	out.whether(c.overload, traffic.Overloaded())
	for decision, times := range traffic.Decisions() {
		out.counter(c.decisions, times, decision)
	}
}

func (c *collector) collectWorker(out emitter, w worker.Status) {
	for _, state := range worker.States() {
		out.whether(c.workerState, state == w.State, w.Name, state.String())
	}
	for cause, restarts := range w.Restarts {
		out.counter(c.restarts, uint64(restarts), w.Name, cause.String())
	}
	for reason, workers := range w.Retired {
		out.counter(c.retired, uint64(workers), w.Name, reason.String())
	}
}
