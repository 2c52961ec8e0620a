package nameserver

import (
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/cabrank/cabrank/internal/lab/names"
)

// Zone is a server that answers from records, which the test may change.
//
// Life: StartZone; ended by the end of the test. Concurrency: any.
type Zone struct {
	*Server

	zone names.Zone
	sick atomic.Bool
}

// StartZone serves records in the form of a zone file.
func StartZone(t testing.TB, lines ...string) *Zone {
	t.Helper()
	z := &Zone{}
	z.Say(lines...)
	z.Server = Start(t, z.answer)
	return z
}

// Say replaces all records, and panics on lines that are none.
func (z *Zone) Say(lines ...string) {
	if err := z.zone.Say(lines...); err != nil {
		panic(err)
	}
}

// Fall has every question answered SERVFAIL, or no more.
func (z *Zone) Fall(sick bool) { z.sick.Store(sick) }

func (z *Zone) answer(answer *dns.Msg, _ string) {
	if z.sick.Load() {
		answer.Authoritative, answer.Rcode = true, dns.RcodeServerFailure
		return
	}
	z.zone.Answer(answer)
}
