package relay

import (
	"time"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
)

// MethodRule allows retries and hedges for the calls of a method, and says how they are
// cancelled. The tags are for package config.
type MethodRule struct {
	// Pattern is "/package.Service/Method", or "/package.Service/*" for all
	// methods of a service that have no rule of their own.
	Pattern string
	// Idempotent says that a call may run more than once. Without it there are
	// neither retries nor hedges.
	Idempotent bool `key:"idempotent" default:"false" help:"whether a call may run more than once, so that it can be retried and hedged"`
	Retries    int  `key:"retries" default:"0" range:"0..5" help:"attempts after a first one that failed; of all calls together a tenth, and 10 a second"`
	// RetryOn are the codes after which a call is retried, and which do not win a race
	// with a hedge; UNAVAILABLE if empty.
	RetryOn []grpcwire.Code `key:"retry_on" kind:"codes" default:"UNAVAILABLE" help:"the failures that are tried again"`
	// HedgeAfter is the time without an answer after which a second attempt is made; 0
	// means never, HedgeAuto a time derived from the method's runs.
	HedgeAfter time.Duration `key:"hedge_after" default:"none" range:"1ms..1h" word:"auto=-1ns|none=0s" help:"time without an answer after which a second attempt is made, if a slot is free and nobody waits; auto: twice the time in which 95 % of them end"`
	// Timeout bounds a call from its arrival, as a deadline of its caller that is so much
	// later would; 0 means that it does not. It needs no Idempotent.
	Timeout time.Duration `key:"timeout" default:"none" range:"1ms..24h" help:"bound on a call from its arrival, as if its caller had set that deadline; a shorter one of the caller counts"`
	// OnCancel is what happens to the slot of a call that is cancelled while it runs; 0
	// means Options.OnCancel. It does not need Idempotent.
	OnCancel rank.OnCancel `key:"on_cancel" kind:"cancelled" default:"as for all" help:"slot of a cancelled call, as the key on_cancel"`
}

// HedgeAuto is a HedgeAfter that follows the method's own run times.
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

// policy is a MethodRule prepared for calls.
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

// on reports whether a call may be retried after this code.
func (p *policy) on(code grpcwire.Code) bool { return p.codes&(1<<code) != 0 }

// idempotent reports whether the call may run more than once.
func (c *call) idempotent() bool { return c.head.policy != nil && c.head.policy.idempotent }

// newPolicies prepares rules. A method's rule that allows nothing overrides its service's.
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

// policyOf returns the policy of the method of a path, nil: no policy.
func (r *Relay) policyOf(path []byte) *policy {
	p, _ := r.settings().policies.find(path)
	return p
}
