package doctor

import (
	"fmt"
	"strings"

	"github.com/cabrank/cabrank/internal/admin"
)

const (
	// fewCalls say nothing about how callers behave.
	fewCalls = 20
	// A connection for each call, as far as chance and those who only look allow.
	onePerCallLeast, onePerCallMost = .5, 1.3
	// streamSeconds is how long the calls of a method take on average whose callers need no
	// deadline: it is one of streams.
	streamSeconds = 1
)

// connectionPerCall finds callers that open a connection for each call.
func connectionPerCall(r *record) *Finding {
	accepted := r.grown(func(l admin.Live) uint64 { return l.Accepted })
	if accepted < fewCalls || accepted < onePerCallLeast*r.calls || accepted > onePerCallMost*r.calls {
		return nil
	}
	return &Finding{
		Name: "connection_per_call", Level: Notice, Figures: map[string]float64{"connections": accepted, "calls": r.calls},
		Says: fmt.Sprintf("callers opened %.0f connections for %.0f calls", accepted, r.calls),
		Do:   "keep one channel in the caller and use it for all calls (docs/callers.md)",
	}
}

// noDeadlines finds calls that may take for ever.
func noDeadlines(r *record) *Finding {
	calls, bare, most, method := 0.0, 0.0, 0.0, ""
	then := make(map[string]admin.LiveMethod)
	for _, m := range r.first.Methods {
		then[m.Method] = m
	}
	for _, m := range r.last.Methods {
		was := then[m.Method]
		n, without := float64(m.Calls-was.Calls), float64(m.NoDeadline-was.NoDeadline)
		if !strings.HasPrefix(m.Method, "/") || n == 0 || (m.Seconds-was.Seconds)/n >= streamSeconds {
			continue
		}
		calls, bare = calls+n, bare+without
		if without > most {
			most, method = without, m.Method
		}
	}
	if bare < fewCalls || bare < calls/2 {
		return nil
	}
	return &Finding{
		Name: "no_deadlines", Level: Notice, Figures: map[string]float64{"without": bare, "calls": calls},
		Says: fmt.Sprintf("%.0f of %.0f calls have no deadline, most of them of %s: they wait as long as the queue lets them, and run on when nobody waits", bare, calls, method),
		Do:   "a deadline in the callers, or methods[].timeout",
	}
}
