package socket

import (
	"errors"
	"net"
	"sync/atomic"

	"github.com/gorilla/websocket"
)

// endReason is the reason for which a socket ended.
type endReason int

const (
	endNone endReason = iota
	endClient
	endLost
	endMessage
	endReadLimit
	endWriteLimit
	endSlow
	endIdle
	endBudget
	endDrain
	endExpired
	endBroker
	endOverflow
	endPush
)

// or keeps the first reason.
func (r endReason) or(other endReason) endReason {
	if r != endNone {
		return r
	}
	return other
}

// String is the label of the metric.
func (r endReason) String() string {
	switch r {
	case endClient:
		return "client"
	case endLost:
		return "lost"
	case endMessage:
		return "message"
	case endReadLimit:
		return "read_limit"
	case endWriteLimit:
		return "write_limit"
	case endSlow:
		return "slow"
	case endIdle:
		return "idle"
	case endBudget:
		return "memory"
	case endDrain:
		return "drain"
	case endExpired:
		return "expired"
	case endBroker:
		return "broker"
	case endOverflow:
		return "overflow"
	case endPush:
		return "push"
	case endNone:
	}
	return "unknown"
}

func endReasons() []endReason {
	return []endReason{endClient, endLost, endMessage, endReadLimit, endWriteLimit, endSlow, endIdle, endBudget, endDrain, endExpired, endBroker, endOverflow, endPush}
}

// reasonOf returns the reason for the error that ended reading.
func reasonOf(err error) endReason {
	var closed *websocket.CloseError
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		return endReadLimit
	case errors.Is(err, errMessage), errors.Is(err, errBinary), errors.Is(err, errUTF8), errors.Is(err, errAllowed):
		return endMessage
	case errors.Is(err, errBudget):
		return endBudget
	case errors.Is(err, errOver), errors.Is(err, net.ErrClosed):
		return endSlow
	case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		return endClient
	}
	return endLost
}

// counters are sums since the start.
type counters struct {
	opened, expired, dropped, denied, slowed atomic.Uint64

	in, out [Gap + 1]atomic.Uint64 // by Kind
	refused [refusedToken + 1]atomic.Uint64
	ended   [endPush + 1]atomic.Uint64
}

// refusal is the reason for which a handshake was refused.
type refusal int

const (
	refusedDrain refusal = iota
	refusedRate
	refusedSockets
	refusedHandshake
	refusedProtocol
	refusedToken
)

// String is the label of the metric.
func (r refusal) String() string {
	switch r {
	case refusedDrain:
		return "drain"
	case refusedRate:
		return "rate"
	case refusedSockets:
		return "sockets"
	case refusedHandshake:
		return "handshake"
	case refusedProtocol:
		return "protocol"
	case refusedToken:
		return "token"
	}
	return "unknown"
}

func refusals() []refusal {
	return []refusal{refusedDrain, refusedRate, refusedSockets, refusedHandshake, refusedProtocol, refusedToken}
}

// Stats is the counts of a server since its start, and its present numbers.
type Stats struct {
	// Sockets are open sockets, Subscriptions are topics, Calls are under way.
	Sockets, Subscriptions, Calls int
	// BufferedBytes is the used part of the budget.
	BufferedBytes int64
	// Opened counts sockets, Expired calls that were not answered in time, Dropped
	// events that were not read in time, Denied requests that no rule allows, Slowed
	// messages that were read later because the socket had sent too many.
	Opened, Expired, Dropped, Denied, Slowed uint64
	// Received and Sent count messages by their kind.
	Received, Sent map[string]uint64
	// Refused counts handshakes by reason, Ended sockets by reason.
	Refused, Ended map[string]uint64
}

// Stats may be called from anywhere.
func (s *Server) Stats() Stats {
	c := &s.stats
	stats := Stats{
		Subscriptions: s.hub.size(), BufferedBytes: cost(s.budget.used.Load()),
		Opened: c.opened.Load(), Expired: c.expired.Load(), Dropped: c.dropped.Load(),
		Denied: c.denied.Load(), Slowed: c.slowed.Load(),
		Received: map[string]uint64{}, Sent: map[string]uint64{}, Refused: map[string]uint64{}, Ended: map[string]uint64{},
	}
	for _, session := range s.sessions() {
		session.mu.Lock()
		stats.Calls += session.calls
		session.mu.Unlock()
		stats.Sockets++
	}
	for _, k := range []Kind{Call, Pub, Sub, Unsub, Cancel, Credit, Token, Ping} {
		stats.Received[k.String()] = c.in[k].Load()
	}
	for _, k := range []Kind{Nack, Ack, Res, Exp, Evnt, Gap, Pong, Welcome} {
		stats.Sent[k.String()] = c.out[k].Load()
	}
	for _, reason := range refusals() {
		stats.Refused[reason.String()] = c.refused[reason].Load()
	}
	for _, reason := range endReasons() {
		stats.Ended[reason.String()] = c.ended[reason].Load()
	}
	return stats
}
