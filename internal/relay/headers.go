package relay

import (
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// maxAdded is the most by which Cabrank makes a header list longer, without the caller's
// address: new fields grpc-timeout, x-forwarded-for and x-cabrank-hops with 32 octets each
// (RFC 9113 6.5.2), or longer numbers and a separator in those that the caller sent.
const maxAdded = len("grpc-timeout") + 10 + 32 + len("x-forwarded-for") + 32 + len(hopsName) + 7 + 32

// fits reports whether the attempt's header list is within the limit of the upstream
// peer. In HTTP/2 the limit is advice (RFC 9113 6.5.2), but servers on gRPC's C core 1.51
// end the connection, with everybody's calls, at the first list above it [E] (R12).
func (a *attempt) fits(conn *h2.Conn) bool {
	most := conn.PeerHeaderList()
	if a.previous > 0 {
		most -= maxTries
	}
	return a.call.head.listSize <= most
}

// settled is called with the first SETTINGS of a worker (h2.Config). It ends calls that were
// opened before and turn out to be too large.
func settled(conn *h2.Conn) {
	var large []*attempt
	conn.Each(func(s *h2.Stream) {
		if a := s.Owner.(*attempt); !a.fits(conn) {
			large = append(large, a)
		}
	})
	now := conn.Owner.(*upstreamConn).upstream.st.Now()
	for _, a := range large {
		// If it cannot be taken back, the worker has it and will answer.
		if a.unsend() && !a.failInRace(rank.NotSent, now) {
			a.call.fail(endedHeaders, now)
		}
	}
}
