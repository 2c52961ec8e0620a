package relay

import (
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/rank"
)

// maxAdded is by how much a header list may grow on its way, beside the caller's
// address: a grpc-timeout, an x-forwarded-for and an x-cabrank-hops where there
// was none, with the 32 octets that each field counts, or longer numbers and a
// separator.
const maxAdded = len("grpc-timeout") + 10 + 32 + len("x-forwarded-for") + 32 + len(hopsName) + 7 + 32

// fits reports whether the peer of an upstream connection takes the attempt's
// header list. To HTTP/2 the limit is advice (RFC 9113 6.5.2); but servers on
// gRPC's C core 1.51 end the connection, with everybody's calls, at the
// first list above it [E] (R12).
func (a *attempt) fits(conn *h2.Conn) bool {
	most := conn.PeerHeaderList()
	if a.previous > 0 {
		most -= maxTries
	}
	return a.call.form.list <= most
}

// settled is told the settings of a worker (h2.Config). Calls that were opened
// before they were known, and that are not to be sent now, end here.
func settled(conn *h2.Conn) {
	var large []*attempt
	conn.Each(func(s *h2.Stream) {
		if a := s.Owner.(*attempt); !a.fits(conn) {
			large = append(large, a)
		}
	})
	now := conn.Owner.(*upstreamConn).upstream.st.Now()
	for _, a := range large {
		// Else the worker has it, and will answer.
		if a.unsend() && !a.loses(rank.NotSent, now) {
			a.call.fail(endedHeaders, now)
		}
	}
}
