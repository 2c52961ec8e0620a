package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cabrank/cabrank/internal/socket"
)

// SocketSample is what sockets have done, and what waits behind them.
type SocketSample struct {
	socket.Stats

	WaitingCalls int   // that no function has taken yet
	WaitingBytes int64 // of them

	Broker *BrokerSample // nil: all is in this process
}

// BrokerSample is what is known of a Redis.
type BrokerSample struct {
	Up                   bool
	Ended, Lost, Unknown uint64 // connections, and orders
}

// socketCollector turns the source that is about sockets into metrics at the time of
// a scrape.
type socketCollector struct {
	sources Sources

	sockets, topics, calls, buffered *prometheus.Desc
	opened, ended, refused           *prometheus.Desc
	messages, expired, dropped       *prometheus.Desc
	denied, slowed                   *prometheus.Desc
	waitingCalls, waitingBytes       *prometheus.Desc
	up, reconnects, lost, unknown    *prometheus.Desc
}

func newSocketCollector(sources Sources) *socketCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("cabrank_"+name, help, labels, nil)
	}
	return &socketCollector{
		sources:      sources,
		sockets:      desc("sockets", "Sockets that are open now."),
		topics:       desc("socket_topics", "Channels and patterns that some socket has subscribed to now."),
		calls:        desc("socket_calls", "Calls of sockets that have not ended."),
		buffered:     desc("socket_buffered_bytes", "Bytes that wait for sockets now, as the budget bounds them."),
		opened:       desc("sockets_opened_total", "Sockets that were opened."),
		ended:        desc("sockets_ended_total", "Sockets that have ended, by reason.", "reason"),
		refused:      desc("sockets_refused_total", "Handshakes that were refused, by reason.", "reason"),
		messages:     desc("socket_messages_total", "Messages by their kind.", "kind"),
		expired:      desc("socket_calls_expired_total", "Calls that nobody has answered in time."),
		dropped:      desc("socket_events_dropped_total", "Events that were dropped because a socket did not read them in time."),
		denied:       desc("socket_requests_denied_total", "Requests that the rules of a token do not allow."),
		slowed:       desc("socket_messages_slowed_total", "Messages that were read later since their socket had sent more than it may."),
		waitingCalls: desc("socket_calls_waiting", "Calls that no function has taken yet."),
		waitingBytes: desc("socket_calls_waiting_bytes", "Bytes of calls that no function has taken yet."),
		up:           desc("broker_up", "1 while the broker can be reached, else 0."),
		reconnects:   desc("broker_reconnects_total", "Connections to the broker that have ended and were made anew."),
		lost:         desc("broker_orders_lost_total", "What the broker was not asked for, since it could not be reached."),
		unknown:      desc("broker_orders_unknown_total", "What the broker was asked for and has not answered."),
	}
}

// Describe implements prometheus.Collector.
func (c *socketCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		c.sockets, c.topics, c.calls, c.buffered, c.opened, c.ended, c.refused,
		c.messages, c.expired, c.dropped, c.denied, c.slowed, c.waitingCalls, c.waitingBytes,
		c.up, c.reconnects, c.lost, c.unknown,
	} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *socketCollector) Collect(metrics chan<- prometheus.Metric) {
	if c.sources.Sockets == nil {
		return
	}
	out, sample := emitter{metrics}, c.sources.Sockets()
	out.gauge(c.sockets, float64(sample.Sockets))
	out.gauge(c.topics, float64(sample.Subscriptions))
	out.gauge(c.calls, float64(sample.Calls))
	out.gauge(c.buffered, float64(sample.BufferedBytes))
	out.counter(c.opened, sample.Opened)
	out.counter(c.expired, sample.Expired)
	out.counter(c.dropped, sample.Dropped)
	out.counter(c.denied, sample.Denied)
	out.counter(c.slowed, sample.Slowed)
	out.gauge(c.waitingCalls, float64(sample.WaitingCalls))
	out.gauge(c.waitingBytes, float64(sample.WaitingBytes))
	if b := sample.Broker; b != nil {
		out.whether(c.up, b.Up)
		out.counter(c.reconnects, b.Ended)
		out.counter(c.lost, b.Lost)
		out.counter(c.unknown, b.Unknown)
	}
	for reason, sockets := range sample.Ended {
		out.counter(c.ended, sockets, reason)
	}
	for reason, handshakes := range sample.Refused {
		out.counter(c.refused, handshakes, reason)
	}
	for _, kinds := range []map[string]uint64{sample.Received, sample.Sent} {
		for kind, messages := range kinds {
			out.counter(c.messages, messages, kind)
		}
	}
}
