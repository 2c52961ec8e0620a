package relay

import (
	"bytes"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// MethodRule says what may be done with the calls of a method beside sending
// each of them once.
type MethodRule struct {
	// Pattern is "/package.Service/Method", or "/package.Service/*" for all
	// methods of a service that have no rule of their own.
	Pattern string
	// Idempotent says that a call may run more than once. Without it there are
	// neither retries nor hedges.
	Idempotent bool
	// Retries is how many more attempts a call gets, 0 to 5.
	Retries int
	// RetryOn are the answers after which it gets another one.
	RetryOn []grpcwire.Code
	// HedgeAfter is how long a call goes without an answer until a second
	// attempt is made beside it; 0 means that none is.
	HedgeAfter time.Duration
	// HedgeAuto has HedgeAfter follow what most calls of the method take.
	HedgeAuto bool
}

// RetryBudget bounds what retries and hedges add to the load of workers:
// PerSecond of them a second, and beyond that the share Ratio of the calls of the
// last ten seconds.
type RetryBudget struct {
	Ratio     float64
	PerSecond float64
}

// policy is a rule as calls need it.
//
// Concurrency: immutable.
type policy struct {
	retries    int
	codes      uint32 // bit n: answers with code n are tried again
	hedgeAfter time.Duration
	hedgeAuto  bool
}

// on reports whether a call that was answered so may be tried again.
func (p *policy) on(code grpcwire.Code) bool { return p.codes&(1<<code) != 0 }

// policies finds the policy of a method.
//
// Concurrency: immutable.
type policies struct {
	methods  map[string]*policy // by path
	services map[string]*policy // by path up to the last slash, with it
}

func newPolicies(rules []MethodRule) policies {
	p := policies{methods: make(map[string]*policy), services: make(map[string]*policy)}
	for _, rule := range rules {
		var made *policy // one that does nothing hides that of the service
		if rule.Idempotent {
			made = &policy{retries: rule.Retries, hedgeAfter: rule.HedgeAfter, hedgeAuto: rule.HedgeAuto}
			for _, code := range rule.RetryOn {
				made.codes |= 1 << code
			}
		}
		if service, all := strings.CutSuffix(rule.Pattern, "*"); all {
			p.services[service] = made
		} else {
			p.methods[rule.Pattern] = made
		}
	}
	return p
}

// any reports whether there is a policy at all.
func (p *policies) any() bool { return len(p.methods)+len(p.services) > 0 }

// of returns the policy of a method by its path, nil if it has none.
func (p *policies) of(path []byte) *policy {
	if !p.any() {
		return nil
	}
	if own, found := p.methods[string(path)]; found {
		return own
	}
	return p.services[string(path[:bytes.LastIndexByte(path, '/')+1])]
}
