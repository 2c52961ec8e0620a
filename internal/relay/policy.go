package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
)

// MethodRule says what may be done with the calls of a method beside sending
// each of them once. The tags are for package config.
type MethodRule struct {
	// Pattern is "/package.Service/Method", or "/package.Service/*" for all
	// methods of a service that have no rule of their own.
	Pattern string
	// Idempotent says that a call may run more than once. Without it there are
	// neither retries nor hedges.
	Idempotent bool `key:"idempotent" default:"false" help:"whether a call may run more than once, so that it can be retried and hedged"`
	Retries    int  `key:"retries" default:"0" range:"0..5" help:"attempts after a first one that failed; of all calls together a tenth, and 10 a second"`
	// RetryOn are the answers after which it gets another one, and which do not
	// settle a race with a hedge; UNAVAILABLE if there are none.
	RetryOn []grpcwire.Code `key:"retry_on" kind:"codes" default:"UNAVAILABLE" help:"the failures that are tried again"`
	// HedgeAfter is how long a call goes without an answer until a second
	// attempt is made beside it; 0 means that none is, HedgeAuto that it follows
	// what most calls of the method take.
	HedgeAfter time.Duration `key:"hedge_after" kind:"hedge" default:"none" help:"time without an answer after which a second attempt is made, if a slot is free and nobody waits; auto: twice the time in which 95 % of them end"`
	// Timeout bounds a call from its arrival, as a deadline of its caller that is so much
	// later would; 0 means that it does not. It needs no Idempotent.
	Timeout time.Duration `key:"timeout" default:"none" range:"1ms..24h" help:"bound on a call from its arrival, as if its caller had set that deadline; a shorter one of the caller counts"`
	// OnCancel is what becomes of the slot of a call that is cancelled while it
	// runs; 0 is as Options.OnCancel has it. It needs no Idempotent.
	OnCancel rank.OnCancel `key:"on_cancel" kind:"cancelled" default:"as for all" help:"slot of a cancelled call, as the key on_cancel"`
}

// HedgeAuto stands for a HedgeAfter that is found by the method's own times.
const HedgeAuto time.Duration = -1

// Hedged reports whether a second attempt may be made beside the first.
func (r MethodRule) Hedged() bool { return r.HedgeAfter != 0 }

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
	idempotent bool
	retries    int
	codes      uint32 // bit n: answers with code n are tried again
	hedgeAfter time.Duration
	hedgeAuto  bool
	timeout    time.Duration
	onCancel   rank.OnCancel
}

// on reports whether a call that was answered so may be tried again.
func (p *policy) on(code grpcwire.Code) bool { return p.codes&(1<<code) != 0 }

// idempotent reports whether the call may run more than once.
func (c *call) idempotent() bool { return c.head.policy != nil && c.head.policy.idempotent }

// newPolicies translates rules. One that allows nothing hides that of its service.
func newPolicies(rules []MethodRule) patterns[*policy] {
	all := make(patterns[*policy])
	for _, rule := range rules {
		all.add(rule.Pattern, newPolicy(rule))
	}
	return all
}

func newPolicy(rule MethodRule) *policy {
	p := &policy{idempotent: rule.Idempotent, timeout: rule.Timeout, onCancel: rule.OnCancel}
	if !p.idempotent {
		if *p == (policy{}) {
			return nil
		}
		return p
	}
	p.retries, p.hedgeAfter, p.hedgeAuto = rule.Retries, max(rule.HedgeAfter, 0), rule.HedgeAfter == HedgeAuto
	for _, code := range rule.RetryOn {
		p.codes |= 1 << code
	}
	if p.codes == 0 {
		p.codes = 1 << grpcwire.Unavailable
	}
	return p
}

// MayRepeat reports whether a rule says that calls of a method may run more than once.
func (r *Relay) MayRepeat(path string) bool {
	p := r.policyOf([]byte(path))
	return p != nil && p.idempotent
}

// policyOf returns the policy of the method of a path, nil if it has none.
func (r *Relay) policyOf(path []byte) *policy {
	p, _ := r.settings().policies.find(path)
	return p
}
